// SPDX-License-Identifier: Apache-2.0
// The kernels of linear layers, and what each needs. Pure functions of sizes and features, tested without a GPU.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "graph/tensor.h"
#include "vulkan/device.h"

namespace pumice::engine {

enum class WeightType : uint32_t { q4, q8, f16, f32 };  // of a weight, in the order of the shaders' axis WEIGHT

// bm x bn outputs a workgroup, tm x tn of them a subtile: of an invocation (linear/gemm.glslh) or a subgroup
// (linear/matrix.glslh).
struct Tile {
  uint32_t bm = 0, bn = 0, tm = 1, tn = 1;
  uint32_t subtiles() const { return bm / tm * (bn / tn); }
  bool operator==(const Tile&) const = default;
};

// out[m, n] from x[m, k] and a weight [n, k]; m, n, k >= 1.
struct LinearShape {
  int64_t m, n, k;
  uint32_t group = 0;  // columns with one scale; 0: the whole row
  WeightType weight = WeightType::f32;
  DType dtype = DType::f32;   // of x and out
  bool scale_f16 = false;     // scales are fp16, not fp32
  bool integers = false;      // x is 8-bit integers, or is quantized to them (ops/linear/int8_node.h)
  bool may_split = false;     // the operator has nodes for Input::split (ops/linear/split_x.h)
  bool split_weight = false;  // weights of f32 are there as two fp16, too (pre_split_form)
  bool layer_norm = false;    // x is the result of a layer norm, which the kernel may make (fuses_layer_norm)
  bool fused = false;         // the operator also norms or gates, which fuses_norm and gated_kernel have kernels for
  bool textures = false;      // x and out are
  bool weight_texture = false;
  std::string_view op = {};  // of integers: the operator, which says how x becomes them
};

enum class Family : uint8_t {
  gemv,                // linear_gemv.glsl
  tiled,               // linear_tiled.glsl
  matrix,              // linear_matrix.glsl
  fragments,           // linear_fragments.glsl
  gemv_fragments,      // linear_gemv_fragments.glsl
  gemv_rows,           // linear_gemv_rows.glsl
  gemv_row,            // linear_gemv_row_fragments.glsl
  dot_gemv,            // linear_dot_gemv.glsl
  dot_tiled,           // linear_dot_tiled.glsl
  matrix_int8,         // linear_matrix_int8.glsl
  matrix_int8_groups,  // linear_matrix_int8_groups.glsl
};

// What a kernel reads when x is integers, or is not read as it is.
enum class Input : uint8_t {
  floats,  // whole numbers as floats, made by linear_quantize.glsl, as it would read any floats
  halves,  // likewise in fp16, where x is not
  words,   // bytes, made by linear_quantize.glsl
  x,       // x itself, which it quantizes
  split,   // not of integers: two fp16 for each fp32, made by linear_split.glsl
  splits,  // not of integers: x itself, of which it makes two fp16 for each fp32
};

struct LinearKernel {
  std::string_view name;  // as Features::kernel forces it
  Family family;
  uint32_t rows = 0;            // of x that a GEMV's pass takes
  uint32_t panels = 0;          // of 16 weight rows that a GEMV's workgroup takes; gemv_row: at least
  Tile tile = {};               // outputs of a workgroup, of the others
  Input input = Input::floats;  // others but split and splits: x must be integers
  uint32_t depth = 1;           // tiles that a matrix_int8 kernel prefetches
  uint32_t columns = 1;         // groups of subgroups that a GEMV's row panels are divided among; several share x
  uint32_t own_panels() const { return panels / columns; }
};

// Every kernel there is, in a fixed order.
std::span<const LinearKernel> linear_kernels();
// The kernel of that name; throws InvalidArgument with the nearest name.
const LinearKernel& linear_kernel(std::string_view name);
// Whether it takes both parts of an fp32 row as columns of one matrix (glsl/include/linear/gemv_pairs.glslh).
bool takes_pairs(const LinearKernel& kernel);
// Whether it takes an fp32 weight as two fp16 for each element (pre_split_form).
bool reads_split_weight(const LinearKernel& kernel, WeightType weight);
// What it reads at that shape of integers.
Input form_of(const LinearKernel& kernel, const LinearShape& shape);
// Why it cannot compute that shape on that device, as the end of "it ..."; empty when it can.
std::string unsupported_reason(const LinearKernel& kernel, const LinearShape& shape, const Features& features);
// Whether a kernel that reads x in that form can compute that shape, at some m, on that device.
bool may_read(Input form, LinearShape shape, const Features& features);
// Why it is not recommended for that shape on that device, though it can run, in the same form; empty for the kernels
// that are meant for it. The pick is one of these.
std::string not_recommended_reason(const LinearKernel& kernel, const LinearShape& shape, const Features& features);

// Whether it can norm its rows of x itself, and whether the device has the shared memory.
bool fuses_norm(const LinearKernel& kernel, const LinearShape& shape, const Features& features);
// Where a kernel that makes rows by a layer norm has mean and variance from: LAYER_NORM_* of
// glsl/include/core/modes.glslh.
enum class MomentsOf : uint32_t { none, found, left };
// Whether it can read rows of x as patches of an image (glsl/include/linear/patches.glslh).
bool reads_patches(const LinearKernel& kernel, const LinearShape& shape, const Features& features);
// Whether it can leave moments of the rows that it writes.
bool leaves_moments(const LinearKernel& kernel, const LinearShape& shape, const Features& features);
// Whether it can make its only row of x by a layer norm of one kind (glsl/include/linear/rms_norm.glslh), and is
// faster.
bool centers_row(const LinearKernel& kernel, const LinearShape& shape, const Features& features);
// Whether it can make its rows of x by a layer norm, and is faster so than with a dispatch before it, where `readers`
// such products read the norm; and its rows of the residual.
bool fuses_layer_norm(const LinearKernel& kernel, const LinearShape& shape, MomentsOf from, uint32_t readers,
                      const Features& features);
bool fuses_residual_norm(const LinearKernel& kernel, const LinearShape& shape, MomentsOf from, uint32_t readers,
                         const Features& features);
// The kernel to use in place of `kernel` for a gated product (ops/linear/epilogue.h); null where there is none.
const LinearKernel* gated_kernel(const LinearKernel& kernel);

// Invocations and shared memory of a workgroup of the other families.
uint32_t tile_lanes(const LinearKernel& kernel, const Features& features);
uint32_t tile_shared_bytes(const LinearKernel& kernel, WeightType weight, const Features& features);
// Whether a device has the invocations and the shared memory of a tile.
bool fits(const LinearKernel& kernel, WeightType weight, const Features& features);

}  // namespace pumice::engine
