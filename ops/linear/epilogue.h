// SPDX-License-Identifier: Apache-2.0
// What a linear does besides its product: a norm of x before it; bias, scale of each row, activation, residual after
// it.
#pragma once

#include <cstdint>

#include "ops/linear/packed_weight.h"

namespace pumice::engine {

// Layer norms of what a product reads (linear/layer_norm.glslh), and the moments of what it writes.
struct LayerNorms {
  struct Norm {
    Tensor factors;  // [2, columns]: weight and bias
    Tensor moments;  // f32 [rows, columns / 16, 2]
    MomentsOf from = MomentsOf::none;
    float eps = 0;
  };
  Norm x = {}, residual = {};
  bool leaves = false;  // moments
  bool any() const { return leaves || x.from != MomentsOf::none || residual.from != MomentsOf::none; }
};

// out[..., n] = act(x[..., k] . weight^T * row + bias) + residual[..., n]; bias and residual may be absent; act: ACT_*
// of glsl/include/math/activation.glslh.
// `norm`, `center`, `norms`, `patches` and `gated` are for kernels that fuses_norm, centers_row, fuses_layer_norm,
// reads_patches and gated_kernel (ops/linear/kernels.h) name.
struct Epilogue {
  Tensor bias, residual;
  int64_t act = 0;
  uint32_t height = 0;  // of the textures that x, residual and out are; 0: they are buffers
  Tensor norm = {};     // [k]: x is rms_norm(x) with this weight; then there is no residual
  bool center = false;  // norm is [2, k]: x is layer_norm(x) with this weight and bias
  float eps = 0;        // of that norm
  LayerNorms norms = {};
  struct Patches {
    uint32_t height = 0, width = 0, image_height = 0, image_width = 0, zeros = 0;
  } patches = {};  // x is an image, whose patches are the rows, with rows of zeros in front of them; height 0: is not
  bool gated = false;  // rows of the weight in blocks of 16, of a gate and of what it is multiplied with in turn
  Tensor rows = {};    // of quantized rows (glsl/linear_quantize.glsl): x then has whole tiles of columns
  // Columns of a row of x in a buffer: as many as the weight has, a multiple of 8 or any number; or padded with zeros
  // to whole tiles.
  enum class Columns : uint8_t { multiple_of_8, any, tiles } columns = Columns::multiple_of_8;
};
// Throws unless bias and residual have the types that go with an x of `dtype`.
void check_epilogue(const char* op, DType dtype, const Epilogue& epilogue);
// The live shape of `out`; throws when x, bias or residual do not fit the weight.
Shape linear_shape(const char* op, const Shape& x, const PackedWeight& weight, const Epilogue& epilogue);
// Checks an `act` argument.
uint32_t activation(int64_t act, const char* op);

}  // namespace pumice::engine
