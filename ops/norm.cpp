// SPDX-License-Identifier: Apache-2.0
// layer_norm and rms_norm over the last `count` dimensions; group_norm over the channels of a group (dimension 1) and
// all dimensions after them.
//
// Error, of a row of n elements, r = 1 / sqrt(var + eps), weight w, bias b: a row is summed as 32 sums or more, so
// that a term has s = ceil(n / 32) + 10 roundings, and the mean is off by d = 2^-24 * s * mean|x| (0 for rms_norm):
//   |err| <= u |y| + |w| r d + (2^-24 * (s / 2 + 12) + (d r)^2 / 2) * |y - b| + 2^-24 |b|
// and at most 2^-18 of the largest result.
#include "glsl/norm.h"

#include "ops/conv/depthwise_norm.h"
#include "ops/linear/layer_norm_x.h"
#include "ops/op.h"
#include "ops/reference/reductions.h"
#include "ops/shared/norm_launch.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

// `groups`: of group_norm, else 0.
void norm(Graph& graph, const char* op, Tensor out, Tensor x, int64_t count, Tensor weight, Tensor bias, double eps,
          bool center, int64_t groups = 0) {
  check(count >= 1 && count <= x.rank(), "%s: over %lld dimensions of %u", op, static_cast<long long>(count), x.rank());
  check(x.dtype() == out.dtype(), "%s: input is %s, output %s", op, name(x.dtype()), name(out.dtype()));
  for (const Tensor& factor : {weight, bias}) {
    check(!factor || factor.dtype() == x.dtype(), "%s: input is %s, a factor %s", op, name(x.dtype()),
          name(factor.dtype()));
  }
  const bool of_rows = center && groups == 0 && count == 1;
  if (of_rows && try_depthwise_norm(graph, out, x, weight, bias, eps)) return;
  const auto first = static_cast<int64_t>(x.rank()) - count;
  const LayerNormX* const noted = of_rows ? &note_layer_norm(graph, out, x, weight, bias, eps) : nullptr;
  graph.dispatch({out}, {x, weight ? weight : x, bias ? bias : x}, [=](Launch& launch) {
    out.resize(x.shape());
    const int64_t all = x.numel(first, x.rank()), channels = groups == 0 ? all : x.dim(first);
    check(groups == 0 || channels % groups == 0, "%s: %lld channels in %lld groups", op,
          static_cast<long long>(channels), static_cast<long long>(groups));
    for (const Tensor& factor : {weight, bias}) {
      check(!factor || factor.numel() == channels, "%s: a factor has %lld elements, not %lld", op,
            static_cast<long long>(factor.numel()), static_cast<long long>(channels));
    }
    if (out.numel() == 0 || (noted != nullptr && noted->is_fused(launch))) return;
    const uint32_t width = u32(groups == 0 ? all : all / groups);
    launch_norm(launch, {.dtype = x.dtype(),
                         .rows = u32(x.numel()) / width,
                         .width = width,
                         .inner = u32(all / channels),
                         .channels = u32(channels),
                         .eps = static_cast<float>(eps),
                         .center = center,
                         .weight = static_cast<bool>(weight),
                         .bias = static_cast<bool>(bias),
                         .grouped = groups != 0});
    launch.outer = static_cast<uint32_t>(first);
  });
}

void layer_norm(Graph& graph, Args args) {
  norm(graph, "layer_norm", args.out(), args.tensor(0), args.integer(1), args.tensor(2), args.tensor(3), args.real(4),
       true);
}

void rms_norm(Graph& graph, Args args) {
  norm(graph, "rms_norm", args.out(), args.tensor(0), args.integer(1), args.tensor(2), {}, args.real(3), false);
}

void group_norm(Graph& graph, Args args) {
  const Tensor x = args.tensor(0);
  const int64_t groups = args.integer(1);
  check(x.rank() >= 2 && groups >= 1, "group_norm: rank %u, %lld groups", x.rank(), static_cast<long long>(groups));
  norm(graph, "group_norm", args.out(), x, int64_t{x.rank()} - 1, args.tensor(2), args.tensor(3), args.real(4), true,
       groups);
}

}  // namespace

std::span<const Op> norm_ops() {
  static constexpr Op kOps[] = {
      {{"layer_norm", 1, "Tensor x, int count, Tensor? weight, Tensor? bias, float eps -> Tensor"},
       layer_norm,
       glsl::norm::axes,
       {"x=T[5,37] count=1 weight=T[37] bias=T[37] eps=0.00001; "
        "x=T[3,600]{4..9} count=1 eps=0.5; "
        "x=T[2,3,20] count=2 eps=0.00001",
        "x=f16[1024,768] count=1 weight=f16[768] bias=f16[768] eps=0.00001", reference::layer_norm}},
      {{"group_norm", 1, "Tensor x, int groups, Tensor? weight, Tensor? bias, float eps -> Tensor"},
       group_norm,
       glsl::norm::axes,
       {"x=T[2,6,5] groups=3 weight=T[6] bias=T[6] eps=0.00001",
        "x=f16[8,64,56,56] groups=8 weight=f16[64] bias=f16[64] eps=0.00001", reference::group_norm}},
      {{"rms_norm", 1, "Tensor x, int count, Tensor? weight, float eps -> Tensor"},
       rms_norm,
       glsl::norm::axes,
       {"x=T[5,37] count=1 weight=T[37] eps=0.000001", "x=f16[1024,768] count=1 weight=f16[768] eps=0.000001",
        reference::rms_norm}},
  };
  return kOps;
}

}  // namespace pumice::engine
