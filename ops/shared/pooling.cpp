// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/pooling.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cinttypes>

#include "base/divide.h"
#include "ops/shared/shape.h"

namespace pumice::engine {

using glsl::pool::POOL;
using glsl::pool::WORK;

namespace {

constexpr size_t kAxes = 3;  // of the shader

bool is_adaptive(const Pooling& p) {
  return p.pool == POOL::adaptive_mean;
}

bool is_mean(const Pooling& p) {
  return p.pool == POOL::mean || is_adaptive(p);
}

size_t dimensions(const Pooling& p) {
  return is_adaptive(p) ? p.size.size() : p.axes.size();
}

// The most elements that a window has along an axis, those in the padding left out.
int64_t most_elements(const Pooling& p, const glsl::pool::Params& params, size_t axis) {
  const int64_t size = params.in_size[axis];
  const int64_t window = is_adaptive(p) ? ceil_div(size, params.out_size[axis]) + 1 : params.kernel[axis];
  return std::min(window, size);
}

// The shader sums a row of a window in 32 bits, of differences up to 255, onto 16 bits of the rows before.
void check_sums(const Pooling& p, const glsl::pool::Params& params) {
  constexpr int64_t kMost = (INT32_MAX - 0xffff) / 255;
  const int64_t width = most_elements(p, params, kAxes - 1);
  if (width > kMost)
    fail(Code::LimitExceeded, Stage::plan, "", "%s: a sum over rows of %" PRId64 " integers; 32 bits hold %" PRId64,
         p.op, width, kMost);
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

// Columns from a whole vec4 group of x to the window of the first of four neighbouring outputs.
uint32_t shift_of(const glsl::pool::Params& params) {
  return static_cast<uint32_t>(-params.pad[2]) % 4;
}

// Whether the loads of small windows, of by_row all of one slab of four of them, fit into registers.
bool fits_registers(const glsl::pool::Params& params, bool by_row) {
  constexpr uint64_t kElements = 25, kVec4s = 28;
  const uint64_t height = params.kernel[1], width = params.kernel[2];
  if (!by_row) return height * width <= kElements;
  const uint64_t columns = shift_of(params) + 3ull * params.stride[2] + (width - 1) * params.dilation[2] + 1;
  return height * ceil_div(static_cast<int64_t>(columns), 4) <= kVec4s;
}

// How the shader divides the work (glsl/pool.glsl), and for by_lanes the lanes of a workgroup.
struct Work {
  WORK kind = WORK::by_one;
  uint32_t lanes = 128;
};

// A workgroup for four windows where an invocation would be long at it, and few invocations would be. A CPU driver runs
// all lanes one after another: there only what loads less is worth it.
Work pick_work(const Pooling& p, const glsl::pool::Params& params, const Features& features) {
  constexpr int64_t kWindow = 32, kFewOutputs = 1 << 17;
  std::array<int64_t, kAxes> window{};
  for (size_t axis = 0; axis < kAxes; ++axis) window[axis] = most_elements(p, params, axis);
  const bool dense = std::ranges::all_of(params.dilation, [](uint32_t dilation) { return dilation == 1; });
  const bool large = window[0] * window[1] * window[2] >= kWindow && params.count <= kFewOutputs;
  if (is_mean(p) && dense && large && !features.cpu) {
    const int64_t words = window[0] * window[1] * ((window[2] + 6) / 4);
    const uint32_t most = std::min(512U, std::bit_floor(features.max_invocations));
    return {WORK::by_lanes, 4 * static_cast<uint32_t>(std::bit_ceil(std::clamp<uint64_t>(words, 8, most / 4)))};
  }
  const bool whole_rows = params.in_size[2] % 4 == 0 && params.out_size[2] % 4 == 0;
  if (!is_adaptive(p) && whole_rows && fits_registers(params, true)) return {WORK::by_row};
  if (!is_adaptive(p) && !features.cpu && fits_registers(params, false)) return {WORK::by_one_small};
  return {};
}

void launch_pool(Launch& launch, const Pooling& p, const glsl::pool::Params& params) {
  const Work work = pick_work(p, params, launch.features);
  const uint64_t vec4s = vec4_groups(p.out);
  switch (work.kind) {
    case WORK::by_lanes:
      launch.over(vec4s * work.lanes, work.lanes);
      break;
    case WORK::by_one_small:
      launch.over(params.count, work.lanes);
      break;
    default:
      launch.over(vec4s);
  }
  launch.params(params);
  launch.spec.insert(launch.spec.end(),
                     {static_cast<uint32_t>(p.pool), p.count_padding, static_cast<uint32_t>(work.kind)});
  const bool small = work.kind == WORK::by_row || work.kind == WORK::by_one_small;
  if (small)
    launch.spec.insert(launch.spec.end(), {params.kernel[1], params.kernel[2], params.stride[2], params.dilation[2]});
  if (work.kind == WORK::by_row) launch.spec.push_back(shift_of(params));
  launch.shader = &glsl::pool::variant(glsl::pool::dtype(p.x.dtype()));
}

// Of all pixels: as many lanes share them as leave each four; of many pixels 64, so that sums are no longer than those
// of reduce.glsl.
void launch_by_channels(Launch& launch, const Pooling& p, const glsl::pool::Params& params, bool signed_out) {
  const bool all = is_adaptive(p);
  const uint32_t plane = params.in_size[1] * params.in_size[2], lanes = 128;
  const uint32_t parts = !all ? 1 : plane >= 64 ? 64 : std::max(2U, std::bit_ceil((plane + 3) / 4));
  launch.over_groups(static_cast<uint64_t>(ceil_div(vec4_groups(p.out), lanes / parts)), lanes);
  launch.params(params);
  launch.spec.insert(launch.spec.end(),
                     {static_cast<uint32_t>(p.pool), p.count_padding, static_cast<uint32_t>(WORK::by_channels),
                      params.kernel[1], params.kernel[2], params.stride[2], params.dilation[2], 0, u32(p.x.dim(1) / 4),
                      parts, all ? plane : 1, signed_out});
  launch.shader = &glsl::pool::variant(glsl::pool::dtype(p.x.dtype()));
}

// Whether there is something to compute.
bool fill(glsl::pool::Params& params, const Pooling& p) {
  if (p.out.numel() == 0) return false;
  u32(p.x.numel());
  params.count = u32(p.out.numel());
  params.divisor = static_cast<float>(p.divisor);
  if (is_mean(p) && !is_float(p.x.dtype())) check_sums(p, params);
  return true;
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
    if (!fill(params, p)) return;
    launch.outer = static_cast<uint32_t>(p.x.rank() - dims);
    launch_pool(launch, p, params);
  });
}

bool suits_channels_last(const Pooling& p) {
  if (dimensions(p) != 2 || p.places || p.x.rank() != 4 || p.x.dtype() != p.out.dtype()) return false;
  if (is_adaptive(p)) return std::ranges::all_of(p.size, [](SymInt size) { return !size.is_expr && size.value == 1; });
  glsl::pool::Params params{};
  for (size_t i = 0; i < 2; ++i) put_axis(params, kAxes - 2 + i, p.axes[i], 1, 1);
  return fits_registers(params, false);
}

void pooling_channels_last(Graph& graph, const Pooling& p, Tensor x, Tensor into) {
  const Tensor places = graph.scratch(DType::i32, 1);
  const bool signed_out = into.id() != p.out.id();
  graph.dispatch({into, places}, {x}, [=](Launch& launch) {
    glsl::pool::Params params = p.numbers;
    Shape shape = put_axes(params, p, launch);
    shape.resize(p.out.rank());  // of a mean that keeps no dimensions of size 1
    p.out.resize(shape);
    if (signed_out) into.resize({p.out.numel() * device_bytes(p.out.dtype()) / 4});
    places.resize({0});
    if (fill(params, p)) launch_by_channels(launch, p, params, signed_out);
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
