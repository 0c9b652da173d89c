// SPDX-License-Identifier: Apache-2.0
// The patches of an image that convolutions and pooling walk over.
#pragma once

#include <array>

#include "ops/shared/args.h"

namespace pumice::engine {

// Sizes along (y, x); `pads`: above, to the left, below, to the right; negative ones cut off.
struct Patches {
  std::array<int64_t, 2> kernel{1, 1}, stride{1, 1}, dilation{1, 1};
  std::array<int64_t, 4> pads{};
  bool transposed = false;

  // How many fit along an axis of `size`, the last one partly beyond the end where `ceil`; throws BadGraph when there
  // is none.
  int64_t count(size_t axis, int64_t size, const char* op, bool ceil = false) const;
};

// From four arguments: kernel, stride, pads and dilation. Throws BadGraph when they have other lengths, or numbers so
// large that their sums might wrap.
Patches patches(const Args& args, uint32_t first, const char* op);

// The part of a Params struct that conv/im2col.glslh and pool2d.glsl share.
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
