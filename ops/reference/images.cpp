// SPDX-License-Identifier: Apache-2.0
#include "ops/reference/images.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/reference/integers.h"
#include "ops/shared/shape.h"

namespace pumice::engine::reference {
namespace {

// The elements of a window, their places in the plane, and how many it has with the padding.
struct Window {
  std::vector<double> live;
  std::vector<int64_t> places;
  double all = 1;
};

// The last two sizes: height and width.
std::array<int64_t, 2> image(const Shape& shape) {
  return {shape[shape.size() - 2], shape[shape.size() - 1]};
}

// Positions of a window along an axis of `size`, those outside included up to the end of the padding.
using Positions = std::vector<int64_t>;
using PositionsOf = Positions (*)(const HostCall&, size_t axis, int64_t size, int64_t o);
Positions window_positions(const HostCall& call, size_t axis, int64_t size, int64_t o) {
  const std::vector<int64_t>& pads = call.ints(3);
  const int64_t first = o * call.ints(2)[axis] - pads[axis];
  Positions all;
  for (int64_t k = 0; k < call.ints(1)[axis]; ++k) {
    const int64_t at = first + k * call.ints(4)[axis];
    if (at < size + pads[axis + pads.size() / 2]) all.push_back(at);  // with ceil_mode a window may reach further
  }
  return all;
}
Positions adaptive_positions(const HostCall& call, size_t axis, int64_t size, int64_t o) {
  const int64_t count = call.ints(1)[axis];
  Positions all;
  for (int64_t at = o * size / count; at < ((o + 1) * size + count - 1) / count; ++at) all.push_back(at);
  return all;
}

// Gives use(Window) for every output element.
template <class Use>
void pool(HostCall& call, PositionsOf positions, const Use& use) {
  const HostTensor& x = call.tensor(0);
  const size_t dims = call.ints(1).size(), planes = x.shape.size() - dims;
  for (size_t i = 0; i < call.out().count(); ++i) {
    const Shape to = coordinates(i, call.out().shape);
    Positions places = {0};  // -1: outside
    Window window;
    int64_t plane = 0;
    for (size_t d = 0; d < planes; ++d) plane = plane * x.shape[d] + to[d];
    int64_t plane_size = 1;
    for (size_t d = planes; d < x.shape.size(); ++d) {
      const int64_t size = x.shape[d];
      const Positions along = positions(call, d - planes, size, to[d]);
      window.all *= static_cast<double>(along.size());
      plane_size *= size;
      Positions longer;
      for (const int64_t place : places)
        for (const int64_t at : along) longer.push_back(place < 0 || at < 0 || at >= size ? -1 : place * size + at);
      places = longer;
    }
    for (const int64_t place : places) {
      if (place < 0) continue;
      window.places.push_back(place);
      window.live.push_back(x.values[static_cast<size_t>(plane * plane_size + place)]);
    }
    use(window);
  }
}

double mean_of(const Window& window, double divisor, double& size) {
  double sum = 0;
  size = 0;
  for (const double x : window.live) {
    sum += x;
    size += std::fabs(x);
  }
  size /= divisor;
  return sum / divisor;
}

void float_mean(HostCall& call, const Window& window, double divisor) {
  double size = 0;
  const double mean = mean_of(window, divisor, size);
  call.out().push(mean, sum_error(static_cast<double>(window.live.size()) + 2, size));
}

// The sum is exact; `first`: the argument of x_scale. A division may be off by 2.5 ulp in Vulkan.
void byte_mean(HostCall& call, const Window& window, double divisor, size_t first) {
  double sum = 0;
  for (const double x : window.live) sum += x - call.real(first + 1);
  const double real = sum * in_f32(call.real(first)) / divisor;
  call.out().elements.push_back(ToByte(call, first + 2).within(real, 0x1p-21 * std::fabs(real)));
}

double divisor_of(const HostCall& call, const Window& window) {
  if (call.has(7)) return call.real(7);
  return call.integer(6) != 0 ? window.all : static_cast<double>(window.live.size());
}

// Input elements for each of the output: equal sizes are copied; a given scale counts unless corners are aligned.
double step_of(const HostCall& call, size_t axis, bool aligned, bool nearest) {
  const int64_t in = image(call.tensor(0).shape)[axis], out = call.ints(1)[axis];
  if (in == out) return 1;
  if (nearest && out == 2 * in) return 0.5;
  if (aligned) return out > 1 ? in_f32(static_cast<double>(in - 1) / static_cast<double>(out - 1)) : 0;
  if (call.has(2 + axis)) return in_f32(1.0 / call.real(2 + axis));
  return in_f32(static_cast<double>(in) / static_cast<double>(out));
}

// The two elements around a place, and the weight of the second.
struct Between {
  int64_t first, second;
  double weight;
};
Between between(double at, int64_t size) {
  const int64_t first = std::min(static_cast<int64_t>(std::floor(std::max(at, 0.0))), size - 1);
  return {first, std::min(first + 1, size - 1), std::clamp(at - static_cast<double>(first), 0.0, 1.0)};
}

double fused(double a, double b, double c) {
  return static_cast<double>(std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)));
}

