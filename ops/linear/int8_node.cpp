// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/int8_node.h"

#include <algorithm>
#include <cinttypes>

#include "glsl/copy.h"
#include "glsl/include/core/modes.glslh"
#include "glsl/quantize.h"
#include "ops/linear/int8_launch.h"
#include "ops/linear/launch.h"
#include "ops/linear/pick.h"
#include "ops/shared/textures.h"

namespace pumice::engine {
namespace {

// out = y as integers, for kernels that write floats.
void requantize(Graph& graph, const IntegerProduct& p, Tensor y) {
  const Requantize& requantize = p.requantize;
  const auto or_y = [&](const Tensor& tensor) { return tensor || p.textures ? tensor : y; };
  graph.dispatch({p.out}, {y, or_y(requantize.scales.tensor), or_y(requantize.zeros.tensor)}, [=](Launch& launch) {
    p.out.resize(linear_shape(p.op, p.rows.x.shape(), p.weight, p.epilogue));
    if (y.numel() == 0) return;
    Parameter scale = requantize.scales;
    Parameter zero = requantize.zeros;
    scale.number = requantize.inverse();
    zero.number = static_cast<float>(requantize.zero);
    std::vector<int64_t> block(y.rank(), scale.tensor ? 1 : -1);
    block.back() = -1;
    const QuantBlocks b = quant_blocks(y.shape(), block, p.op);
    check_count(scale, b, p.op, "scales of the output");
    check_count(zero, b, p.op, "zero points of the output");
    glsl::quantize::Params params{};
    over_blocks(launch, params, b, y, scale, zero, !p.textures);
    if (p.textures) over_texels(launch, params, y);
    params.low = static_cast<float>(requantize.low);
    params.high = static_cast<float>(requantize.high);
    launch.params(params);
    launch.spec.insert(launch.spec.end(), {STEPS_F32, 0});
    launch.shader = &glsl::quantize::variant(glsl::quantize::IN::f32, glsl::quantize::out(p.out.dtype()),
                                             static_cast<glsl::quantize::STORAGE>(p.textures));
  });
}

uint32_t rows_of(const IntegerProduct& p) {
  return u32(p.rows.x.numel() / p.weight.k);
}

// Adds the nodes of kernels that read the integers as whole numbers in floats or halves.
void add_floats(Graph& graph, const IntegerProduct& p, Input form) {
  const auto picks = [p, form](int64_t m, const Features& f) {
    return form_of(choose_linear(p.shape(m), f), p.shape(m)) == form;
  };
  const auto floats = quantized_rows(graph, p.op, p.rows, form);
  floats->wanted.emplace_back(picks);
  const DType dtype = p.rows.real_dtype();
  Tensor y = p.out;
  if (p.bytes()) y = graph.scratch(dtype, p.textures ? p.rows.x.rank() : 2);
  if (p.bytes() && p.textures) y = graph.texture_out(y);
  Epilogue epilogue = p.epilogue;
  epilogue.rows = floats->rows;
  graph.dispatch({y}, linear_reads(floats->x, p.weight, epilogue), [=](Launch& launch) {
    const Shape shape = linear_shape(p.op, p.rows.x.shape(), p.weight, p.epilogue);
    const uint32_t m = rows_of(p);
    const bool runs = m != 0 && picks(m, launch.features);
    y.resize(!p.bytes() ? shape : !runs ? Shape(y.rank(), 0) : p.textures ? shape : Shape{m, p.weight.n});
    Epilogue live = epilogue;
    if (p.textures) live.height = texels_of(p.rows.x).height;
    if (!runs) return;
    launch.tuned = is_tuned(p.shape(m), launch.features);
    launch_linear(launch, choose_linear(p.shape(m), launch.features), dtype, p.weight, m, live);
  });
  if (p.bytes()) requantize(graph, p, y);
}

// Where a row of the output does not end on a vec4 group, the groups of the next row cross words and would be written
// element by element. Tiles of matrices therefore write whole groups to a padded scratch, which is then copied.
bool pads_rows(const IntegerProduct& p, const LinearKernel& kernel) {
  return kernel.family == Family::matrix_int8 && p.weight.n % 4 != 0 && !p.epilogue.residual && !p.textures;
}

// out = the first columns of `rows`.
void launch_narrow(Launch& launch, const Tensor& out, const Tensor& rows) {
  const auto m = u32(rows.dim(0)), n = u32(out.shape().back()), stride = u32(rows.dim(1));
  const uint64_t to = uint64_t{n} * device_bytes(out.dtype()), from = uint64_t{stride} * device_bytes(out.dtype());
  const auto blocks = split_rows(m, {to, from}, launch.features);
  for (const RowRange& block : blocks) {
    glsl::copy::Params params{.count = block.count * n, .rank = 2, .base = 0, .step = 1};
    params.size[0] = block.count;
    params.size[1] = n;
    params.stride[0] = stride;
    params.stride[1] = 1;
    launch.params(params);
    launch.shader = &glsl::copy::variant(bits<glsl::copy::BITS>(out.dtype()));
    launch.over((params.count + 3) / 4);
    launch.spec.push_back(COPY_ANY);
    if (blocks.size() == 1) return;
    launch.binding_ranges = {binding_range(block, m, to), binding_range(block, m, from)};
    launch.next_dispatch();
  }
}

// Adds the nodes of kernels that multiply integers; `padded`: of those with pads_rows().
void add_integers(Graph& graph, const IntegerProduct& product, Input input, bool padded, Tensor sums) {
  IntegerProduct p = product;
  const auto picks = [=](int64_t m, const Features& f) {
    const LinearKernel& kernel = choose_linear(product.shape(m), f);
    return form_of(kernel, product.shape(m)) == input && pads_rows(product, kernel) == padded;
  };
  const auto runs = [=](const Launch& launch) {
    const uint32_t m = rows_of(product);
    return m != 0 && picks(m, launch.features);
  };
  if (p.textures) p.out = graph.scratch(p.out.dtype(), p.out.rank());
  if (padded) p.out = graph.scratch(p.out.dtype(), 2);
  if (padded) p.stride = (p.weight.n + 3) / 4 * 4;
  if (p.textures && p.epilogue.residual) {
    p.epilogue.residual = graph.scratch(p.out.dtype(), p.out.rank());
    graph.dispatch({p.epilogue.residual}, {product.epilogue.residual}, [=](Launch& launch) {
      p.epilogue.residual.resize(runs(launch) ? product.epilogue.residual.shape() : Shape(p.out.rank(), 0));
      if (runs(launch)) launch_copy(launch, p.epilogue.residual, product.epilogue.residual);
    });
  }
  Tensor x = p.rows.x, rows;
  if (input == Input::words) {
    const auto words = quantized_rows(graph, p.op, p.rows, input);
    words->wanted.emplace_back(picks);
    x = words->x;
    rows = words->rows;
  }
  graph.dispatch({p.out}, integer_reads(p, input, x, rows, sums), [=](Launch& launch) {
    const Shape shape = linear_shape(p.op, p.rows.x.shape(), p.weight, product.epilogue);
    const uint32_t m = rows_of(p);
    const bool direct = !padded && !p.textures;
    p.out.resize(!runs(launch) && !direct ? Shape(p.out.rank(), 0) : padded ? Shape{m, p.stride} : shape);
    if (!runs(launch)) return;
    launch.tuned = is_tuned(p.shape(m), launch.features);
    launch_integers(launch, choose_linear(p.shape(m), launch.features), p, m);
  });
  if (padded) {
    graph.dispatch({product.out}, {p.out}, [=](Launch& launch) {
      product.out.resize(linear_shape(p.op, p.rows.x.shape(), p.weight, product.epilogue));
      if (runs(launch)) launch_narrow(launch, product.out, p.out);
    });
  }
  if (!p.textures) return;
  graph.dispatch({product.out}, {p.out}, [=](Launch& launch) {
    product.out.resize(linear_shape(p.op, p.rows.x.shape(), p.weight, product.epilogue));
    if (runs(launch)) launch_copy(launch, product.out, p.out);
  });
}

}  // namespace

LinearShape IntegerProduct::shape(int64_t m) const {
  LinearShape shape = product_shape(weight, rows.real_dtype(), m);
  shape.integers = !(bytes() && requantize.is_extreme());
  shape.textures = textures;
  shape.op = op;
  return shape;
}

void linear_int8(Graph& graph, IntegerProduct p) {
  const DType dtype = p.rows.real_dtype();
  check(p.rows.x.rank() >= 1, "%s: x has no dimension", p.op);
  check(p.bytes() || p.out.dtype() == dtype, "%s: x is %s, the output %s", p.op, name(p.rows.x.dtype()),
        name(p.out.dtype()));
  check_epilogue(p.op, dtype, p.epilogue);
  p.stride = p.weight.n;
  p.textures = take_textures(graph, p.rows.x, p.out, &p.epilogue.residual);
  add_floats(graph, p, Input::floats);
  const Features& features = graph.features();
  if (may_read(Input::halves, p.shape(1), features)) add_floats(graph, p, Input::halves);
  Tensor sums;
  const bool may_pad = std::any_of(linear_kernels().begin(), linear_kernels().end(), [&](const LinearKernel& kernel) {
    return pads_rows(p, kernel) && unsupported_reason(kernel, p.shape(1), features).empty();
  });
  for (const Input input : {Input::words, Input::x}) {
    if (!may_read(input, p.shape(1), features)) continue;
    if (!sums) sums = weight_sums(graph, p.weight);
    add_integers(graph, p, input, false, sums);
    if (input == Input::words && may_pad) add_integers(graph, p, input, true, sums);
  }
}

void check_range(int64_t low, int64_t high, const char* op) {
  check(low < high && low >= -128 && high <= 255 && (low >= 0 || high <= 127),
        "%s: %" PRId64 "..%" PRId64 " is not within -128..127 or 0..255", op, low, high);
}

}  // namespace pumice::engine
