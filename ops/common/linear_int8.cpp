// SPDX-License-Identifier: Apache-2.0
#include "ops/common/linear_int8.h"

#include <cinttypes>

#include "glsl/include/modes.glslh"
#include "glsl/quantize.h"

namespace pumice {
namespace {

// out = y as integers: for kernels that make floats.
void requantize(Graph& graph, const IntegerProduct& p, Tensor y) {
  const Requantize& again = p.again;
  const auto or_y = [&](const Tensor& tensor) { return tensor ? tensor : y; };
  graph.dispatch({p.out}, {y, or_y(again.scales.tensor), or_y(again.zeros.tensor)}, [=](Launch& launch) {
    p.out.resize(linear_shape(p.op, p.rows.x.shape(), p.weight, p.end));
    if (y.numel() == 0) return;
    Parameter scale = again.scales;
    Parameter zero = again.zeros;
    scale.number = again.inverse();
    zero.number = static_cast<float>(again.zero);
    const Blocks b = blocks(y.shape(), {scale.tensor ? 1 : -1, -1}, p.op);
    check_count(scale, b, p.op, "scales of the output");
    check_count(zero, b, p.op, "zero points of the output");
    glsl::quantize::Params params{};
    over_blocks(launch, params, b, y, scale, zero);
    params.low = static_cast<float>(again.low);
    params.high = static_cast<float>(again.high);
    launch.params(params);
    launch.spec.insert(launch.spec.end(), {STEPS_F32, 0});
    launch.shader = &glsl::quantize::variant(glsl::quantize::IN::f32, glsl::quantize::out(p.out.dtype()));
  });
}

uint32_t rows_of(const IntegerProduct& p) {
  return u32(p.rows.x.numel() / p.weight.k);
}

// By kernels that take whole numbers for floats.
void add_floats(Graph& graph, const IntegerProduct& p) {
  const auto wants = [p](int64_t m, const Features& f) { return choose_linear(p.shape(m), f).input == Input::floats; };
  const auto floats = quantized_rows(graph, p.op, p.rows, Input::floats);
  floats->wanted.emplace_back(wants);
  const DType dtype = p.rows.real_dtype();
  const Tensor y = p.bytes() ? graph.scratch(dtype, 2) : p.out;
  Epilogue end = p.end;
  end.rows = floats->rows;
  graph.dispatch({y}, linear_reads(floats->x, p.weight, end), [=](Launch& launch) {
    const Shape shape = linear_shape(p.op, p.rows.x.shape(), p.weight, p.end);
    const uint32_t m = rows_of(p);
    const bool runs = m != 0 && wants(m, launch.features);
    y.resize(!p.bytes() ? shape : runs ? Shape{m, p.weight.n} : Shape{0, 0});
    if (runs) launch_linear(launch, choose_linear(p.shape(m), launch.features), dtype, p.weight, m, end);
  });
  if (p.bytes()) requantize(graph, p, y);
}

// By kernels that multiply integers.
void add_integers(Graph& graph, const IntegerProduct& p, Input input, Tensor sums) {
  const auto wants = [=](int64_t m, const Features& f) { return choose_linear(p.shape(m), f).input == input; };
  Tensor x = p.rows.x, rows;
  if (input == Input::words) {
    const auto words = quantized_rows(graph, p.op, p.rows, input);
    words->wanted.emplace_back(wants);
    x = words->x;
    rows = words->rows;
  }
  graph.dispatch({p.out}, integer_reads(p, input, x, rows, sums), [=](Launch& launch) {
    p.out.resize(linear_shape(p.op, p.rows.x.shape(), p.weight, p.end));
    const uint32_t m = rows_of(p);
    if (m != 0 && wants(m, launch.features)) launch_integers(launch, choose_linear(p.shape(m), launch.features), p, m);
  });
}

// Whether some kernel that reads x so may run here at some size.
bool may_run(const IntegerProduct& p, Input input, const Features& features) {
  for (const LinearKernel& kernel : linear_kernels()) {
    if (kernel.input == input && why_not(kernel, p.shape(1), features).empty()) return true;
  }
  return false;
}

}  // namespace

LinearShape IntegerProduct::shape(int64_t m) const {
  return {.m = m,
          .n = weight.n,
          .k = weight.k,
          .group = weight.group,
          .weight = weight.storage,
          .dtype = rows.real_dtype(),
          .scale_f16 = weight.scale_f16,
          .integers = !(bytes() && again.is_extreme())};
}

void linear_int8(Graph& graph, const IntegerProduct& p) {
  const DType dtype = p.rows.real_dtype();
  check(p.rows.x.rank() >= 1, "%s: x has no dimension", p.op);
  check(p.bytes() || p.out.dtype() == dtype, "%s: x is %s, the output %s", p.op, name(p.rows.x.dtype()),
        name(p.out.dtype()));
  check_epilogue(p.op, dtype, p.end);
  add_floats(graph, p);
  const Features& features = graph.features();
  Tensor sums;
  for (const Input input : {Input::words, Input::x}) {
    if (!may_run(p, input, features)) continue;
    if (!sums) sums = weight_sums(graph, p.weight);
    add_integers(graph, p, input, sums);
  }
}

void check_range(int64_t low, int64_t high, const char* op) {
  check(low < high && low >= -128 && high <= 255 && (low >= 0 || high <= 127),
        "%s: %" PRId64 "..%" PRId64 " is not within -128..127 or 0..255", op, low, high);
}

}  // namespace pumice
