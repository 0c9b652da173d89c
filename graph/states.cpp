// SPDX-License-Identifier: Apache-2.0
#include <cinttypes>

#include "graph/prepack.h"

namespace pumice::engine {

std::vector<StateInfo> states(const Program& program, std::span<const std::unique_ptr<Graph>> graphs) {
  std::vector<StateInfo> result(program.states.size());
  for (const auto& graph : graphs) {
    const Graph::Impl& impl = graph->impl();
    for (uint32_t v = 0; v < impl.method().values.size(); ++v) {
      const TensorInfo& tensor = impl.tensors[v];
      if (tensor.home != Home::state) continue;
      StateInfo& state = result[tensor.ref];
      const std::string path = format("methods[%u].values[%u]", impl.method_index, v);
      if (state.used && state.dtype != tensor.dtype)
        fail(Code::BadDtype, Stage::plan, path, "state %u is %s here and %s elsewhere", tensor.ref, name(tensor.dtype),
             name(state.dtype));
      if (state.used && state.shape != tensor.shape)
        fail(Code::BadShape, Stage::plan, path, "state %u has another shape elsewhere", tensor.ref);
      state = {true, tensor.dtype, tensor.shape, impl.bytes(v)};
      const int32_t constant = program.states[tensor.ref].constant;
      if (constant >= 0 &&
          program.constants[static_cast<size_t>(constant)].size != file_bytes(tensor.dtype, tensor.shape))
        fail(Code::BadShape, Stage::plan, path, "the initial value has %" PRIu64 " bytes, the state %" PRIu64,
             program.constants[static_cast<size_t>(constant)].size, file_bytes(tensor.dtype, tensor.shape));
    }
  }
  return result;
}

}  // namespace pumice::engine
