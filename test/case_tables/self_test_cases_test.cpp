// SPDX-License-Identifier: Apache-2.0
// Every kernel family, a file of glsl/, has a case of the self test (runtime/self_test.h), or a reason why it has none.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "graph/pipelines.h"
#include "runtime/one_call.h"
#include "tools/kernel_bench/file_graph.h"
#include "tools/kernel_bench/kernels.h"
#include "tools/kernel_bench/profile.h"
#include "tools/kernel_bench/shaders.h"
#include "tools/kernel_bench/table.h"

namespace pumice::engine::kernel_bench {
namespace {

using Files = std::set<std::string>;

// Of files that no call of one operator runs that the self test knows: why.
struct Reason {
  const char* why;
  Files files;
};
const Reason kReasons[] = {
    {"several calls in one dispatch: runtime/fused_calls.h, with lies in test/reliability/test_self_test_fused.py and "
     "test/ops/test_conv2d_expanded.py",
     {"conv2d_chain_fragments_int8", "conv2d_depthwise_channels_last_norm", "conv2d_depthwise_mean",
      "conv2d_expanded_depthwise_fragments"}},
    {"a probe, or has one", {"decoder_layers", "probe_fragments", "probe_fragments_int8"}},
    {"the rows that experts have depend on data",
     {"expert_gemv", "expert_gemv_fragments", "expert_rows", "expert_sum", "route_experts"}},
    {"sums, maxima and windows of one workgroup in fp32: docs/decisions/0006-self-test.md, Limits",
     {"choose_qparams", "choose_qparams_range", "grid_sampler_2d", "masked_softmax", "pool", "q8ta_upsample2d",
      "reduce", "sample_token", "sample_token_bins", "sample_token_split", "scan", "softmax", "squeeze_excite",
      "squeeze_excite_pack", "upsample2d"}},
    {"element by element",
     {"atan", "binary", "binary_compare", "binary_math", "cast", "clamp", "dequantize", "elementwise_chain", "full",
      "full_arange", "lookup", "q8ta_binary", "quantize_f64", "random", "tri", "unary", "unary_math", "where"}},
    {"moves values",
     {"add_atomic", "cat", "conv2d_to_nchw", "embedding", "embedding_packed", "index", "index_add", "index_gather",
      "index_linear", "index_put", "index_put_last", "scatter", "scatter_rows", "slice_scatter", "sort", "sort_take"}},
};

bool is_tested(const BenchOp& op) {
  const auto signatures = op_signatures();
  OpCall call;
  call.op = static_cast<uint32_t>(std::ranges::find(signatures, op.op, &Signature::name) - signatures.begin());
  return OneCall::is_known(call);
}

void add_files(const Bytes& file, const Forced& kernel, const Features& features, Files& files) {
  const FileGraph built = graph_for(file, features, kernel);
  for (const auto& keys : {run_pipelines(*built.graph), pack_pipelines(*built.graph)}) {
    for (const PipelineKey& key : keys) {
      const std::string name = key.shader->name;
      files.insert(name.substr(0, name.find('[')));
    }
  }
}

// What the operators' cases run and pack with, each by its pick and by every kernel that it may be given.
Files files_of_tested_operators() {
  Files files;
  for (const char* profile : {"h100", "navi31"}) {
    const Features features = features_of(read_profile(profile), "");
    for (const BenchOp& op : bench_ops()) {
      if (!is_tested(op)) continue;
      Options options;
      options.ops = {std::string(op.op)};
      std::vector<Case> cases = choose(options, Purpose::test, true);
      if (op.is_call()) std::ranges::move(choose(options, Purpose::bench, true), std::back_inserter(cases));
      for (const Case& c : cases) {
        const Bytes file = make_file(*op.make(c, 1), op.op);
        for (const std::string& kernel : kernels(op, {}))
          if (unsupported_reason(op, kernel, c, features).empty())
            add_files(file, forced(kernel, c.m), features, files);
      }
    }
  }
  return files;
}

TEST(SelfTestCases, AreThereForEveryFamily) {
  const Files tested = files_of_tested_operators();
  Files all, reasons;
  for (const ShaderFile& file : shader_files()) all.insert(std::string(file.stem));
  for (const Reason& reason : kReasons) {
    for (const std::string& file : reason.files) {
      EXPECT_TRUE(reasons.insert(file).second) << file << " has two reasons";
      EXPECT_TRUE(all.contains(file)) << "there is no " << file;
      EXPECT_FALSE(tested.contains(file)) << file << " has a case, and needs no reason: " << reason.why;
    }
  }
  for (const std::string& file : all)
    EXPECT_TRUE(tested.contains(file) || reasons.contains(file)) << file << " has no case, and no reason why";
}

}  // namespace
}  // namespace pumice::engine::kernel_bench
