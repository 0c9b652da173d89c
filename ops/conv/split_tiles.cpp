// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/split_tiles.h"

#include <algorithm>

#include "base/divide.h"

namespace pumice::engine {
namespace {

uint32_t lanes_of(const ConvKernel& kernel, uint32_t slots) {
  return 32 * kernel.tile.subtiles() * slots;
}

// Of glsl/conv2d_tile_fragments.glsl: for each slot two buffers of 32 columns, of which a pixel has two fp16 for each
// and a power of two, or else the sums.
uint32_t shared_bytes(const ConvKernel& kernel, uint32_t slots) {
  const Tile& t = kernel.tile;
  const uint32_t x = slots * 2 * t.bn * 128, sums = std::max(t.bn * (t.bm + 4), t.bm * (t.bn + 8)) * 4;
  return std::max(x, sums) + slots * 2 * t.bn * 4;
}

bool holds(const ConvKernel& kernel, uint32_t slots, const Features& features) {
  return lanes_of(kernel, slots) <= features.max_invocations &&
         shared_bytes(kernel, slots) <= features.max_shared_bytes;
}

// A workgroup's slots at most; chunks of each at least; subgroups in all at most, 8 for each multiprocessor.
constexpr uint32_t kMostSlots = 4;
constexpr int64_t kLeastChunks = 4, kMostSubgroups = 1056;

// H200, us of a convolution from NCHW to NCHW by split_conv_gemvf8x2, 64x32 and 128x32. 32 images:
//   3x3 64 -> 64, 56x56    373, 160, 235      1x1 64 -> 256, 56x56    341, 126, 132
//   3x3 128 -> 128, 28x28  303, 141, 119      3x3 256 -> 256, 14x14   256, 133, 139
//   3x3 512 -> 512, 7x7    246, 132, 135      7x7 3 -> 64, 224x224    582, 236, 389
// split_conv_gemvf8x2 and 64x32, by workgroups of 64x32: 53 convolutions of ResNet-50 and EfficientNet, one to four
// images.
//   16 to 32    slower: 19.2, 54.7 (3x3 512 -> 512, 7x7) to 14.3, 17.4 (1x1 1024 -> 256, 14x14)
//   48 to 64    13.7, 13.4 (1x1 512 -> 128, 28x28) to 49.5, 55.2 (3x3 512 -> 512, 7x7, four images)
//   88 to 98    38.5, 36.5 (1x1 2048 -> 512, 7x7, four images) to 18.7, 15.9 (3x3 64 -> 64, 56x56)
//   100 to 128  9.5, 9.5 (1x1 64 -> 64, 56x56, 2 chunks) to 20.5, 16.3 (1x1 512 -> 128, 28x28, two images)
//   from 192    27.0, 22.2 (1x1 512 -> 2048, 7x7, two images) to 32.1, 15.0 (1x1 24 -> 144, 56x56, 1 chunk, four
//   images)
// Whole ResNet-18, one image, whose tensors are channels-last, took 1 % longer with its 98 workgroups by 64x32.
constexpr int64_t kLeastWorkgroups = 100;
constexpr int64_t kManyWorkgroups = 784, kManyChunks = 36;  // of 128 channels

bool suits(const ConvKernel& kernel, const ConvShape& s, const Features& features) {
  const int64_t groups = conv_workgroups(kernel.tile, s), half = kernel.tile.bm / 2;
  if ((s.channels - 1) % kernel.tile.bm < half) return false;  // half of the last tile is empty
  if (kernel.tile.bm == 128) return groups >= features.filling(kManyWorkgroups) && conv_chunks(s) >= kManyChunks;
  return groups >= features.filling(kLeastWorkgroups);
}

}  // namespace

bool is_split_tile(const ConvKernel& kernel) {
  return kernel.family == ConvFamily::fragments && kernel.x == DType::f32 && kernel.tile.bn > 8;
}

std::string split_tile_unsupported_reason(const ConvKernel& kernel, const Features& features) {
  for (const ConvKernel& each : channels_last_kernels()) {
    if (each.family != ConvFamily::fragments || each.x != kernel.x || is_split_tile(each)) continue;
    if (std::string reason = unsupported_reason(each, features); !reason.empty()) return reason;
  }
  if (holds(kernel, 1, features)) return "";
  return format("needs %u invocations and %u bytes of shared memory, the device has %u and %u", lanes_of(kernel, 1),
                shared_bytes(kernel, 1), features.max_invocations, features.max_shared_bytes);
}

uint32_t split_tile_lanes(const ConvKernel& kernel, const ConvShape& s, const Features& features) {
  const int64_t subgroups = conv_workgroups(kernel.tile, s) * kernel.tile.subtiles(),
                most = features.filling(kMostSubgroups);
  uint32_t slots = 1;
  for (uint32_t each = 2; each <= kMostSlots; ++each) {
    const bool even = conv_chunks(s) % each == 0 && conv_chunks(s) / each >= kLeastChunks;
    if (even && subgroups * each <= most && holds(kernel, each, features)) slots = each;
  }
  return lanes_of(kernel, slots);
}

const ConvKernel* pick_split_tile(const ConvShape& s, const Features& features) {
  for (const ConvKernel& kernel : channels_last_kernels()) {
    if (!is_split_tile(kernel) || !suits(kernel, s, features)) continue;
    if (split_tile_unsupported_reason(kernel, features).empty()) return &kernel;
  }
  return nullptr;
}

}  // namespace pumice::engine
