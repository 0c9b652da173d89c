// SPDX-License-Identifier: Apache-2.0
// Runs a model whose inputs are floats, each filled with 1, and prints the first numbers of every output.
#include <pumice/pumice.hpp>

#include <algorithm>
#include <cstdio>

int main(int argc, char** argv) try {
  if (argc < 2) return std::fprintf(stderr, "usage: host FILE.pumice [DEVICE]\n"), 2;
  const pumice::Model model = pumice::Model::load_file(argv[1], pumice::Options{.device = argc > 2 ? argv[2] : ""});
  pumice::Session session(model);

  std::vector<std::vector<float>> floats;
  std::vector<std::vector<pumice::Half>> halves;  // of inputs in fp16
  std::vector<pumice_tensor> inputs;
  for (const pumice_tensor_info& info : model.inputs()) {
    const std::vector<int64_t> dims(info.min, info.min + info.rank);  // a dynamic size: the smallest
    size_t count = 1;
    for (const int64_t dim : dims) count *= static_cast<size_t>(dim);
    if (info.dtype == PUMICE_F16)
      inputs.push_back(pumice::view<pumice::Half>(halves.emplace_back(count, pumice::Half(1.0f)), dims));
    else if (info.dtype == PUMICE_F32)
      inputs.push_back(pumice::view<float>(floats.emplace_back(count, 1.0f), dims));
    else
      return std::fprintf(stderr, "input '%s' is not of floats\n", info.name), 2;
  }

  for (const pumice::Output& output : session.call(inputs)) {
    std::vector<float> values;
    if (output.dtype == PUMICE_F16)
      for (const pumice::Half half : output.values<pumice::Half>()) values.push_back(float(half));
    else
      values = output.values<float>();
    for (size_t i = 0; i < std::min<size_t>(values.size(), 8); ++i) std::printf("%.6g ", values[i]);
    std::printf("\n");
  }
  return 0;
} catch (const pumice::Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
