// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/depthwise_norm.h"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <string>
#include <utility>

#include "base/divide.h"
#include "glsl/conv2d_depthwise_channels_last.h"
#include "glsl/conv2d_depthwise_channels_last_norm.h"
#include "graph/deferred.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

constexpr const char* kOp = "conv2d_depthwise_channels_last";
// Invocations that a GPU has enough of: then one of more columns, which reads less, is the faster. H200: of 75,264 one
// column takes 8.9 us and four 13.9.
constexpr int64_t kManyWork = 1 << 17;
constexpr int64_t kManyParts = 152'000;
constexpr uint32_t kLanes = 128, kMostParts = 8;
// Where registers are few, a window wider than this is read a few columns at a time. Spills of 16 columns at once, one
// row: Adreno 630 15 in fp32, Mali 78 and 87; 4 at a time none.
constexpr int64_t kWide = 8;
constexpr uint32_t kTaps = 4;

// Columns of the output that an invocation computes; `vec4s`: those of the whole output.
int64_t columns_of(const Patches& p, int64_t vec4s, const Features& features) {
  int64_t columns = 4;
  while (columns > 1 &&
         (depthwise_span(p, columns) > kMostDepthwiseSpan || (!features.cpu && vec4s / columns < kManyWork)))
    columns /= 2;
  return columns;
}

// Invocations that share a strip, each with some rows of its window: while a GPU has too few strips. H200, fp16, 7 x 7,
// us with 1, 2, 4 and 8: 75,264 strips 9.1, 7.9, 8.4, 9.8; 37,632 8.1, 6.3, 5.6, 6.5; 18,816 8.4, 6.1, 4.9, 5.1; 9,408
// 7.9, 5.9, 4.7, 4.5.
uint32_t parts_of(const Patches& p, int64_t strips, uint32_t most, const Features& features) {
  uint32_t parts = 1;
  while (!features.cpu && parts * 2 <= most && parts < p.kernel[0] && strips * parts * 2 < features.filling(kManyParts))
    parts *= 2;
  return parts;
}

// Lanes of a workgroup that norms at most: it has all channels of a pixel.
uint32_t most_norm_lanes(const Features& features) {
  return std::min(features.few_registers ? 256U : 768U, features.max_invocations);
}

template <class Params>
Params describe(const DepthwiseChannelsLast& c, int64_t strips) {
  Params params{};
  params.vec4s = u32(c.x.dim(3) / 4);
  params.strips = u32(strips);
  params.count = u32(c.out.dim(0) * c.out.dim(1) * strips * params.vec4s);
  params.in_h = u32(c.x.dim(1));
  params.in_w = u32(c.x.dim(2));
  params.out_h = u32(c.out.dim(1));
  params.out_w = u32(c.out.dim(2));
  put(params, c.patches);
  return params;
}

DepthwiseChannelsLast& known(Graph& graph, Tensor value) {
  return *graph.shared<DepthwiseChannelsLast>("depthwise channels last " + std::to_string(value.id()));
}

}  // namespace

int64_t depthwise_span(const Patches& p, int64_t columns) {
  return (columns - 1) * p.stride[1] + (p.kernel[1] - 1) * p.dilation[1] + 1;
}

Shape DepthwiseChannelsLast::out_shape() const {
  check(x.dim(3) == weight.dim(1), "%s: x has %" PRId64 " channels, the weight %" PRId64, kOp, x.dim(3), weight.dim(1));
  return {x.dim(0), patches.count(0, x.dim(1), kOp), patches.count(1, x.dim(2), kOp), x.dim(3)};
}

// As the shader declares it: vec4 of a strip, up to 16 sums of a pixel, and the parts of each strip.
uint32_t DepthwiseNormWork::shared_bytes(uint32_t vec4s, uint32_t columns) const {
  return 16 * (strips + strips / vec4s * std::min(vec4s, 16U) + (parts > 1 ? lanes() * columns : 1));
}

