// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/kernels.h"

#include <algorithm>

#include "base/nearest.h"
#include "graph/image_shape.h"
#include "ops/linear/error_bound.h"
#include "ops/linear/packed_weight.h"
#include "ops/linear/pick.h"
#include "ops/linear/tuned.h"
#include "ops/shared/shape.h"
#include "tools/kernel_bench/baseline.h"

namespace pumice::engine::kernel_bench {
namespace {

constexpr std::string_view kPlainOf = "linear_q4gsw";

// The longest side of the textures of x and of the result. Their sides are the vec4 groups of a row, the rows, and the
// product of all other dimensions.
int64_t longest_side(const BenchOp& bench_op, const Case& c) {
  if (bench_op.is_conv()) {
    const int64_t height = std::max(c.h, c.out_size(c.h)), width = std::max(c.w, c.out_size(c.w));
    return std::max({(width + 3) / 4, height, c.m * std::max(c.c, c.n)});
  }
  const int64_t n = bench_op.is_linear() ? c.n : c.k;
  return std::max((std::max(c.k, n) + 3) / 4, c.m);
}

// The longest side of the texture of a weight, which has 4096 of its vectors in a row.
std::string why_no_textures(const BenchOp& bench_op, const Case& c, const Features& features) {
  const int64_t most = features.max_image_3d;
  if (c.in_textures() && longest_side(bench_op, c) > most)
    return format("needs textures of more than %lld texels along an axis (maxImageDimension3D)",
                  static_cast<long long>(most));
  if (!c.weight_in_texture()) return "";
  const LinearShape shape = bench_op.linear(c);
  const uint64_t row = row_bytes({.type = shape.weight, .n = u32(shape.n), .k = u32(shape.k)});
  const uint64_t vectors = row / 16 * row_panels(u32(shape.n)) * kPanelRows;
  if (vectors > uint64_t{features.max_image_2d} * kTexelsInARow)
    return format("needs a texture of more than %u rows of texels (maxImageDimension2D)", features.max_image_2d);
  return "";
}

}  // namespace

std::vector<std::string> all_kernels(const BenchOp& bench_op) {
  std::vector<std::string> known = {std::string(kPick)};
  if (bench_op.is_linear()) known.emplace_back(kTable);
  if (bench_op.is_linear())
    for (const LinearKernel& kernel : linear_kernels()) known.emplace_back(kernel.name);
  if (bench_op.is_conv())
    for (const std::string_view kernel : conv_kernels()) known.emplace_back(kernel);
  if (bench_op.op == kPlainOf) known.emplace_back(kPlain);
  return known;
}

std::vector<std::string> kernels(const BenchOp& bench_op, const Options& options) {
  std::vector<std::string> known = all_kernels(bench_op);
  if (options.kernels.empty()) {
    if (!options.regret) std::erase(known, kTable);
    return known;
  }
  for (const std::string& name : options.kernels) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string list;
    for (const std::string& each : known) list += (list.empty() ? "" : ", ") + each;
    fail(Code::InvalidArgument, Stage::api, "kernel", "%s has no kernel '%s': did you mean '%s'? There are %s",
         std::string(bench_op.op).c_str(), printable(name).c_str(), std::string(nearest(name, known)).c_str(),
         list.c_str());
  }
  return options.kernels;
}

std::string unsupported_reason(const BenchOp& bench_op, const std::string& kernel, const Case& c,
                               const Features& features) {
  if (kernel == kPlain) return plain_unsupported_reason(c, features);
  if (bench_op.is_call()) return "";
  if (std::string reason = why_no_textures(bench_op, c, features); !reason.empty()) return reason;
  if (bench_op.is_conv() && kernel != kPick) return conv_unsupported_reason(kernel, bench_op.conv(c), features);
  if (!bench_op.is_linear() || kernel == kPick || kernel == kTable) return "";
  return pumice::engine::unsupported_reason(linear_kernel(kernel), bench_op.linear(c), features);
}

std::string not_recommended_reason(const BenchOp& bench_op, const std::string& kernel, const Case& c,
                                   const Features& features) {
  if (bench_op.is_conv() && kernel != kPick) return conv_not_recommended_reason(kernel, features);
  if (!bench_op.is_linear() || kernel == kPick || kernel == kTable || kernel == kPlain) return "";
  return pumice::engine::not_recommended_reason(linear_kernel(kernel), bench_op.linear(c), features);
}

ChosenKernels choose_kernels(const BenchOp& bench_op, const Case& c, const Options& options, const Features& features) {
  ChosenKernels chosen;
  const bool only_recommended = options.kernels.empty() && !options.regret;
  for (const std::string& kernel : kernels(bench_op, options)) {
    if (kernel == kTable && options.kernels.empty() && features.tuned == nullptr) continue;  // it is the pick
    std::string why = unsupported_reason(bench_op, kernel, c, features);
    if (why.empty() && only_recommended) why = not_recommended_reason(bench_op, kernel, c, features);
    if (why.empty())
      chosen.files[op_for(bench_op, kernel)].push_back(kernel);
    else
      chosen.left_out.emplace_back(kernel, "it " + why);
  }
  return chosen;
}

std::string resolved(const BenchOp& bench_op, const std::string& kernel, const Case& c, const Features& features) {
  if (kernel == kPick && bench_op.is_conv()) return std::string(conv_kernel(bench_op.conv(c), features));
  if ((kernel != kPick && kernel != kTable) || !bench_op.is_linear()) return kernel;
  const LinearShape shape = bench_op.linear(c);
  const LinearKernel* tuned = kernel == kPick ? tuned_linear(shape, features) : nullptr;
  return std::string((tuned != nullptr ? *tuned : pick_linear(shape, features)).name);
}

Bound bound(const BenchOp& bench_op, const std::string& kernel, const Case& c, const Features& features) {
  if (bench_op.is_conv()) return {conv_roundings(resolved(bench_op, kernel, c, features), bench_op.conv(c))};
  if (!bench_op.is_linear()) return {};
  // The baseline has the error bound of the pick.
  const std::string name = resolved(bench_op, kernel == kPlain ? std::string(kPick) : kernel, c, features);
  const LinearShape shape = bench_op.linear(c);
  return {linear_roundings(linear_kernel(name), shape), split_error(linear_kernel(name), shape)};
}

Forced forced(const std::string& kernel, int64_t rows) {
  const bool picked = kernel == kPick || kernel == kTable || kernel == kPlain;
  return {picked ? "" : kernel, rows, kernel == kTable};
}

std::string op_for(const BenchOp& bench_op, const std::string& kernel) {
  return std::string(bench_op.op) + (kernel == kPlain ? "_plain" : "");
}

}  // namespace pumice::engine::kernel_bench
