// SPDX-License-Identifier: Apache-2.0
// Squeeze and excite, the factors of the channels of an image from their means x [N, C]:
//   h = act(x weight1^T + bias1)      weight1 [R, C]
//   out = gate(h weight2^T + bias2)   weight2 [C, R]; gate 0 sigmoid, 1 hardsigmoid
// h stays in fp32. Biases are fp32.
//
// Error, u = 2^-24, S = sum|terms| of a sum and its bias, L the largest slope of act (ops/reference/products.h):
//   e[r] = u (C + 2) S1[r] L + that of act;   |err| <= (u (R + 2) S2 + sum_r |weight2| e[r]) / 4 + that of gate
// or, for each of the two sums, the bound by chance of ops/shared/sum_error.h; the slope of hardsigmoid is 1/6. sigmoid
// s of y is off by 2^-23 (3 + 2|y|) s (1 - s) by the driver's exp, and 6 u s by an addition and a division.
#include "glsl/squeeze_excite.h"

#include <algorithm>
#include <bit>
#include <cinttypes>

#include "base/divide.h"
#include "glsl/include/math/activation.glslh"
#include "glsl/squeeze_excite_pack.h"
#include "ops/linear/registers.h"
#include "ops/op.h"
#include "ops/reference/products.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

constexpr const char* kOp = "squeeze_excite";
constexpr int64_t kMostHidden = 1024;    // 4 KiB of shared memory
constexpr int64_t kMostChannels = 8192;  // one workgroup goes through a whole weight

// Rows of x are whole vec4 groups.
bool is_whole(int64_t channels) {
  return channels % 4 == 0;
}

// Words of a weight that a lane has on the way. Mali by Mesa's compiler, fp16, spills and fills of 8: 4 to 12, of 4:
// none. Other rows are read an element at a time, which is four times as much code for each word; they are rare.
uint32_t words_ahead(const Features& features, int64_t channels) {
  if (!is_whole(channels)) return 2;
  return takes_least_tiles(features) ? 4 : 8;
}

int64_t words_of(int64_t columns, DType dtype) {
  return ceil_div(columns, 16 / device_bytes(dtype));
}

Tensor pack(Graph& graph, Tensor weight, Tensor bias) {
  const int64_t rows = weight.dim(0), words = words_of(weight.dim(1), weight.dtype()) * rows;
  const int64_t count = words + ceil_div(rows, 4);
  return graph.prepack("squeeze_excite_pack", {weight, bias ? bias : weight}, DType::i32, {count * 4},
                       [=](Launch& launch) {
                         using namespace glsl::squeeze_excite_pack;
                         launch.over(u32(count));
                         launch.spec.push_back(static_cast<bool>(bias));
                         launch.params(Params{u32(rows), u32(weight.dim(1)), u32(words), u32(count)});
                         launch.shader = &variant(weight.dtype() == DType::f16 ? BITS::b16 : BITS::b32);
                       });
}

void check_layer(Tensor weight, Tensor bias, int64_t rows, int64_t columns) {
  check(weight.rank() == 2 && weight.dim(0) == rows && weight.dim(1) == columns,
        "%s: a weight is not [%" PRId64 ", %" PRId64 "]", kOp, rows, columns);
  check(!bias || (bias.dtype() == DType::f32 && bias.rank() == 1 && bias.dim(0) == rows),
        "%s: a bias is not f32 [%" PRId64 "]", kOp, rows);
}

void launch_kernel(Launch& launch, int64_t rows, int64_t channels, int64_t hidden, DType dtype) {
  const Features& features = launch.features;
  const uint32_t most = std::min(features.few_registers ? 256u : 512u, std::bit_floor(features.max_invocations));
  const int64_t items = ceil_div(words_of(channels, dtype) * hidden, words_ahead(features, channels));
  const uint32_t lanes = features.cpu ? 32 : std::clamp(std::bit_ceil(u32(items)), 64u, most);
  // As many workgroups for a row as there are outputs for their lanes, and idle units.
  const int64_t idle = features.cpu ? 1 : std::max<int64_t>(1, features.units() / rows);
  const int64_t span = ceil_div(ceil_div(channels, std::min(idle, ceil_div(channels, lanes))), 4) * 4;
  const int64_t parts = ceil_div(channels, span);
  launch.over_groups(static_cast<uint64_t>(rows * parts), lanes);
  launch.params(glsl::squeeze_excite::Params{u32(rows), u32(channels), u32(hidden), u32(parts), u32(span)});
  launch.flops = 4ull * static_cast<uint64_t>(rows * channels * hidden);
}