DepthwiseNormWork depthwise_norm_work(const Patches& p, int64_t count, uint32_t vec4s, uint32_t columns,
                                      const Features& features) {
  uint32_t parts = parts_of(p, count, std::min(kMostParts / 2, most_norm_lanes(features) / vec4s), features);
  for (;; parts /= 2) {
    const DepthwiseNormWork work = {vec4s * std::max(1U, kLanes / (vec4s * parts)), parts};
    if (parts == 1 || work.shared_bytes(vec4s, columns) <= features.max_shared_bytes) return work;
  }
}

void launch_depthwise(Launch& launch, const DepthwiseChannelsLast& c, const double* eps) {
  u32(c.x.numel());
  const Patches& p = c.patches;
  const auto vec4s = static_cast<uint32_t>(c.x.dim(3) / 4);
  const int64_t columns = columns_of(p, u32(c.out.numel()) / 4, launch.features);
  const int64_t strips = ceil_div(c.out.dim(2), columns);
  const uint32_t count = u32(c.out.dim(0) * c.out.dim(1) * strips * vec4s);
  launch.outer = 1;
  launch.flops = 2ull * static_cast<uint64_t>(c.out.numel() * c.weight.dim(0));
  const auto specialize = [&](uint32_t of_group, uint32_t parts) {
    launch.over_groups(ceil_div(count, of_group), of_group * parts);
    const bool few = columns == 1 && launch.features.few_registers && depthwise_span(p, 1) > kWide;
    launch.spec.insert(launch.spec.end(), {bool(c.bias), c.act, u32(columns), u32(p.kernel[1]), u32(p.stride[1]),
                                           u32(p.dilation[1]), parts, few ? kTaps : 0});
  };
  if (eps == nullptr) {
    using namespace glsl::conv2d_depthwise_channels_last;
    const uint32_t parts = parts_of(p, count, kMostParts, launch.features);
    specialize(kLanes / parts, parts);
    launch.params(describe<Params>(c, strips));
    launch.shader = &variant(dtype(c.x.dtype()));
    return;
  }
  using namespace glsl::conv2d_depthwise_channels_last_norm;
  const DepthwiseNormWork work = depthwise_norm_work(p, count, vec4s, u32(columns), launch.features);
  specialize(work.strips, work.parts);
  launch.spec.push_back(vec4s);
  auto params = describe<Params>(c, strips);
  params.eps = static_cast<float>(*eps);
  launch.params(params);
  launch.shader = &variant(dtype(c.x.dtype()));
}

bool defer_for_norm(Graph& graph, const DepthwiseChannelsLast& c, std::function<void()> write) {
  const Features& features = graph.features();
  const std::vector<Use>& uses = uses_of(graph, c.out);
  const bool fits = c.out.rank() == 4 && is_fixed(graph, c.out, 3) && c.out.dim(3) % 4 == 0 &&
                    c.out.dim(3) <= 4 * int64_t{most_norm_lanes(features)};
  if (features.cpu || !fits || uses.size() != 1 || reader(graph, uses[0]) != "layer_norm" || uses[0].argument != 0)
    return false;
  known(graph, c.out) = c;
  defer(graph, c.out, std::move(write));
  return true;
}

bool try_depthwise_norm(Graph& graph, Tensor out, Tensor x, Tensor weight, Tensor bias, double eps) {
  if (!is_deferred(graph, x) || !known(graph, x).out) return false;
  DepthwiseChannelsLast c = known(graph, x);
  for (const Tensor& factor : {weight, bias}) {
    if (!factor || !factor.is_constant() || factor.numel() != c.out.dim(3)) return false;
  }
  if (!same_shape(graph, x, out)) return false;
  c.out = out;
  graph.dispatch({out}, {c.x, c.weight, c.bias ? c.bias : c.x, weight, bias}, [c, eps](Launch& launch) {
    c.out.resize(c.out_shape());
    if (c.out.numel() != 0) launch_depthwise(launch, c, &eps);
  });
  return true;
}

}  // namespace pumice::engine
