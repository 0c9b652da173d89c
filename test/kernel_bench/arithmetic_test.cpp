// SPDX-License-Identifier: Apache-2.0
// Kernels that read rows which another dispatch makes: their arithmetic is that of the product, on an H100 that need
// not be here.
#include "graph/arithmetic.h"

#include <gtest/gtest.h>

#include "graph/cost.h"
#include "tools/kernel_bench/file_graph.h"
#include "tools/kernel_bench/kernels.h"
#include "tools/kernel_bench/profile.h"

namespace pumice::engine::test {
namespace {

using namespace kernel_bench;

Operations operations(const char* text, const char* kernel) {
  const Features features = features_of(read_profile(PUMICE_TEST_DIR "/profiles/h100.json"), "");
  const Case c = parse(text).at(0);
  const Bytes file = make_file(*bench_op(c.op).make(c, 1), c.op);
  const FileGraph built = graph_for(file, features, forced(kernel, c.m));
  Operations all{};
  for (const Node& node : built.graph->impl().nodes) add_operations(node, all);
  return all;
}

TEST(Arithmetic, OfSplitOperandsAndOfIntegersAsFloats) {
  const struct {
    const char *text, *kernel;
    Arithmetic arithmetic;
  } cases[] = {
      {"op=linear,m=64,n=64,k=64,dtype=f32", "split_matrix64x64", Arithmetic::split3},
      {"op=linear,m=64,n=64,k=64,dtype=f32", "tile64x64", Arithmetic::split3},
      {"op=linear_q8csw,m=64,n=64,k=64,g=0,dtype=f32", "split_matrix64x64", Arithmetic::split2},
      {"op=linear_q4gsw,m=64,n=128,k=64,g=32,dtype=f16", "matrix64x64", Arithmetic::f16},
      {"op=linear_dq8ca_q4gsw,m=64,n=128,k=64,g=32,dtype=f16", "matrix64x64", Arithmetic::i8},
      {"op=linear_dq8ca_q4gsw,m=64,n=128,k=64,g=32,dtype=f32", "tile64x64", Arithmetic::i8},
  };
  for (const auto& [text, kernel, arithmetic] : cases) {
    Operations want{};
    const Case c = parse(text).at(0);
    want[static_cast<size_t>(arithmetic)] = 2ull * static_cast<uint64_t>(c.m * c.n * c.k);
    EXPECT_EQ(operations(text, kernel), want) << text << " " << kernel;
  }
}

}  // namespace
}  // namespace pumice::engine::test
