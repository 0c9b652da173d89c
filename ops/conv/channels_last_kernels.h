// SPDX-License-Identifier: Apache-2.0
// Which kernel computes a convolution from channels-last x: by cooperative matrices (glsl/include/conv/matrix.glslh,
// conv/fragments.glslh) or by dot products of bytes (glsl/conv2d_dot.glsl). Pure functions of sizes and features.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ops/linear/kernels.h"

namespace pumice::engine {

enum class ConvFamily : uint8_t {
  fragments,  // conv/fragments.glslh, whose weight is packed in its own way
  matrix,     // conv/matrix.glslh
  dot,        // conv2d_dot.glsl
};

// A product of [channels, k] and [k, pixels of the batch]; k_groups: k in groups of 8 numbers of f16 or f32, or of 16
// of i8, which stands for both types of bytes.
struct ConvShape {
  int64_t channels, pixels, k_groups;
  DType x = DType::f16;
  // How the weight is packed, once that is known: for fragments, or for all others.
  enum class Packing : uint8_t { any, fragments, chunks } packing = Packing::any;
};

// Channels along the rows of the tile.
struct ConvKernel {
  std::string_view name;  // as Features::kernel forces it
  DType x;                // f16, f32 or i8
  Tile tile;              // a subtile for each subgroup, or invocation of dot products; one of fragments
  ConvFamily family = ConvFamily::matrix;
};

// splits: workgroups that share an output tile; each sums a range of k.
struct ConvPick {
  const ConvKernel* kernel = nullptr;
  uint32_t splits = 1;
};

// Whether the last workgroup of an output tile adds the sums of all splits; else a dispatch does.
bool last_adds(const ConvPick& pick);

// Workgroups that a product takes in such tiles; and how many chunks of four groups k has.
int64_t conv_workgroups(const Tile& tile, const ConvShape& shape);
int64_t conv_chunks(const ConvShape& shape);

// Every one of them, in a fixed order; why one cannot run on that device, as the end of "it ...".
std::span<const ConvKernel> channels_last_kernels();
std::string unsupported_reason(const ConvKernel& kernel, const Features& features);
// Null where no kernel can, or where conv/tiled.glslh is better. Features::kernel forces one by its name; those of
// other operators, and of the other dtype, leave the choice.
ConvPick pick_conv(const ConvShape& shape, const Features& features);
// The most output tiles of a pick with splits.
int64_t most_split_tiles(const Features& features);
// Whether Features::kernel is the name of a convolution's kernel, which other operators then ignore.
bool is_conv_kernel(std::string_view name);
// Invocations of a workgroup, and shared memory, of matrices and dot products.
uint32_t conv_lanes(const ConvKernel& kernel, const Features& features);
uint32_t fragment_lanes(const ConvKernel& kernel, const ConvShape& shape, const Features& features);  // of that family
uint32_t conv_shared_bytes(const ConvKernel& kernel, const Features& features);
const MatrixShape& conv_matrix(const ConvKernel& kernel, const Features& features);

}  // namespace pumice::engine
