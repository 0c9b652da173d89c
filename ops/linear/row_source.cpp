// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/row_source.h"

#include <algorithm>
#include <bit>
#include <cinttypes>

#include "glsl/include/core/modes.glslh"
#include "glsl/linear_quantize.h"
#include "ops/shared/textures.h"

namespace pumice::engine {
namespace {

using glsl::linear_quantize::FORM;
using glsl::linear_quantize::STORAGE;

std::string key_of(const RowSource& from, Input form) {
  const auto id = [](const Tensor& tensor) { return tensor ? tensor.id() : ~0u; };
  return format("rows %u %u %u %u %a %" PRId64 " %" PRId64 " %a %" PRId64 " %u %u", static_cast<uint32_t>(form),
                from.x.id(), from.source, from.mapping, static_cast<double>(from.eps), from.low, from.high, from.scale,
                from.zero, id(from.scales.tensor), id(from.zeros.tensor));
}

void check_given(const Parameter& parameter, int64_t m, const char* op, const char* what) {
  const int64_t count = parameter.tensor.numel();
  check(count == 1 || count == m, "%s: %" PRId64 " %s for %" PRId64 " rows", op, count, what, m);
}

void launch_rows(Launch& launch, const QuantizedRows& made, const RowSource& from, Input form, const char* op) {
  const int64_t k = from.x.dim(-1), m = k == 0 ? 0 : from.x.numel() / k, tiles = (k + 63) / 64;
  const auto needs = [&](const auto& wanted) { return wanted(m, launch.features); };
  if (m == 0 || std::none_of(made.wanted.begin(), made.wanted.end(), needs)) {
    made.x.resize(Shape(made.x.rank(), 0));
    made.rows.resize({0, 0});
    return;
  }
  const bool texture = from.texture();
  Shape floats = texture ? from.x.shape() : Shape{m, 0};
  floats.back() = tiles * 64;
  made.x.resize(form == Input::words ? Shape{tiles, m, 16} : floats);
  made.rows.resize({m, form == Input::words ? 4 : 2});
  u32(made.x.numel());
  glsl::linear_quantize::Params params{
      .m = u32(m), .k = u32(k), .tiles = u32(tiles), .height = texels_of(from.x).height};
  put_source(params, from, m, op);
  launch.params(params);
  // A lane takes two groups of 16 columns. Rows too long for 256 lanes with eight groups each are read twice.
  const uint32_t groups = params.tiles * 4, most = std::min(256u, std::bit_floor(launch.features.max_invocations));
  const uint32_t lanes = std::clamp(std::bit_ceil((groups + 1) / 2), 32u, most);
  const uint32_t held = (groups + lanes - 1) / lanes;
  launch.over(uint64_t{params.m} * lanes, lanes);
  const std::vector<uint32_t> spec = source_spec(from, k);
  launch.spec.insert(launch.spec.end(), spec.begin(), spec.end());
  launch.spec.push_back(from.source == ROWS_CHOSEN && held <= 8 ? held : 0);
  launch.shader = &glsl::linear_quantize::variant(glsl::linear_quantize::in(from.x.dtype()),
                                                  form == Input::words    ? FORM::words
                                                  : form == Input::halves ? FORM::halves
                                                                          : FORM::floats,
                                                  texture ? STORAGE::texture3d : STORAGE::buffer);
}

}  // namespace

bool RowSource::may_have_zero() const {
  if (source == ROWS_NUMBERS) return zero != shift();
  if (source == ROWS_GIVEN) return true;
  return mapping == QPARAMS_ASYMMETRIC || (low + high + 1) / 2 != shift();
}

SourceParams source_params(const RowSource& from, int64_t m, const char* op) {
  // Of a Python number PyTorch takes the reciprocal in fp64.
  SourceParams params{.step = 0, .inverse = static_cast<float>(1.0 / from.scale)};
  if (from.source == ROWS_GIVEN) {
    check_given(from.scales, m, op, "scales");
    check_given(from.zeros, m, op, "zero points");
    check(from.scales.tensor.numel() == from.zeros.tensor.numel(), "%s: scales and zero points differ in number", op);
    params.step = from.scales.tensor.numel() == 1 ? 0 : 1;
  }
  return params;
}

std::vector<uint32_t> source_spec(const RowSource& from, int64_t k) {
  // torchao chooses parameters, and quantizes with them, in the dtype of x; quantized_decomposed quantizes in fp32.
  const bool half_steps = from.source == ROWS_CHOSEN && from.x.dtype() == DType::f16;
  return {from.source,        from.mapping,      half_steps ? STEPS_F16 : STEPS_F32,
          from.scales.stored, from.zeros.stored, uint32_t{k % 4 == 0}};
}

std::shared_ptr<QuantizedRows> quantized_rows(Graph& graph, const char* op, const RowSource& from, Input form) {
  const std::shared_ptr<QuantizedRows> made = graph.shared<QuantizedRows>(key_of(from, form));
  if (made->x) return made;
  const bool texture = from.texture();
  made->x = form == Input::words ? graph.scratch(DType::i32, 3)
            : texture            ? graph.texture_out(graph.scratch(from.real_dtype(), from.x.rank()))
                                 : graph.scratch(form == Input::halves ? DType::f16 : from.real_dtype(), 2);
  made->rows = graph.scratch(DType::i32, 2);
  const auto or_x = [&](const Tensor& tensor) { return tensor || texture ? tensor : from.x; };
  // The node owns a reference to `made`; `made` refers to no node, so there is no cycle.
  graph.dispatch({made->x, made->rows}, {from.x, or_x(from.scales.tensor), or_x(from.zeros.tensor)},
                 [=](Launch& launch) { launch_rows(launch, *made, from, form, op); });
  return made;
}

}  // namespace pumice::engine