// PyTorch's order of sums where it does not vectorize over channels; v: the four elements around the place.
double by_rows(const std::array<double, 4>& v, double y1, double x1) {
  const double x0 = in_f32(1 - x1), y0 = in_f32(1 - y1);
  const double above = fused(v[0], x0, in_f32(v[1] * x1)), below = fused(v[2], x0, in_f32(v[3] * x1));
  return fused(above, y0, in_f32(below * y1));
}
// And where it does: the last channels modulo 8 are added in another order.
double by_corners(const std::array<double, 4>& v, double y1, double x1, bool is_last) {
  const double x0 = in_f32(1 - x1), y0 = in_f32(1 - y1);
  const std::array<double, 4> w = {in_f32(y0 * x0), in_f32(y0 * x1), in_f32(y1 * x0), in_f32(y1 * x1)};
  if (is_last) return fused(w[3], v[3], fused(w[2], v[2], fused(w[0], v[0], in_f32(w[1] * v[1]))));
  return fused(w[0], v[0], fused(w[1], v[1], fused(w[3], v[3], in_f32(w[2] * v[2]))));
}

// Calls use(plane, four elements, y, x) for every output element; `place(o, step)`: of an output element in the input.
template <class Place, class Use>
void resize(HostCall& call, bool aligned, const Place& place, const Use& use) {
  const HostTensor& x = call.tensor(0);
  const auto [h, w] = image(x.shape);
  const auto [out_h, out_w] = image(call.out().shape);
  const double step_h = step_of(call, 0, aligned, false), step_w = step_of(call, 1, aligned, false);
  for (int64_t i = 0; i < static_cast<int64_t>(call.out().count()); ++i) {
    const Between down = between(place(static_cast<double>(i / out_w % out_h), step_h), h);
    const Between right = between(place(static_cast<double>(i % out_w), step_w), w);
    const int64_t plane = i / out_w / out_h;
    const auto at = [&, width = w, height = h](int64_t row, int64_t column) {
      return x.values[static_cast<size_t>((plane * height + row) * width + column)];
    };
    use(plane,
        std::array<double, 4>{at(down.first, right.first), at(down.first, right.second), at(down.second, right.first),
                              at(down.second, right.second)},
        down.weight, right.weight);
  }
}

void nearest(HostCall& call) {
  const HostTensor& x = call.tensor(0);
  const auto [h, w] = image(x.shape);
  const auto [out_h, out_w] = image(call.out().shape);
  const double step_h = step_of(call, 0, false, true), step_w = step_of(call, 1, false, true);
  const auto at = [](int64_t o, double step, int64_t size) {
    return std::min(static_cast<int64_t>(in_f32(static_cast<double>(o) * step)), size - 1);
  };
  for (int64_t i = 0; i < static_cast<int64_t>(call.out().count()); ++i) {
    const int64_t y = at(i / out_w % out_h, step_h, h), column = at(i % out_w, step_w, w);
    call.out().push(x.values[static_cast<size_t>((i / out_w / out_h * h + y) * w + column)]);
  }
}

}  // namespace

namespace {

// The first of the largest ones, or the last NaN.
size_t place_of_largest(const Window& window) {
  size_t best = 0;
  for (size_t i = 1; i < window.live.size(); ++i)
    if (std::isnan(window.live[i]) || window.live[i] > window.live[best]) best = i;
  return best;
}

}  // namespace

void max_pool(HostCall& call) {
  pool(call, window_positions,
       [&](const Window& window) { call.out().push(window.live.at(place_of_largest(window))); });
}

void max_pool_with_places(HostCall& call) {
  pool(call, window_positions, [&](const Window& window) {
    const size_t best = place_of_largest(window);
    call.out(0).push(window.live.at(best));
    call.out(1).push(static_cast<double>(window.places[best]));
  });
}

void avg_pool(HostCall& call) {
  pool(call, window_positions, [&](const Window& window) { float_mean(call, window, divisor_of(call, window)); });
  limit_errors(call.out());
}

void adaptive_avg_pool(HostCall& call) {
  pool(call, adaptive_positions, [&](const Window& window) { float_mean(call, window, window.all); });
  limit_errors(call.out());
}

void q8ta_avg_pool(HostCall& call) {
  pool(call, window_positions, [&](const Window& window) { byte_mean(call, window, divisor_of(call, window), 8); });
}

void q8ta_adaptive_avg_pool(HostCall& call) {
  pool(call, adaptive_positions, [&](const Window& window) { byte_mean(call, window, window.all, 2); });
}

void upsample2d(HostCall& call) {
  const int64_t mode = call.integer(4);
  if (mode == 0) return nearest(call);
  const bool aligned = mode == 2;
  const auto [h, w] = image(call.tensor(0).shape);
  const double roundings = 0x1p-22 * (static_cast<double>(std::max(h, w)) + 8);
  const auto place = [&](double o, double step) { return aligned ? o * step : (o + 0.5) * step - 0.5; };
  resize(call, aligned, place, [&](int64_t, const std::array<double, 4>& v, double y, double x) {
    double largest = 0;
    for (const double each : v) largest = std::max(largest, std::fabs(each));
    call.out().push((1 - y) * ((1 - x) * v[0] + x * v[1]) + y * ((1 - x) * v[2] + x * v[3]), roundings * largest);
  });
  limit_errors(call.out());
}

