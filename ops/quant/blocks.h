// SPDX-License-Identifier: Apache-2.0
// Tensors with a scale and a zero point for each block (glsl/include/quant/blocks.glslh): what quantize, dequantize and
// choose_qparams share.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ops/shared/shape.h"

namespace pumice::engine {

// The blocks of a shape: dimensions merged until neighbours differ.
struct QuantBlocks {
  uint32_t rank = 0;
  std::array<uint32_t, kMaxRank> size{}, block{};
  int64_t count = 1;  // of blocks
  int64_t numel = 1;  // of a block
  Shape grid;         // blocks in each dimension of the shape, nothing merged
};
// `block`: the size of a block in each dimension, which divides that of the shape; -1 is the whole dimension.
QuantBlocks quant_blocks(const Shape& shape, const std::vector<int64_t>& block, const char* op);

// A scale or zero point of a call: STORED_* of glsl/include/core/modes.glslh, and the tensor or number.
struct Parameter {
  Tensor tensor;
  float number = 0;
  uint32_t stored = 0;
};
// An absent argument is the number 0. Integers are for zero points only; numbers must be fp32 or int32.
Parameter parameter(const Args& args, uint32_t index, const char* op, bool integers);
// Throws unless a tensor parameter has one element for each block.
void check_count(const Parameter& parameter, const QuantBlocks& blocks, const char* op, const char* what);

// Shader parameters, specialization constants 0 to 3 and workgroups of a kernel over the vec4 groups of `out`; `spans`:
// it can keep a workgroup in one block.
template <class Params>
void over_blocks(Launch& launch, Params& params, const QuantBlocks& b, const Tensor& out, const Parameter& scale,
                 const Parameter& zero, bool spans = true) {
  constexpr uint32_t kLanes = 128, kSpan = 8 * kLanes;  // vec4 groups: a reciprocal costs as much as eight of them
  params.count = u32(out.numel());
  params.rank = b.rank;
  std::copy(b.size.begin(), b.size.end(), params.size);
  std::copy(b.block.begin(), b.block.end(), params.block);
  params.scale = scale.number;
  params.zero = zero.number;
  const bool whole = spans && b.rank == 1 && (b.count == 1 || b.numel % 4 == 0) && b.numel >= kLanes * 4;
  params.block_vec4s = u32((b.numel + 3) / 4);
  params.spans = (params.block_vec4s + kSpan - 1) / kSpan;
  launch.over(whole ? uint64_t(b.count) * params.spans * kLanes : vec4_groups(out), kLanes);
  launch.spec.insert(launch.spec.end(), {scale.stored, zero.stored, whole ? kSpan : 0});
}

}  // namespace pumice::engine
