// SPDX-License-Identifier: Apache-2.0
// The patches of an image that convolutions and pooling walk over.
#pragma once

#include <array>
#include <vector>

#include "ops/shared/args.h"

namespace pumice::engine {

// Along one axis. Padding: before the first element and after the last one; negative numbers cut off.
struct PatchAxis {
  int64_t kernel = 1, stride = 1, dilation = 1, before = 0, after = 0;
  bool transposed = false;

  // How many fit along an axis of `size`, the last one partly beyond the end where `ceil`; throws BadGraph when there
  // is none.
  int64_t count(int64_t size, const char* op, bool ceil = false) const;
};

// From four arguments: kernel, stride, pads (those before, then those after) and dilation. Throws BadGraph when their
// lengths do not fit each other, or numbers are so large that their sums might wrap.
std::vector<PatchAxis> patch_axes(const Args& args, uint32_t first, const char* op);

// Sizes along (y, x); `pads`: above, to the left, below, to the right; negative ones cut off.
struct Patches {
  std::array<int64_t, 2> kernel{1, 1}, stride{1, 1}, dilation{1, 1};
  std::array<int64_t, 4> pads{};
  bool transposed = false;

  // As PatchAxis::count.
  int64_t count(size_t axis, int64_t size, const char* op) const;
};

// From four arguments as patch_axes, of two axes.
Patches patches(const Args& args, uint32_t first, const char* op);

// The part of a Params struct that conv/im2col.glslh declares.
template <class Params>
void put(Params& params, const Patches& p) {
  params.kernel_h = static_cast<uint32_t>(p.kernel[0]);
  params.kernel_w = static_cast<uint32_t>(p.kernel[1]);
  params.stride_h = static_cast<uint32_t>(p.stride[0]);
  params.stride_w = static_cast<uint32_t>(p.stride[1]);
  params.dilation_h = static_cast<uint32_t>(p.dilation[0]);
  params.dilation_w = static_cast<uint32_t>(p.dilation[1]);
  params.pad_h = static_cast<int32_t>(p.pads[0]);
  params.pad_w = static_cast<int32_t>(p.pads[1]);
}

}  // namespace pumice::engine
