// SPDX-License-Identifier: Apache-2.0
#include "graph/weights.h"

#include "graph/states.h"

namespace pumice::engine {
namespace {

// Every content that a key may need, so that other loads wait for less.
void hash_contents(ConstantSource& source, const Program& program, std::span<const std::unique_ptr<Graph>> graphs) {
  for (const auto& graph : graphs) {
    for (const TensorInfo& tensor : graph->impl().tensors) {
      if (tensor.memory == MemorySource::constant) source.content(tensor.ref);
    }
  }
  for (const State& state : program.states) {
    if (state.constant >= 0) source.content(static_cast<uint32_t>(state.constant));
  }
}

}  // namespace

Weights::Weights(const std::shared_ptr<Device>& device, const Program& program, const ExternalData& external,
                 std::span<const std::unique_ptr<Graph>> graphs, const Allow& allow, const Deadline& deadline,
                 bool alone)
    : memory_(device) {
  ConstantSource source(device, program, external);
  if (external && !alone) {
    hash_contents(source, program, graphs);
    memory_.share();
  }
  Prepack prepack(device, source, memory_, table_);
  for (const auto& graph : graphs) prepack.collect(*graph);
  const std::vector<StateInfo> infos = states(program, graphs);
  for (size_t s = 0; s < infos.size(); ++s) {
    if (infos[s].used && program.states[s].constant >= 0)
      prepack.keep(static_cast<uint32_t>(program.states[s].constant), infos[s].dtype, infos[s].bytes);
  }
  const MemoryNeed need = prepack.need();
  if (allow && !allow(need)) return;
  prepack.run(deadline);
  memory_.finish();
}

const Allocation& Weights::constant(uint32_t index, DType dtype) const {
  return table_.constants.at({index, dtype});
}

const Allocation& Weights::packed(const std::string& key) const {
  return table_.packed.at(key);
}

}  // namespace pumice::engine
