// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/image_pooling.h"

#include "graph/deferred.h"
#include "ops/conv/channels_last.h"

namespace pumice::engine {
namespace {

// Whether x is an image that is channels-last already, or can be written so, in whole groups of channels.
bool is_image(Graph& graph, Tensor x) {
  const bool type = is_float(x.dtype()) || is_byte(x.dtype());
  return type && x.rank() == 4 && has_channels_last(graph, x) && x.dim(1) % (is_float(x.dtype()) ? 8 : 16) == 0;
}

bool is_channels_last_only(Graph& graph, Tensor x) {
  return channels_last_of(graph, x)->tensor || uses_of(graph, x).size() == 1;
}

}  // namespace

void image_pooling(Graph& graph, const Pooling& p) {
  const bool mean = !p.size.empty();  // of all pixels: what it writes is the same in both layouts
  if (!suits_channels_last(p) || !is_image(graph, p.x) || (mean && !is_channels_last_only(graph, p.x)))
    return pooling(graph, p);
  if (mean) return pooling_channels_last(graph, p, as_channels_last(graph, p.x), p.out);
  channels_last_of(graph, p.out)->write = [=, &graph](Tensor into) {
    pooling_channels_last(graph, p, as_channels_last(graph, p.x), into);
  };
  defer(graph, p.out, [=, &graph] { pooling(graph, p); });
}

bool try_image_mean(Graph& graph, const char* op, Tensor x, Tensor out) {
  if (!is_image(graph, x) || !is_channels_last_only(graph, x) || x.dtype() != out.dtype()) return false;
  const SymInt one{.value = 1};
  const Pooling p{.op = op, .x = x, .out = out, .pool = glsl::pool::POOL::adaptive_mean, .size = {one, one}};
  pooling_channels_last(graph, p, as_channels_last(graph, x), out);
  return true;
}

}  // namespace pumice::engine
