// SPDX-License-Identifier: Apache-2.0
// What the operators around matrix products share: which kernel runs at which shape (pure functions, tested without a
// GPU), prepacked weights, and the linear node itself.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ops/op.h"

namespace pumice {

// A tile of gemm.glslh: bm x bn outputs a workgroup, tm x tn an invocation.
struct Tile {
  uint32_t bm, bn, tm, tn;
  uint32_t lanes() const { return bm / tm * (bn / tn); }
  uint32_t shared_bytes() const { return (bm + bn) * 20 * 4; }  // rows of 16 floats and 4 of padding
  bool operator==(const Tile&) const = default;
};

// How x[m, k] . w[n, k]^T is computed: by linear_gemv.glsl (rows of x a pass, 0 = not), else by linear_tiled.glsl.
struct LinearKernel {
  uint32_t rows = 0;
  uint32_t lanes = 0;   // of the GEMV
  uint32_t strips = 1;  // of 16 weight rows a workgroup takes
  uint32_t depth = 1;   // tiles of weights a lane has on their way
  Tile tile{};
  bool operator==(const LinearKernel&) const = default;
};

// The kernel for live sizes; m, n, k >= 1.
LinearKernel pick_linear(int64_t m, int64_t n, int64_t k, const Features& features);
// The tile for `batch` products of m x k and k x n.
Tile pick_tile(int64_t batch, int64_t m, int64_t n, const Features& features);

// For tests and measurements: PUMICE_KERNEL=gemv1|gemv8|gemv4x2|tile32x64|... takes the place of what was picked
// where the device can run it. Throws InvalidArgument on another name.
LinearKernel forced(LinearKernel picked, int64_t k, const Features& features);

enum class Storage : uint32_t { q4, q8, f16, f32 };  // in the order of the shaders' axis WEIGHT

// A weight [n, k] in the layout of glsl/include/packed.glslh, made at load.
struct PackedWeight {
  Tensor weight, scale, zero;  // scale and zero: quantized ones only; zero: empty when all zero points are 0
  Storage storage = Storage::f32;
  uint32_t n = 0, k = 0;
  uint32_t groups = 1, group = 0;  // of a row, and the columns of one; group 0: the whole row
  bool scale_f16 = false;
};

// `weight`: f32, f16, i8 or i4 constant [N, K]; quantized ones have `scale` [N, G] (f32, f16), maybe `zero` [N, G]
// (i8), and groups of `group` columns: G * group == K, and one group or a multiple of 4 columns.
PackedWeight pack_weight(Graph& graph, const char* op, Tensor weight, Tensor scale = {}, Tensor zero = {},
                         int64_t group = 0);

// out[..., n] = act(x[..., k] . weight^T + bias) + residual[..., n]; bias and residual may be absent; act: ACT_* of
// glsl/include/activation.glslh. Adds the node.
struct Epilogue {
  Tensor bias, residual;
  int64_t act = 0;
};
void linear(Graph& graph, const char* op, Tensor out, Tensor x, const PackedWeight& weight, const Epilogue& end);

// Checks an `act` argument.
uint32_t activation(int64_t act, const char* op);

// Workgroups counted along x, then y (group() of glsl/include/launch.glslh).
void over_groups(Launch& launch, uint64_t groups, uint32_t lanes);

}  // namespace pumice
