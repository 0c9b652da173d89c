// SPDX-License-Identifier: Apache-2.0
// Runs the method "forward" of a .pte file on inputs of ones and prints the first numbers of each output.
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <pumice/executorch.h>

#include <algorithm>
#include <cstdio>
#include <vector>

using executorch::extension::Module;
using executorch::runtime::EValue;

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: host FILE.pte\n");
    return 2;
  }
  if (const auto error = pumice_executorch_register()) {
    std::fprintf(stderr, "cannot register PumiceBackend: error 0x%x\n", static_cast<unsigned>(error));
    return 1;
  }
  Module module(argv[1]);
  const auto meta = module.method_meta("forward");
  if (!meta.ok()) {
    std::fprintf(stderr, "%s: error 0x%x\n", argv[1], static_cast<unsigned>(meta.error()));
    return 1;
  }
  std::vector<executorch::extension::TensorPtr> inputs;
  std::vector<EValue> values;
  for (size_t i = 0; i < meta->num_inputs(); ++i) {
    const auto sizes = meta->input_tensor_meta(i)->sizes();
    inputs.push_back(executorch::extension::ones({sizes.begin(), sizes.end()}));
    values.emplace_back(inputs.back());
  }
  const auto outputs = module.forward(values);
  if (!outputs.ok()) {
    std::fprintf(stderr, "%s: error 0x%x\n", argv[1], static_cast<unsigned>(outputs.error()));
    return 1;
  }
  for (const EValue& value : *outputs) {
    const auto& tensor = value.toTensor();
    for (int i = 0; i < std::min<int>(8, tensor.numel()); ++i) {
      std::printf("%s%.6g", i ? " " : "", tensor.const_data_ptr<float>()[i]);
    }
    std::printf("\n");
  }
  return 0;
}
