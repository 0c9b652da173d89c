// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/channels_last.h"
#include "graph/deferred.h"

#include <string>

#include "base/divide.h"
#include "glsl/conv2d_row_taps.h"
#include "glsl/conv2d_to_channels_last.h"
#include "glsl/conv2d_to_nchw.h"
#include "ops/conv/channels_last_product.h"
#include "ops/conv/quantized_image.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

Tensor lay_out(Graph& graph, Tensor x, bool odd_only, Tensor factors = {}) {
  const Tensor channels_last = graph.scratch(DType::i32, 1);
  graph.dispatch({channels_last}, {x, factors ? factors : x}, [=](Launch& launch) {
    using namespace glsl::conv2d_to_channels_last;
    const int64_t plane = x.dim(2) * x.dim(3), at_once = plane % 4 == 0 ? 4 : 1;
    const int64_t vectors = channel_groups(x.dim(1), x.dtype()) * group_words(x.dtype()) / 4;  // uvec4 of a pixel
    const bool runs = x.numel() != 0 && !(odd_only && at_once == 4);
    channels_last.resize({runs ? x.dim(0) * plane * vectors * 4 : 0});
    if (!runs) return;
    launch.over(u32(x.dim(0) * vectors * plane / at_once));
    launch.params(Params{u32(x.dim(0)), u32(x.dim(1)), u32(plane), u32(vectors)});
    const uint32_t together = vectors % 4 == 0 ? 4 : vectors % 2 == 0 ? 2 : 1;
    launch.spec.insert(launch.spec.end(), {at_once == 4, together, bool(factors)});
    launch.shader = &variant(in(x.dtype()));
  });
  return channels_last;
}

}  // namespace

int64_t channel_groups(int64_t channels, DType dtype) {
  return ceil_div(channels, is_float(dtype) ? 8 : 16);
}

int64_t group_words(DType dtype) {
  return dtype == DType::f32 ? 8 : 4;
}

bool is_pixel(Graph& graph, Tensor x) {
  return x.rank() == 4 && has_fixed_shape(graph, x) && x.dim(2) * x.dim(3) == 1 && x.dtype() != DType::u8 &&
         x.dim(1) * device_bytes(x.dtype()) % (4 * group_words(x.dtype())) == 0;
}

std::shared_ptr<ChannelsLast> channels_last_of(Graph& graph, Tensor value) {
  return graph.shared<ChannelsLast>("channels last " + std::to_string(value.id()));
}

bool has_channels_last(Graph& graph, Tensor value) {
  const auto known = channels_last_of(graph, value);
  return known->tensor || is_pixel(graph, value) || (known->write && is_deferred(graph, value));
}

Tensor as_channels_last(Graph& graph, Tensor value) {
  const auto known = channels_last_of(graph, value);
  if (known->tensor) return known->tensor;
  if (!known->write || !is_deferred(graph, value))
    return known->tensor = is_pixel(graph, value) ? value : lay_out(graph, value, false);
  const Tensor channels_last = known->tensor = graph.scratch(DType::i32, 1);
  write_deferred(
      graph, value, [&] { known->write(channels_last); },
      [=, &graph] { from_channels_last(graph, value, channels_last); });
  return channels_last;
}

Tensor odd_as_channels_last(Graph& graph, Tensor value, Tensor factors) {
  return lay_out(graph, value, true, factors);
}

Tensor scaled_as_channels_last(Graph& graph, Tensor value, Tensor factors) {
  return lay_out(graph, value, false, factors);
}

Tensor row_taps_as_channels_last(Graph& graph, const Convolution& c, int64_t border) {
  const Tensor x = c.x, rows = graph.scratch(DType::i32, 1);
  const Patches p = c.patches;
  const QuantizedImage image = quantized_image(graph, x);  // in whose place x is read
  graph.dispatch({rows}, {image.x ? image.x : x}, [=, op = c.op](Launch& launch) {
    using namespace glsl::conv2d_row_taps;
    const int64_t out_w = p.count(1, x.dim(3), op);
    const int64_t vectors = channel_groups(p.kernel[1] * x.dim(1), x.dtype()) * group_words(x.dtype()) / 4;
    const int64_t count = x.dim(0) * x.dim(2) * out_w * vectors;
    rows.resize({count * 4});
    if (count == 0) return;
    launch.over(u32(count));
    const uint32_t word = is_byte(x.dtype()) ? 0x01010101u * static_cast<uint8_t>(border) : 0;
    launch.params(Params{u32(count), u32(x.dim(2)), u32(x.dim(3)), u32(out_w), static_cast<int32_t>(p.pads[1]), word,
                         image.inverse, image.zero, image.low, image.high});
    launch.spec.insert(launch.spec.end(), {u32(x.dim(1)), u32(p.kernel[1]), u32(vectors), u32(p.stride[1]),
                                           u32(p.dilation[1]), x.dtype() == DType::u8 ? 0x80u : 0u, image.steps});
    const DType in = image.x ? image.x.dtype() : x.dtype();
    launch.shader = &variant(is_byte(in)        ? IN::i8
                             : in == DType::f16 ? IN::f16
                                                : IN::f32,
                             image.x ? OUT::i8 : OUT::same);
  });
  return rows;
}

void from_channels_last(Graph& graph, Tensor out, Tensor channels_last) {
  graph.dispatch({out}, {channels_last}, [=](Launch& launch) {
    using namespace glsl::conv2d_to_nchw;
    launch.over(vec4_groups(out));
    launch.params(Params{u32(out.numel()), u32(out.dim(1)), u32(out.dim(2) * out.dim(3))});
    launch.shader = &variant(dtype(out.dtype()));
  });
}

}  // namespace pumice::engine
