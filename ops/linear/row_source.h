// SPDX-License-Identifier: Apache-2.0
// The rows of a linear's x as 8-bit integers with a scale and a zero point each (glsl/include/quant/row_source.glslh).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "ops/linear/kernels.h"
#include "ops/quant/blocks.h"

namespace pumice::engine {

// Where the integers of x, and the scale and zero point of each row, come from.
struct RowSource {
  Tensor x;                        // f32, f16: quantized; i8, u8: integers
  uint32_t source = 0;             // ROWS_* of glsl/include/core/modes.glslh
  uint32_t mapping = 0;            // of chosen parameters: one of torchao's MappingType, QPARAMS_*
  float eps = 0;                   // the least scale, likewise
  int64_t low = -128, high = 127;  // of the integers: within -128..127 or 0..255
  double scale = 1;                // numbers
  int64_t zero = 0;
  Parameter scales = {}, zeros = {};  // tensors, an element for each row or one

  DType real_dtype() const { return x.dtype() == DType::f16 ? DType::f16 : DType::f32; }
  int32_t shift() const { return high > 127 ? 128 : 0; }  // subtracted from the integers to make them signed bytes
  bool may_have_zero() const;                             // whether a zero point, plus shift(), may be other than 0
  bool texture() const { return x.storage() == StorageType::texture3d; }
};

// The push constants of a shader that quantizes `m` rows, and its specialization constants from SOURCE_SPEC on.
struct SourceParams {
  uint32_t step;
  float inverse;
};
SourceParams source_params(const RowSource& from, int64_t m, const char* op);
std::vector<uint32_t> source_spec(const RowSource& from, int64_t k);
template <class Params>
void put_source(Params& params, const RowSource& from, int64_t m, const char* op) {
  const SourceParams made = source_params(from, m, op);
  params.step = made.step;
  params.shift = from.shift();
  params.low = static_cast<float>(from.low);
  params.high = static_cast<float>(from.high);
  params.eps = from.eps;
  params.x_scale = static_cast<float>(from.scale);
  params.x_inverse = made.inverse;
  params.x_zero = static_cast<float>(from.zero);
}

// One form of the rows, made once for all linears that read the same x with the same parameters, and only at sizes
// where one of them needs it: for other sizes both tensors are empty. Floats are a texture of x's dimensions where x is
// one.
struct QuantizedRows {
  Tensor x, rows;  // glsl/linear_quantize.glsl
  std::vector<std::function<bool(int64_t m, const Features&)>> wanted;
};
std::shared_ptr<QuantizedRows> quantized_rows(Graph& graph, const char* op, const RowSource& from, Input form);

}  // namespace pumice::engine