void squeeze_excite(Graph& graph, Args args) {
  const Tensor x = args.tensor(0), weight1 = args.tensor(1), weight2 = args.tensor(3), out = args.out();
  const Tensor bias1 = args.tensor(2), bias2 = args.tensor(4);
  const int64_t act = args.integer(5), gate = args.integer(6);
  const DType dtype = x.dtype();
  check(is_float(dtype) && x.rank() == 2, "%s: x is %s of rank %u", kOp, name(dtype), x.rank());
  for (const Tensor& other : {weight1, weight2, out})
    check(other.dtype() == dtype, "%s: x is %s, a weight or the output %s", kOp, name(dtype), name(other.dtype()));
  check(act >= ACT_NONE && act <= ACT_LAST, "%s: activation %" PRId64 "; 0 to %u are known", kOp, act, ACT_LAST);
  check(gate >= 0 && gate <= 1, "%s: gate %" PRId64 "; 0 and 1 are known", kOp, gate);
  check(weight1.rank() == 2, "%s: a weight of rank %u", kOp, weight1.rank());
  const int64_t hidden = weight1.dim(0), channels = weight1.dim(1);
  check(hidden >= 1 && hidden <= kMostHidden && channels >= 1 && channels <= kMostChannels,
        "%s: %" PRId64 " channels by %" PRId64 " hidden values; at most %" PRId64 " by %" PRId64, kOp, channels, hidden,
        kMostChannels, kMostHidden);
  check_layer(weight1, bias1, hidden, channels);
  check_layer(weight2, bias2, channels, hidden);
  const Tensor squeeze = pack(graph, weight1, bias1), excite = pack(graph, weight2, bias2);
  graph.dispatch({out}, {x, squeeze, excite}, [=](Launch& launch) {
    check(x.dim(1) == channels, "%s: x has %" PRId64 " columns, the weight %" PRId64, kOp, x.dim(1), channels);
    out.resize(x.shape());
    if (x.numel() == 0) return;
    u32(x.numel());
    launch_kernel(launch, x.dim(0), channels, hidden, dtype);
    const uint32_t vec4s = u32(ceil_div(hidden, 64) * 16);
    launch.spec.insert(launch.spec.end(),
                       {static_cast<uint32_t>(act), static_cast<uint32_t>(gate), uint32_t{is_whole(channels)}, vec4s,
                        words_ahead(launch.features, channels)});
    launch.shader = &glsl::squeeze_excite::variant(glsl::squeeze_excite::dtype(dtype));
    launch.outer = 1;
  });
}

}  // namespace

std::span<const Op> squeeze_excite_ops() {
  static constexpr Op kOps[] = {
      {{"squeeze_excite", 1,
        "Tensor x, Tensor weight1, Tensor? bias1, Tensor weight2, Tensor? bias2, int act, int gate -> Tensor"},
       squeeze_excite,
       glsl::squeeze_excite::axes,
       {"x=T[1,6]|T[3,6] weight1=const:T[2,6] bias1=const:f32[2] weight2=const:T[6,2] bias2=const:f32[6] act=1|4 "
        "gate=0|1; "
        "x=T[2,37] weight1=const:T[5,37]{-0.5..0.5} weight2=const:T[37,5] act=0|2|3|5|6|7 gate=0; "
        "x=T[3,300] weight1=const:T[9,300]{-0.2..0.2} bias1=const:f32[9] weight2=const:T[300,9]{-0.5..0.5} "
        "bias2=const:f32[300] act=4 gate=0|1; "
        "x=T[1,1152] weight1=const:T[48,1152]{-0.1..0.1} bias1=const:f32[48] weight2=const:T[1152,48]{-0.3..0.3} "
        "bias2=const:f32[1152] act=4 gate=0; "
        "x=T[1,9] weight1=const:T[600,9]{-0.5..0.5} bias1=const:f32[600] weight2=const:T[9,600]{-0.1..0.1} "
        "bias2=const:f32[9] act=1 gate=0|1",
        "x=f16[1,96] weight1=const:f16[4,96] bias1=const:f32[4] weight2=const:f16[96,4] bias2=const:f32[96] act=4 "
        "gate=0; "
        "x=f16[1,1152]|f16[8,1152] weight1=const:f16[48,1152]{-0.1..0.1} bias1=const:f32[48] "
        "weight2=const:f16[1152,48]{-0.3..0.3} bias2=const:f32[1152] act=4 gate=0; "
        "x=f16[1,2048] weight1=const:f16[128,2048]{-0.1..0.1} bias1=const:f32[128] "
        "weight2=const:f16[2048,128]{-0.3..0.3} bias2=const:f32[2048] act=1 gate=0; "
        "x=f32[1,960] weight1=const:f32[240,960]{-0.1..0.1} bias1=const:f32[240] "
        "weight2=const:f32[960,240]{-0.3..0.3} bias2=const:f32[960] act=1 gate=1",
        reference::squeeze_excite}},
  };
  return kOps;
}

}  // namespace pumice::engine
