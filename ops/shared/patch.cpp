// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/patch.h"

#include <algorithm>
#include <cinttypes>

#include "base/divide.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

constexpr int64_t kMost = 1 << 15;  // products of two, and sums of those, stay far within 32 bits

template <size_t N>
std::array<int64_t, N> numbers(const Args& args, uint32_t index, int64_t least, const char* op, const char* what) {
  const std::vector<int64_t> given = args.ints(index);
  check(given.size() == N, "%s: %zu numbers for the %s, not %zu", op, given.size(), what, N);
  std::array<int64_t, N> result{};
  for (size_t i = 0; i < N; ++i) {
    check(given[i] >= least && given[i] < kMost, "%s: the %s has %" PRId64 ", not in %" PRId64 "..%" PRId64, op, what,
          given[i], least, kMost - 1);
    result[i] = given[i];
  }
  return result;
}

}  // namespace

Patches patches(const Args& args, uint32_t first, const char* op) {
  Patches p;
  p.kernel = numbers<2>(args, first, 1, op, "kernel");
  p.stride = numbers<2>(args, first + 1, 1, op, "stride");
  p.pads = numbers<4>(args, first + 2, 1 - kMost, op, "padding");
  p.dilation = numbers<2>(args, first + 3, 1, op, "dilation");
  return p;
}

int64_t Patches::count(size_t axis, int64_t size, const char* op, bool ceil) const {
  const int64_t span = dilation[axis] * (kernel[axis] - 1) + 1, pad = pads[axis] + pads[axis + 2];
  u32(size + std::max<int64_t>(pad, 0) + span);
  int64_t count = 0;
  if (transposed) {
    count = (size - 1) * stride[axis] - pad + span;
  } else {
    const int64_t left = size + pad - span + (ceil ? stride[axis] - 1 : 0);
    count = left < 0 ? 0 : left / stride[axis] + 1;
    // A window that would begin in the padding after the image does not count.
    if (ceil && (count - 1) * stride[axis] >= size + pads[axis]) --count;
  }
  check(count >= 1, "%s: a kernel that spans %" PRId64 " does not fit a size of %" PRId64 " padded by %" PRId64, op,
        span, size, pad);
  u32(count);
  return count;
}

}  // namespace pumice::engine
