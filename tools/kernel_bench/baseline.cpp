// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/baseline.h"

#include "glsl/bench_copy.h"
#include "glsl/linear_q4gsw_plain.h"
#include "ops/linear/packed_weight.h"
#include "ops/op.h"
#include "ops/shared/shape.h"

namespace pumice::engine::kernel_bench {
namespace {

constexpr uint32_t kLanes = 64;

// The weight's bytes as the file stores them, as a tensor of i8: only pack kernels may read i4.
Tensor as_it_is(Graph& graph, Tensor weight) {
  const auto vectors = u32(((weight.dim(1) + 1) / 2 * weight.dim(0) + 15) / 16);
  return graph.prepack("plain copy", {weight}, DType::i32, {int64_t{vectors} * 4}, [=](Launch& launch) {
    launch.over(vectors);
    launch.params(glsl::bench_copy::Params{vectors, launch.groups[0] * launch.groups[1] * launch.spec[0]});
    launch.shader = &glsl::bench_copy::variant(glsl::bench_copy::DOES::copy);
  });
}

void linear_q4gsw_plain(Graph& graph, Args args) {
  const Tensor x = args.tensor(0), weight = args.tensor(1), scale = args.tensor(2), zero = args.tensor(3),
               bias = args.tensor(4), out = args.out();
  check(args.integer(6) == 0 && !args.has(7), "linear_q4gsw_plain: no activation, no residual");
  check(scale.dtype() == x.dtype(), "linear_q4gsw_plain: scales must be of x's type");
  const auto n = u32(weight.dim(0)), k = u32(weight.dim(1)), group = u32(args.integer(5));
  const Tensor bytes = as_it_is(graph, weight);
  graph.dispatch({out}, {x, bytes, scale, zero ? zero : scale, bias ? bias : scale}, [=](Launch& launch) {
    const auto m = u32(x.dim(0));
    out.resize({m, n});
    launch.over_groups(uint64_t{m} * n, kLanes);
    launch.params(glsl::linear_q4gsw_plain::Params{m, n, k, group});
    launch.spec.insert(launch.spec.end(), {bool(zero), bool(bias)});
    launch.shader = &glsl::linear_q4gsw_plain::variant(glsl::linear_q4gsw_plain::dtype(x.dtype()));
  });
}

}  // namespace

std::span<const Op> baselines() {
  static constexpr Op kOps[] = {
      {{"linear_q4gsw_plain", 1,
        "Tensor x, Tensor weight, Tensor scale, Tensor? zero, Tensor? bias, int group, int act, "
        "Tensor? residual -> Tensor"},
       linear_q4gsw_plain,
       glsl::linear_q4gsw_plain::axes},
  };
  return kOps;
}

std::string plain_unsupported_reason(const Case& c, const Features& features) {
  if (c.act != 0) return "has no activation functions";
  if (c.in_textures() || c.weight_in_texture()) return "takes no textures";
  if (c.scale != c.dtype) return "takes scales of x's type";
  if (!features.runs(glsl::linear_q4gsw_plain::variant(glsl::linear_q4gsw_plain::dtype(c.dtype))))
    return "needs the features storage8 and storage16, which this device lacks or which were switched off";
  return "";
}

}  // namespace pumice::engine::kernel_bench
