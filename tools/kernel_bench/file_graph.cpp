// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/file_graph.h"

#include "serialization/read.h"
#include "tools/kernel_bench/operators.h"

namespace pumice::engine::kernel_bench {

FileGraph graph_for(std::span<const std::byte> file, const Features& features, const Forced& kernel) {
  FileGraph result;
  result.loaded.program = std::make_shared<Program>(read(file, signatures(), {}, false));
  result.loaded.facts = std::make_shared<ConstantFacts>();
  result.graph = build_with(result.loaded, features, kernel);
  return result;
}

}  // namespace pumice::engine::kernel_bench
