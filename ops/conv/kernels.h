// SPDX-License-Identifier: Apache-2.0
// Which kernel computes a convolution, by the names that Features::kernel forces. Pure functions, tested without a GPU.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ops/conv/channels_last_kernels.h"
#include "ops/shared/patch.h"
#include "ops/shared/sum_error.h"

namespace pumice::engine {

// A convolution but for the numbers in its tensors.
struct ConvFacts {
  DType x = DType::f32, out = DType::f32;
  bool quantized = false, has_zero = false;  // the weight has scales; and zero points
  int64_t groups = 1, channels = 1;          // output channels of all groups
  int64_t in_channels = 1;                   // of all groups
  Patches patches = {};
  bool textures = false;          // x and the output are
  int64_t pixels = 1, width = 1;  // of the output: of the batch, and of a row

  int64_t terms() const;     // of an output's sum
  int64_t row_taps() const;  // of channels-last x: taps of a row that are one, where that leaves fewer columns; else 1
  ConvShape shape() const;
};

// Every kernel, in a fixed order: conv_direct, conv_depthwise, conv_tiled, those of small_conv_tiles(), and those of
// channels_last_kernels.h.
std::span<const std::string_view> conv_kernels();
// The kernel that computes it there. Features::kernel is taken where it can compute it, else ignored.
std::string_view conv_kernel(const ConvFacts& facts, const Features& features);
// Why a kernel cannot compute it on that device, as the end of "it ..."; empty when it can.
std::string conv_unsupported_reason(std::string_view kernel, const ConvFacts& facts, const Features& features);
// Why it is not recommended on that device, though it may run, in the same form; empty when it is.
std::string conv_not_recommended_reason(std::string_view kernel, const Features& features);
// |err| <= u |y| + conv_roundings(kernel, facts).worst(terms) * S * L against fp64 of the same stored numbers, with S =
// sum|x w| + |bias|, and by chance; u and L as in ops/linear/error_bound.h.
SumRoundings conv_roundings(std::string_view kernel, const ConvFacts& facts);

// conv_tiled with few outputs an invocation, for where registers are fewest.
struct SmallConvTile {
  std::string_view kernel;
  Tile tile;
};
std::span<const SmallConvTile> small_conv_tiles();
// That which an NCHW convolution takes; null: conv_tiled.
const SmallConvTile* small_conv_tile(const ConvFacts& facts, const Features& features);
// Whether shaders know a window's side and are compiled for it: others are not worth a pipeline each.
constexpr bool is_known_window(int64_t side) {
  return side == 1 || side == 3;
}

// Whether a group has so few output channels that tiles would be mostly empty.
bool is_direct(int64_t groups, int64_t channels_of_group);
// Of those: columns of outputs of an invocation of conv/depthwise.glslh, which are whole words; 0: conv/direct.glslh.
uint32_t depthwise_columns(const ConvFacts& facts, const Features& features);
// Of the others: why x is never channels-last, as the end of "it ..."; empty where
// channels_last_kernels.h has kernels.
std::string channels_last_unsupported_reason(const ConvFacts& facts);

}  // namespace pumice::engine
