// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>

#include "tools/pumice-rt/tool.h"

namespace tool {

int run(const Arguments& arguments) {
  std::vector<Array> inputs;
  for (const std::string& path : arguments.inputs) inputs.push_back(read_npy(path));
  const pumice::Model model = pumice::Model::load_file(arguments.model, arguments.options);
  pumice::Session session(model);
  session.run(views(inputs));
  if (!arguments.outputs.empty()) std::filesystem::create_directories(arguments.outputs);
  const auto infos = model.outputs();
  for (uint32_t i = 0; i < infos.size(); ++i) {
    const pumice_tensor tensor = session.output(i);
    Array array;
    array.dtype = tensor.dtype;
    array.dims.assign(tensor.dims, tensor.dims + tensor.rank);
    array.data.resize(tensor.bytes);
    session.read(i, array.data.data(), array.data.size());
    std::printf("%s: %s [", infos[i].name, dtype_name(array.dtype));
    for (size_t d = 0; d < array.dims.size(); ++d)
      std::printf("%s%lld", d ? ", " : "", static_cast<long long>(array.dims[d]));
    std::printf("]");
    if (!arguments.outputs.empty()) {
      const std::string path =
          (std::filesystem::path(arguments.outputs) / (std::string(infos[i].name) + ".npy")).string();
      write_npy(path, array);
      std::printf(" -> %s", path.c_str());
    }
    std::printf("\n");
  }
  return 0;
}

}  // namespace tool
