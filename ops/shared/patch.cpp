// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/patch.h"

#include <algorithm>
#include <cinttypes>

#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

constexpr int64_t kMost = 1 << 15;  // products of two, and sums of those, stay far within 32 bits

std::vector<int64_t> numbers(const Args& args, uint32_t index, size_t count, int64_t least, const char* op,
                             const char* what) {
  const std::vector<int64_t> given = args.ints(index);
  check(given.size() == count, "%s: %zu numbers for the %s, not %zu", op, given.size(), what, count);
  for (const int64_t each : given)
    check(each >= least && each < kMost, "%s: the %s has %" PRId64 ", not in %" PRId64 "..%" PRId64, op, what, each,
          least, kMost - 1);
  return given;
}

}  // namespace

std::vector<PatchAxis> patch_axes(const Args& args, uint32_t first, const char* op) {
  const size_t dims = args.ints(first).size();
  const std::vector<int64_t> kernel = numbers(args, first, dims, 1, op, "kernel"),
                             stride = numbers(args, first + 1, dims, 1, op, "stride"),
                             pads = numbers(args, first + 2, 2 * dims, 1 - kMost, op, "padding"),
                             dilation = numbers(args, first + 3, dims, 1, op, "dilation");
  std::vector<PatchAxis> axes;
  for (size_t i = 0; i < dims; ++i) axes.push_back({kernel[i], stride[i], dilation[i], pads[i], pads[i + dims]});
  return axes;
}

Patches patches(const Args& args, uint32_t first, const char* op) {
  check(args.ints(first).size() == 2, "%s: %zu numbers for the kernel, not 2", op, args.ints(first).size());
  const std::vector<PatchAxis> axes = patch_axes(args, first, op);
  Patches p;
  for (size_t i = 0; i < 2; ++i) {
    p.kernel[i] = axes[i].kernel;
    p.stride[i] = axes[i].stride;
    p.dilation[i] = axes[i].dilation;
    p.pads[i] = axes[i].before;
    p.pads[i + 2] = axes[i].after;
  }
  return p;
}

int64_t Patches::count(size_t axis, int64_t size, const char* op) const {
  return PatchAxis{kernel[axis], stride[axis], dilation[axis], pads[axis], pads[axis + 2], transposed}.count(size, op);
}

int64_t PatchAxis::count(int64_t size, const char* op, bool ceil) const {
  const int64_t span = dilation * (kernel - 1) + 1, pad = before + after;
  u32(size + std::max<int64_t>(pad, 0) + span);
  int64_t count = 0;
  if (transposed) {
    count = (size - 1) * stride - pad + span;
  } else {
    const int64_t left = size + pad - span + (ceil ? stride - 1 : 0);
    count = left < 0 ? 0 : left / stride + 1;
    // A window that would begin in the padding after the image does not count.
    if (ceil && (count - 1) * stride >= size + before) --count;
  }
  check(count >= 1, "%s: a kernel that spans %" PRId64 " does not fit a size of %" PRId64 " padded by %" PRId64, op,
        span, size, pad);
  u32(count);
  return count;
}

}  // namespace pumice::engine
