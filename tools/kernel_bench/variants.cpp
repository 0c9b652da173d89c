// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/variants.h"

#include <algorithm>
#include <set>

#include "graph/pipelines.h"
#include "tools/kernel_bench/bench_op.h"
#include "tools/kernel_bench/compile_times.h"
#include "tools/kernel_bench/file_graph.h"
#include "tools/kernel_bench/kernels.h"
#include "tools/kernel_bench/operators.h"
#include "tools/kernel_bench/shaders.h"
#include "tools/kernel_bench/table.h"

namespace pumice::engine::kernel_bench {
namespace {

using Names = std::set<std::string, std::less<>>;

constexpr uint64_t kMostMacs = 1 << 22;  // larger cases launch nothing that small ones do not

Names wanted_names(const Options& options) {
  std::vector<std::string_view> known;
  for (const ShaderFile& file : shader_files())
    for (const Shader& shader : file.variants) known.emplace_back(shader.name);
  for (const std::string& name : options.variants) must_be_one_of("variant", name, known);
  return {options.variants.begin(), options.variants.end()};
}

// What of a product's sizes decides on its shaders.
std::string kind_of(const Case& c) {
  const auto rows = c.m == 1 ? 1 : c.m <= 8 ? 2 : 3;
  const bool whole_row = c.group == 0 || c.group == c.k;
  Case kind = c;
  kind.m = rows;
  kind.n = c.n % 16 == 0;
  kind.k = c.k % 64 == 0 ? 0 : c.k % 8 == 0 ? 1 : 2;
  kind.group = whole_row ? 0 : c.group % 32 == 0 ? 1 : 2;
  kind.bias = false;
  kind.act = 0;
  return text(kind);
}

// The table's small cases in every storage, smallest first; of products one of a kind.
std::vector<Case> candidates(const Options& options, bool cpu, bool textures) {
  Options any = options;
  for (const BenchOp& op : bench_ops())
    if (options.ops.empty()) any.ops.emplace_back(op.op);
  std::vector<Case> all = choose(any, Purpose::test, cpu);
  std::erase_if(all, [](const Case& c) { return c.macs() > kMostMacs || c.values != Values::random; });
  std::stable_sort(all.begin(), all.end(), [](const Case& a, const Case& b) { return a.macs() < b.macs(); });
  Names kinds;
  std::vector<Case> result;
  for (const Case& c : all) {
    const BenchOp& op = bench_op(c.op);
    for (const std::string_view storage : kStorages) {
      Case other = c;
      other.storage = storage;
      if (other.storage != Case{}.storage && (!textures || !op.refuse(other).empty())) continue;
      if (kinds.insert(op.is_linear() ? kind_of(other) : text(other)).second) result.push_back(std::move(other));
    }
  }
  return result;
}

// What the case launches with the kernel, weights packed; nothing where the operator refuses it.
Names launched(std::span<const std::byte> file, const Case& c, const std::string& kernel, const Features& features) {
  Names names;
  try {
    const FileGraph built = graph_for(file, features, forced(kernel, c.m));
    for (const PipelineKey& key : pack_pipelines(*built.graph)) names.insert(key.shader->name);
    for (const PipelineKey& key : pipeline_keys(*built.graph)) names.insert(key.shader->name);
  } catch (const Error&) {
    return {};
  }
  return names;
}

}  // namespace

Found launching(const Options& options, const Features& features) {
  Names wanted = wanted_names(options);
  const auto is_texture = [](const std::string& name) { return name.find("texture") != std::string::npos; };
  const bool textures = std::any_of(wanted.begin(), wanted.end(), is_texture);
  Found found;
  for (const Case& c : candidates(options, features.cpu, textures)) {
    if (wanted.empty()) break;
    const BenchOp& op = bench_op(c.op);
    Bytes file;
    std::vector<std::string> all = kernels(op, options);
    std::ranges::reverse(all);  // small tiles first, for which drivers take less time
    for (const std::string& kernel : all) {
      const bool is_other = !op.is_call() && (kernel == kPick || kernel == kPlain);  // each kernel comes by its name
      if (is_other || !unsupported_reason(op, kernel, c, features).empty()) continue;
      if (file.empty()) file = make_file(*op.make(c, options.seed), c.op);
      const size_t before = wanted.size();
      for (const std::string& name : launched(file, c, kernel, features)) wanted.erase(name);
      if (wanted.size() != before) found.pairs.push_back({c, kernel});
    }
  }
  found.nowhere.assign(wanted.begin(), wanted.end());
  return found;
}

}  // namespace pumice::engine::kernel_bench
