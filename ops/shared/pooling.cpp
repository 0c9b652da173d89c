// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/pooling.h"

#include <algorithm>
#include <cinttypes>

#include "base/divide.h"
#include "ops/shared/shape.h"

namespace pumice::engine {

using glsl::pool::POOL;

namespace {

constexpr size_t kAxes = 3;  // of the shader

bool is_adaptive(const Pooling& p) {
  return p.pool == POOL::adaptive_mean;
}

size_t dimensions(const Pooling& p) {
  return is_adaptive(p) ? p.size.size() : p.axes.size();
}

// The shader sums a row of a window in 32 bits, of differences up to 255, onto 16 bits of the rows before.
void check_sums(const Pooling& p, int64_t width, int64_t windows) {
  constexpr int64_t kMost = (INT32_MAX - 0xffff) / 255;
  const int64_t window = is_adaptive(p) ? ceil_div(width, windows) + 1 : p.axes.back().kernel;
  if (std::min(window, width) > kMost)
    fail(Code::LimitExceeded, Stage::plan, "", "%s: a sum over rows of %" PRId64 " integers; 32 bits hold %" PRId64,
         p.op, std::min(window, width), kMost);
}

// One axis of the windows; those in front of the pooled ones have one element.
void put_axis(glsl::pool::Params& params, size_t at, const PatchAxis& axis, int64_t size, int64_t count) {
  params.in_size[at] = u32(size);
  params.out_size[at] = u32(count);
  params.kernel[at] = static_cast<uint32_t>(axis.kernel);
  params.stride[at] = static_cast<uint32_t>(axis.stride);
  params.dilation[at] = static_cast<uint32_t>(axis.dilation);
  params.pad[at] = static_cast<int32_t>(axis.before);
  params.end[at] = static_cast<int32_t>(u32(size) + axis.after);
}

// Fills the axes of the parameters; returns the output's shape.
Shape put_axes(glsl::pool::Params& params, const Pooling& p, const Launch& launch) {
  const size_t dims = dimensions(p);
  Shape shape = p.x.shape();
  for (size_t at = 0; at < kAxes - dims; ++at) put_axis(params, at, {}, 1, 1);
  for (size_t i = 0; i < dims; ++i) {
    int64_t& size = shape[shape.size() - dims + i];
    check(size >= 1, "%s: an empty image", p.op);
    const PatchAxis axis = is_adaptive(p) ? PatchAxis{} : p.axes[i];
    const int64_t count = is_adaptive(p) ? launch.size(p.size[i]) : axis.count(size, p.op, p.ceil);
    check(count >= 0, "%s: the size %" PRId64, p.op, count);
    if (is_adaptive(p)) u32((count + 1) * size);  // where a window begins and ends
    put_axis(params, kAxes - dims + i, axis, size, count);
    size = count;
  }
  return shape;
}

}  // namespace

void pooling(Graph& graph, const Pooling& given) {
  Pooling p = given;
  const size_t dims = dimensions(p);
  check(dims >= 1 && dims <= kAxes, "%s: windows of %zu dimensions, not 1 to 3", p.op, dims);
  check(p.x.rank() >= dims, "%s: x has rank %u, not %zu or more", p.op, p.x.rank(), dims);
  check(p.x.dtype() == p.out.dtype(), "%s: x is %s, the output %s", p.op, name(p.x.dtype()), name(p.out.dtype()));
  const bool has_places = p.pool == POOL::max_with_places;
  if (!has_places) p.places = graph.scratch(DType::i32, 1);
  graph.dispatch({p.out, p.places}, {p.x}, [=](Launch& launch) {
    glsl::pool::Params params = p.numbers;
    const Shape shape = put_axes(params, p, launch);
    p.out.resize(shape);
    p.places.resize(has_places ? shape : Shape{0});
    if (p.out.numel() == 0) return;
    u32(p.x.numel());
    const bool is_mean = p.pool == POOL::mean || is_adaptive(p);
    if (is_mean && !is_float(p.x.dtype())) check_sums(p, params.in_size[kAxes - 1], shape.back());
    params.count = u32(p.out.numel());
    params.divisor = static_cast<float>(p.divisor);
    launch.params(params);
    launch.over(vec4_groups(p.out));
    launch.outer = static_cast<uint32_t>(p.x.rank() - dims);
    launch.spec.insert(launch.spec.end(), {static_cast<uint32_t>(p.pool), p.count_padding});
    launch.shader = &glsl::pool::variant(glsl::pool::dtype(p.x.dtype()));
  });
}

Pooling window_pooling(const Args& args, POOL pool, const char* op) {
  return {.op = op,
          .x = args.tensor(0),
          .out = args.out(),
          .pool = pool,
          .axes = patch_axes(args, 1, op),
          .ceil = args.boolean(5)};
}

Pooling mean_pooling(const Args& args, const char* op) {
  Pooling p = window_pooling(args, POOL::mean, op);
  p.count_padding = args.boolean(6);
  if (args.has(7)) p.divisor = static_cast<double>(args.integer(7));
  check(!args.has(7) || p.divisor != 0, "%s: the divisor is 0", op);
  return p;
}

Pooling adaptive_pooling(const Args& args, const char* op) {
  return {.op = op, .x = args.tensor(0), .out = args.out(), .pool = POOL::adaptive_mean, .size = args.sizes(1)};
}
}  // namespace pumice::engine
