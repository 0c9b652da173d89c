// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/pooling.h"

#include <algorithm>
#include <cinttypes>

#include "base/divide.h"
#include "ops/shared/shape.h"

namespace pumice::engine {

using glsl::pool2d::POOL;

namespace {

// The shader sums a row of a window in 32 bits, of differences up to 255, onto 16 bits of the rows before.
void check_sums(const Pooling& p, int64_t width, int64_t windows) {
  constexpr int64_t kMost = (INT32_MAX - 0xffff) / 255;
  const int64_t window = p.pool == POOL::adaptive_mean ? ceil_div(width, windows) + 1 : p.patches.kernel[1];
  if (std::min(window, width) > kMost)
    fail(Code::LimitExceeded, Stage::plan, "", "%s: a sum over rows of %" PRId64 " integers; 32 bits hold %" PRId64,
         p.op, std::min(window, width), kMost);
}

}  // namespace

void pooling(Graph& graph, const Pooling& p) {
  check(p.x.rank() >= 2, "%s: x has rank %u, not 2 or more", p.op, p.x.rank());
  check(p.x.dtype() == p.out.dtype(), "%s: x is %s, the output %s", p.op, name(p.x.dtype()), name(p.out.dtype()));
  graph.dispatch({p.out}, {p.x}, [p](Launch& launch) {
    Shape shape = p.x.shape();
    const size_t first = shape.size() - 2;
    glsl::pool2d::Params params = p.numbers;
    params.in_h = u32(shape[first]);
    params.in_w = u32(shape[first + 1]);
    for (size_t axis = 0; axis < 2; ++axis) {
      int64_t& size = shape[first + axis];
      check(size >= 1, "%s: an empty image", p.op);
      const int64_t count =
          p.pool == POOL::adaptive_mean ? launch.size(p.size[axis]) : p.patches.count(axis, size, p.op, p.ceil);
      check(count >= 0, "%s: the size %" PRId64, p.op, count);
      if (p.pool == POOL::adaptive_mean) u32((count + 1) * size);  // where a window begins and ends
      (axis == 0 ? params.end_h : params.end_w) = static_cast<int32_t>(u32(size) + p.patches.pads[axis + 2]);
      size = count;
    }
    p.out.resize(shape);
    if (p.out.numel() == 0) return;
    u32(p.x.numel());
    if (p.pool != POOL::max && !is_float(p.x.dtype())) check_sums(p, params.in_w, shape[first + 1]);
    params.count = u32(p.out.numel());
    params.out_h = u32(shape[first]);
    params.out_w = u32(shape[first + 1]);
    put(params, p.patches);
    params.divisor = static_cast<float>(p.divisor);
    launch.params(params);
    launch.over(vec4_groups(p.out));
    launch.spec.insert(launch.spec.end(), {static_cast<uint32_t>(p.pool), p.count_padding});
    launch.shader = &glsl::pool2d::variant(glsl::pool2d::dtype(p.x.dtype()));
  });
}

Pooling mean_pooling(const Args& args, const char* op) {
  Pooling p{.op = op,
            .x = args.tensor(0),
            .out = args.out(),
            .pool = POOL::mean,
            .patches = patches(args, 1, op),
            .ceil = args.boolean(5),
            .count_padding = args.boolean(6)};
  if (args.has(7)) p.divisor = static_cast<double>(args.integer(7));
  check(!args.has(7) || p.divisor != 0, "%s: the divisor is 0", op);
  return p;
}

Pooling adaptive_pooling(const Args& args, const char* op) {
  Pooling p{.op = op, .x = args.tensor(0), .out = args.out(), .pool = POOL::adaptive_mean, .size = args.sizes(1)};
  check(p.size.size() == 2, "%s: %zu sizes, not 2", op, p.size.size());
  return p;
}
}  // namespace pumice::engine
