// SPDX-License-Identifier: Apache-2.0
#include "ops/reference/moves.h"

#include <algorithm>

namespace pumice::engine::reference {
namespace {

// Every output element is that of argument 0 at the coordinates which from(coordinates of the output) gives.
template <class From>
void move(HostCall& call, const From& from) {
  const HostTensor& x = call.tensor(0);
  HostOutput& out = call.out();
  for (size_t i = 0; i < out.count(); ++i) out.push(x.values.at(index_at(from(coordinates(i, out.shape)), x.shape)));
}

// Position of index `at` in a dimension: negative ones count from the end, others are clamped.
int64_t bounded(int64_t at, int64_t size) {
  return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
}

template <bool kUpper>
void tri(HostCall& call) {
  const HostTensor& x = call.tensor(0);
  const int64_t diagonal = call.integer(1);
  for (size_t i = 0; i < x.values.size(); ++i) {
    const Shape at = coordinates(i, x.shape);
    const int64_t right = at[at.size() - 1] - at[at.size() - 2];
    call.out().push((kUpper ? right >= diagonal : right <= diagonal) ? x.values[i] : 0);
  }
}

}  // namespace

void permute(HostCall& call) {
  const Shape& shape = call.tensor(0).shape;
  move(call, [&](const Shape& at) {
    Shape from(at.size());
    for (size_t d = 0; d < at.size(); ++d) from[axis_of(call.ints(1)[d], shape)] = at[d];
    return from;
  });
}

void patches(HostCall& call) {
  const HostTensor& x = call.tensor(0);
  const int64_t ky = call.ints(1)[0], kx = call.ints(1)[1], zeros = call.integer(2);
  const bool channels_last = call.integer(3) != 0;
  const int64_t channels = x.shape[channels_last ? 3 : 1], width = x.shape[channels_last ? 2 : 3] / kx;
  for (size_t i = 0; i < call.out().count(); ++i) {
    const Shape at = coordinates(i, call.out().shape);
    const int64_t patch = at[1] - zeros, y = patch / width * ky, w = patch % width * kx;
    const Shape in = coordinates(at[2], channels_last ? Shape{ky, kx, channels} : Shape{channels, ky, kx});
    const Shape from =
        channels_last ? Shape{at[0], y + in[0], w + in[1], in[2]} : Shape{at[0], in[0], y + in[1], w + in[2]};
    call.out().push(patch < 0 ? 0 : x.values.at(index_at(from, x.shape)));
  }
}

void expand(HostCall& call) {
  for (size_t i = 0; i < call.out().count(); ++i)
    call.out().push(broadcast_to(call.args[0], coordinates(i, call.out().shape)));
}

void slice(HostCall& call) {
  const Shape& shape = call.tensor(0).shape;
  const size_t dim = axis_of(call.integer(1), shape);
  move(call, [&](Shape at) {
    at[dim] = bounded(call.integer(2), shape[dim]) + at[dim] * call.integer(4);
    return at;
  });
}

void select(HostCall& call) {
  const Shape& shape = call.tensor(0).shape;
  const size_t dim = axis_of(call.integer(1), shape);
  const int64_t index = call.integer(2);
  move(call, [&](Shape at) {
    at.insert(at.begin() + static_cast<std::ptrdiff_t>(dim), index < 0 ? index + shape[dim] : index);
    return at;
  });
}

void flip(HostCall& call) {
  const Shape& shape = call.tensor(0).shape;
  move(call, [&](Shape at) {
    for (const int64_t each : call.ints(1)) {
      const size_t d = axis_of(each, shape);
      at[d] = shape[d] - 1 - at[d];
    }
    return at;
  });
}

void repeat(HostCall& call) {
  const Shape& shape = call.tensor(0).shape;
  move(call, [&](const Shape& at) {
    Shape from(at.end() - static_cast<std::ptrdiff_t>(shape.size()), at.end());
    for (size_t d = 0; d < from.size(); ++d) from[d] %= shape[d];
    return from;
  });
}

void view(HostCall& call) {
  for (const double x : call.tensor(0).values) call.out().push(x);
}

void cat(HostCall& call) {
  const std::vector<HostTensor>& inputs = call.args[0].tensors;
  const size_t dim = axis_of(call.integer(1), inputs.at(0).shape);
  for (size_t i = 0; i < call.out().count(); ++i) {
    Shape at = coordinates(i, call.out().shape);
    size_t input = 0;
    for (; at[dim] >= inputs.at(input).shape[dim]; ++input) at[dim] -= inputs[input].shape[dim];
    call.out().push(inputs[input].values[index_at(at, inputs[input].shape)]);
  }
}

void pad(HostCall& call) {
  const HostTensor& x = call.tensor(0);
  const std::vector<int64_t>& pads = call.ints(1);
  for (size_t i = 0; i < call.out().count(); ++i) {
    Shape at = coordinates(i, call.out().shape);
    bool inside = true;
    for (size_t d = 0; d < at.size(); ++d) {
      const size_t from_last = at.size() - 1 - d;
      if (2 * from_last < pads.size()) at[d] -= pads[2 * from_last];
      inside = inside && at[d] >= 0 && at[d] < x.shape[d];
    }
    call.out().push(inside ? x.values[index_at(at, x.shape)] : stored(call.real(2), x.dtype));
  }
}

// 1: mirrored at the ends, 2: the first and last elements, 3: those of the other end.
void pad_from_inside(HostCall& call, int mode) {
  const Shape& shape = call.tensor(0).shape;
  const std::vector<int64_t>& pads = call.ints(1);
  move(call, [&](Shape at) {
    for (size_t k = 0; 2 * k < pads.size(); ++k) {
      const size_t d = at.size() - 1 - k;
      const int64_t size = shape[d];
      int64_t& i = at[d];
      i -= pads[2 * k];
      if (mode == 1) i = i < 0 ? -i : i < size ? i : 2 * size - 2 - i;
      if (mode == 2) i = std::clamp<int64_t>(i, 0, size - 1);
      if (mode == 3) i = (i + size) % size;
    }
    return at;
  });
}

void triu(HostCall& call) {
  tri<true>(call);
}
void tril(HostCall& call) {
  tri<false>(call);
}

void where(HostCall& call) {
  HostOutput& out = call.out();
  for (size_t i = 0; i < out.count(); ++i) {
    const Shape at = coordinates(i, out.shape);
    const HostArgument& side = call.args[broadcast_to(call.args[0], at) != 0 ? 1 : 2];
    out.push(stored(broadcast_to(side, at), out.dtype));
  }
}

void lookup(HostCall& call) {
  for (const double x : call.tensor(0).values)
    call.out().push(call.tensor(1).values.at(static_cast<size_t>(x < 0 ? x + 256 : x)));
}

void slice_scatter(HostCall& call) {
  const HostTensor &self = call.tensor(0), &source = call.tensor(1);
  const size_t dim = axis_of(call.integer(2), self.shape);
  const int64_t size = self.shape[dim], step = call.integer(5);
  const int64_t first = bounded(call.integer(3), size), end = bounded(call.integer(4), size);
  for (size_t i = 0; i < self.values.size(); ++i) {
    Shape at = coordinates(i, self.shape);
    const int64_t along = at[dim] - first;
    const bool changes = along >= 0 && at[dim] < end && along % step == 0;
    at[dim] = along / step;
    call.out().push(changes ? source.values.at(index_at(at, source.shape)) : self.values[i]);
  }
}

void full(HostCall& call) {
  HostOutput& out = call.out();
  for (size_t i = 0; i < out.count(); ++i) out.push(stored(call.real(0), out.dtype));
}

void arange(HostCall& call) {
  for (int64_t i = 0; i < call.integer(2); ++i)
    call.out().push(static_cast<double>(call.integer(0) + i * call.integer(1)));
}

}  // namespace pumice::engine::reference