void q8ta_upsample2d(HostCall& call) {
  const bool aligned = call.integer(4) != 0;
  const Shape& shape = call.tensor(0).shape;
  const int64_t channels = shape[shape.size() - 3];
  const auto [out_h, out_w] = image(call.out().shape);
  // The rule by which PyTorch takes its kernel that vectorizes over channels.
  const bool corners = (call.integer(5) != 0 && channels > 3) || out_h + out_w <= 128;
  const double scale = in_f32(call.real(6)), zero = call.real(7);
  const ToByte to_byte(call, 8);
  const auto place = [&](double o, double step) {
    return aligned ? in_f32(o * step) : fused(step, in_f32(o + 0.5), -0.5);
  };
  resize(call, aligned, place, [&](int64_t plane, std::array<double, 4> v, double y, double x) {
    for (double& each : v) each = in_f32((each - zero) * scale);
    const double real = corners ? by_corners(v, in_f32(y), in_f32(x), plane % channels >= channels / 8 * 8)
                                : by_rows(v, in_f32(y), in_f32(x));
    call.out().push(to_byte(real));
  });
}

namespace {

// An axis of a sampled image. Places are rounded as the kernel's are, so that both take the same nearest elements.
struct Axis {
  double size;
  int64_t padding;
  bool aligned;

  double place(double coordinate) const {
    const double scale = in_f32((aligned ? size - 1 : size) * 0.5);
    const double at = in_f32(in_f32(coordinate + 1) * scale);
    return aligned ? at : in_f32(at - 0.5);
  }
  double padded(double at) const {
    if (padding == 0) return at;
    const double low = aligned ? 0 : -0.5, span = aligned ? size - 1 : size;
    if (padding == 2 && span == 0) at = 0;
    if (padding == 2 && span != 0) {
      const double away = std::fabs(at - low), rest = std::fmod(away, span);
      at = low + (std::fmod(std::floor(away / span), 2) != 0 ? span - rest : rest);
    }
    return std::clamp(at, 0.0, size - 1);
  }
};

std::array<double, 4> cubic(double t) {
  const auto outer = [](double d) { return -0.75 * (((d - 5) * d + 8) * d - 4); };
  const auto inner = [](double d) { return (1.25 * d - 2.25) * d * d + 1; };
  return {outer(t + 1), inner(t), inner(1 - t), outer(2 - t)};
}

}  // namespace

void grid_sampler_2d(HostCall& call) {
  const HostTensor &x = call.tensor(0), &grid = call.tensor(1);
  const int64_t interpolation = call.integer(2), padding = call.integer(3);
  const bool aligned = call.integer(4) != 0;
  const Axis down{static_cast<double>(x.dim(2)), padding, aligned},
      across{static_cast<double>(x.dim(3)), padding, aligned};
  double most = 0;
  for (const double value : x.values) most = std::max(most, std::fabs(value));
  for (size_t i = 0; i < call.out().count(); ++i) {
    const Shape to = coordinates(i, call.out().shape);
    const auto coordinate = [&](int64_t which) {
      return grid.values[index_at({to[0], to[2], to[3], which}, grid.shape)];
    };
    const double u = coordinate(0), v = coordinate(1);
    const auto element = [&](double y, double column) {
      if (y < 0 || y >= down.size || column < 0 || column >= across.size) return 0.0;
      return x.values[index_at({to[0], to[1], static_cast<int64_t>(y), static_cast<int64_t>(column)}, x.shape)];
    };
    double row = down.place(v), column = across.place(u), sum = 0;
    const double moved = 0x1p-22 * (down.size * (std::fabs(v) + 1) + across.size * (std::fabs(u) + 1));
    if (interpolation == 2) {
      const std::array<double, 4> below = cubic(row - std::floor(row)), right = cubic(column - std::floor(column));
      for (size_t a = 0; a < 4; ++a)
        for (size_t b = 0; b < 4; ++b)
          sum += below[a] * right[b] *
                 element(down.padded(std::floor(row) + static_cast<double>(a) - 1),
                         across.padded(std::floor(column) + static_cast<double>(b) - 1));
      call.out().push(sum, (4.2 * moved + 0x1p-20) * most);
      continue;
    }
    row = down.padded(row);
    column = across.padded(column);
    if (interpolation == 1) {
      call.out().push(element(std::nearbyint(row), std::nearbyint(column)));
      continue;
    }
    const double y = std::floor(row), left = std::floor(column), after_y = row - y, after = column - left;
    sum = (1 - after_y) * ((1 - after) * element(y, left) + after * element(y, left + 1)) +
          after_y * ((1 - after) * element(y + 1, left) + after * element(y + 1, left + 1));
    call.out().push(sum, (2 * moved + 0x1p-20) * most);
  }
}

}  // namespace pumice::engine::reference
