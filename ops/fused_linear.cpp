// SPDX-License-Identifier: Apache-2.0
// A linear with what stands around it in a decoder:
//   x'[k]  = x[k] * rsqrt(mean(x^2) + eps) * norm[k]                          where `norm` is given
//   y[n]   = sum_k x'[k] * (weight[n, k] - zero[n, k / group]) * scale[n, k / group] + bias[n]
//   out[n] = act(y[n])                                                        or, `gated`, of half as many columns:
//   out[16 i + j] = act(y[32 i + j]) * y[32 i + 16 + j], j < 16
// The weight is i4 or i8 with scales, or f16 or f32 without; a layer's rows are whole blocks of 16 (32 where it is
// gated). A kernel for one row does all of it; at other sizes the norm, and where a kernel does not gate, the gate,
// have dispatches of their own.
//
// Error: that of the norm (ops/norm.cpp) in every x', then linear_error (ops/linear/error_bound.h), then, gated, that
// of a product of two such results, of which each may have been rounded.
#include "ops/reference/fused_linear.h"
#include "glsl/gate_multiply.h"
#include "ops/linear/fused_linear_node.h"
#include "ops/op.h"

namespace pumice::engine {
namespace {

constexpr const char* kOp = "fused_linear";

void build(Graph& graph, Args args) {
  const PackedWeight weight = pack_weight(graph, kOp, args.tensor(3), args.tensor(4), args.tensor(5), args.integer(7));
  fused_linear(graph, args.out(), args.tensor(0), weight,
               {.bias = args.tensor(6),
                .residual = {},
                .act = args.integer(8),
                .norm = args.tensor(1),
                .eps = static_cast<float>(args.real(2)),
                .gated = args.boolean(9)});
}

}  // namespace

std::span<const Op> fused_linear_ops() {
  static constexpr Op kOps[] = {
      {{"fused_linear", 1,
        "Tensor x, Tensor? norm, float eps, Tensor weight, Tensor? scale, Tensor? zero, Tensor? bias, int group, int "
        "act, bool gated -> Tensor"},
       build,
       glsl::gate_multiply::axes,
       {"x=T[1,1,128] norm=T[128] eps=0.000001 weight=const:i4[96,128] scale=const:f16[96,4]{0.01..0.1} group=32 act=4 "
        "gated=1 -> T[1,1,48]; "
        "x=T[3,128] norm=T[128] eps=0.000001 weight=const:i4[96,128] scale=const:f16[96,4]{0.01..0.1} group=32 act=4 "
        "gated=1 -> T[3,48]; "
        "x=T[70,200] norm=T[200] eps=0.5 weight=const:i8[64,200] scale=const:f32[64,1]{0.01..0.1} "
        "zero=const:i8[64,1]{-9..9} bias=T[64] group=200 act=2 gated=1 -> T[70,32]; "
        "x=T[1,200] norm=T[200] eps=0.5 weight=const:i8[48,200] scale=const:f32[48,1]{0.01..0.1} bias=T[48] group=200 "
        "act=0 gated=0 -> T[1,48]; "
        "x=T[1,72] eps=0 weight=const:T[64,72] bias=T[64] group=0 act=3 gated=1 -> T[1,32]; "
        "x=T[8,128] norm=T[128] eps=0.000001 weight=const:i4[96,128] scale=const:f16[96,4]{0.01..0.1} group=32 act=4 "
        "gated=1 -> T[8,48]; "
        "x=T[2,648] norm=T[648] eps=0.000001 weight=const:i8[48,648] scale=const:f32[48,1]{0.01..0.1} group=648 act=0 "
        "gated=0 -> T[2,48]; "
        "x=T[5,72] norm=T[72] eps=0.00001 weight=const:T[16,72] group=0 act=0 gated=0 -> T[5,16]; "
        "x=T[1,1024] norm=T[1024] eps=0.000001 weight=const:i4[8480,1024] scale=const:f16[8480,32]{0.01..0.1} group=32 "
        "act=4 gated=1 -> T[1,4240]; "
        "x=T[1,2048] norm=T[2048] eps=0.000001 weight=const:i4[2088,2048] scale=const:f16[2088,1]{0.01..0.1} "
        "group=2048 act=0 gated=0 -> T[1,2088]; "
        "x=T[1,1024] eps=0 weight=const:i4[4128,1024] scale=const:f16[4128,8]{0.01..0.1} bias=T[4128] group=128 act=3 "
        "gated=1 -> T[1,2064]",
        "x=f16[1,4096] norm=f16[4096] eps=0.000001 weight=const:i4[28672,4096] "
        "scale=const:f16[28672,128]{0.001..0.01} group=32 act=4 gated=1 -> f16[1,14336]; "
        "x=f16[8,2048] norm=f16[2048] eps=0.000001 weight=const:i4[16384,2048] "
        "scale=const:f16[16384,64]{0.001..0.01} group=32 act=4 gated=1 -> f16[8,8192]; "
        "x=f16[8,2048] norm=f16[2048] eps=0.000001 weight=const:i4[3072,2048] "
        "scale=const:f16[3072,64]{0.001..0.01} group=32 act=0 gated=0 -> f16[8,3072]; "
        "x=f16[4,4096] norm=f16[4096] eps=0.000001 weight=const:i4[28672,4096] "
        "scale=const:f16[28672,128]{0.001..0.01} group=32 act=4 gated=1 -> f16[4,14336]; "
        "x=f16[4,4096] norm=f16[4096] eps=0.000001 weight=const:i4[6144,4096] "
        "scale=const:f16[6144,128]{0.001..0.01} group=32 act=0 gated=0 -> f16[4,6144]; "
        "x=f16[512,4096] norm=f16[4096] eps=0.000001 weight=const:i4[28672,4096] "
        "scale=const:f16[28672,128]{0.001..0.01} group=32 act=4 gated=1 -> f16[512,14336]",
        reference::fused_linear}},
  };
  return kOps;
}

}  // namespace pumice::engine
