// SPDX-License-Identifier: Apache-2.0
#include "ops/common/linear_int8.h"

#include <cinttypes>
#include <cmath>

#include "glsl/include/modes.glslh"
#include "glsl/linear_quantize.h"
#include "glsl/quantize.h"

namespace pumice {
namespace {

using FORM = glsl::linear_quantize::FORM;

// One form of the rows of x, made once for all linears that read the same x with the same parameters.
struct QuantizedRows {
  Tensor x, rows;
  // For `m` rows on that device: whether a linear reads this form.
  std::vector<std::function<bool(int64_t m, const Features&)>> wanted;
};

// The dtype that x stands for.
DType real_dtype(const Tensor& x) {
  return x.dtype() == DType::f16 ? DType::f16 : DType::f32;
}

std::string key_of(const RowSource& from, FORM form) {
  const auto id = [](const Tensor& tensor) { return tensor ? tensor.id() : ~0u; };
  return format("rows %u %u %u %u %a %" PRId64 " %" PRId64 " %a %" PRId64 " %u %u", static_cast<uint32_t>(form),
                from.x.id(), from.source, from.mapping, static_cast<double>(from.eps), from.low, from.high, from.scale,
                from.zero, id(from.scales.tensor), id(from.zeros.tensor));
}

void check_given(const Parameter& parameter, int64_t m, const char* op, const char* what) {
  const int64_t count = parameter.tensor.numel();
  check(count == 1 || count == m, "%s: %" PRId64 " %s for %" PRId64 " rows", op, count, what, m);
}

void launch_rows(Launch& launch, const QuantizedRows& made, const RowSource& from, FORM form, const char* op) {
  const int64_t k = from.x.dim(-1), m = k == 0 ? 0 : from.x.numel() / k, tiles = (k + 63) / 64;
  const auto wants = [&](const auto& wanted) { return wanted(m, launch.features); };
  if (m == 0 || std::none_of(made.wanted.begin(), made.wanted.end(), wants)) {
    made.x.resize(Shape(made.x.rank(), 0));
    made.rows.resize({0, 2});
    return;
  }
  made.x.resize(form == FORM::words ? Shape{tiles, m, 16} : Shape{m, tiles * 64});
  made.rows.resize({m, 2});
  u32(made.x.numel());
  glsl::linear_quantize::Params params{};
  params.m = u32(m);
  params.k = u32(k);
  params.tiles = u32(tiles);
  if (from.source == ROWS_GIVEN) {
    check_given(from.scales, m, op, "scales");
    check_given(from.zeros, m, op, "zero points");
    check(from.scales.tensor.numel() == from.zeros.tensor.numel(), "%s: scales and zero points differ in number", op);
    params.step = from.scales.tensor.numel() == 1 ? 0 : 1;
  }
  params.shift = from.high > 127 ? 128 : 0;
  params.low = static_cast<float>(from.low);
  params.high = static_cast<float>(from.high);
  params.eps = from.eps;
  params.x_scale = static_cast<float>(from.scale);
  params.x_inverse = static_cast<float>(1.0 / from.scale);  // of a Python number PyTorch takes the reciprocal in fp64
  params.x_zero = static_cast<float>(from.zero);
  launch.params(params);
  const uint32_t lanes = params.tiles <= 8 ? 32 : params.tiles <= 16 ? 64 : 128;
  launch.over(uint64_t{params.m} * lanes, lanes);
  // torchao chooses parameters, and quantizes with them, in the dtype of x; quantized_decomposed quantizes in fp32.
  const bool half_steps = from.source == ROWS_CHOSEN && from.x.dtype() == DType::f16;
  launch.spec.insert(launch.spec.end(), {from.source, from.mapping, half_steps ? STEPS_F16 : STEPS_F32,
                                         from.scales.stored, from.zeros.stored, uint32_t{k % 4 == 0}});
  launch.shader = &glsl::linear_quantize::variant(glsl::linear_quantize::in(from.x.dtype()), form);
}

std::shared_ptr<QuantizedRows> quantized_rows(Graph& graph, const char* op, const RowSource& from, FORM form) {
  const std::shared_ptr<QuantizedRows> made = graph.shared<QuantizedRows>(key_of(from, form));
  if (made->x) return made;
  made->x = form == FORM::words ? graph.scratch(DType::i32, 3) : graph.scratch(real_dtype(from.x), 2);
  made->rows = graph.scratch(DType::i32, 2);
  const auto or_x = [&](const Tensor& tensor) { return tensor ? tensor : from.x; };
  // The nodes of this graph keep `made` alive, which holds no node.
  graph.dispatch({made->x, made->rows}, {from.x, or_x(from.scales.tensor), or_x(from.zeros.tensor)},
                 [=](Launch& launch) { launch_rows(launch, *made, from, form, op); });
  return made;
}

// out = y as integers: for kernels that make floats.
void requantize(Graph& graph, const char* op, Tensor out, Tensor y, const Requantize& again,
                const std::function<Shape()>& out_shape) {
  const auto or_y = [&](const Tensor& tensor) { return tensor ? tensor : y; };
  graph.dispatch({out}, {y, or_y(again.scales.tensor), or_y(again.zeros.tensor)}, [=](Launch& launch) {
    out.resize(out_shape());
    if (y.numel() == 0) return;
    Parameter scale = again.scales;
    Parameter zero = again.zeros;
    scale.number = static_cast<float>(1.0 / again.scale);
    zero.number = static_cast<float>(again.zero);
    const Blocks b = blocks(y.shape(), {scale.tensor ? 1 : -1, -1}, op);
    check_count(scale, b, op, "scales of the output");
    check_count(zero, b, op, "zero points of the output");
    glsl::quantize::Params params{};
    over_blocks(launch, params, b, y, scale, zero);
    params.low = static_cast<float>(again.low);
    params.high = static_cast<float>(again.high);
    launch.params(params);
    launch.spec.insert(launch.spec.end(), {STEPS_F32, 0});
    launch.shader = &glsl::quantize::variant(glsl::quantize::IN::f32, glsl::quantize::out(out.dtype()));
  });
}

}  // namespace

void check_range(int64_t low, int64_t high, const char* op) {
  check(low < high && low >= -128 && high <= 255 && (low >= 0 || high <= 127),
        "%s: %" PRId64 "..%" PRId64 " is not within -128..127 or 0..255", op, low, high);
}

void linear_int8(Graph& graph, const char* op, Tensor out, const RowSource& rows, const PackedWeight& weight,
                 const Epilogue& end, const Requantize* again) {
  const DType dtype = real_dtype(rows.x);
  check(rows.x.rank() >= 1, "%s: x has no dimension", op);
  check(again ? out.dtype() == DType::i8 || out.dtype() == DType::u8 : out.dtype() == dtype,
        "%s: x is %s, the output %s", op, name(rows.x.dtype()), name(out.dtype()));
  check_epilogue(op, dtype, end);
  const auto shape_of = [=](int64_t m) {
    return LinearShape{m, weight.n, weight.k, weight.group, weight.storage, dtype, weight.scale_f16};
  };
  const auto floats = quantized_rows(graph, op, rows, FORM::floats);
  floats->wanted.push_back([](int64_t, const Features&) { return true; });
  Epilogue scaled = end;
  scaled.rows = floats->rows;
  const Tensor y = again ? graph.scratch(dtype, 2) : out;
  graph.dispatch({y}, linear_reads(floats->x, weight, scaled), [=](Launch& launch) {
    const Shape shape = linear_shape(op, rows.x.shape(), weight, end);
    const uint32_t m = u32(rows.x.numel() / weight.k);
    y.resize(y.id() == out.id() ? shape : Shape{m, weight.n});
    if (m != 0) launch_linear(launch, choose_linear(shape_of(m), launch.features), dtype, weight, m, scaled);
  });
  if (again) {
    requantize(graph, op, out, y, *again, [=] { return linear_shape(op, rows.x.shape(), weight, end); });
  }
}

}  // namespace pumice
