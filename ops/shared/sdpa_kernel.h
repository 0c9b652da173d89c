// SPDX-License-Identifier: Apache-2.0
// How attention is divided among workgroups. Pure functions of sizes and features, tested without a GPU.
#pragma once

#include <cstdint>
#include <optional>

#include "graph/tensor.h"
#include "vulkan/device.h"

namespace pumice::engine {

// heads: of all batches; rows: queries of a head; e, ev: elements of a query and a key, and of a value.
struct SdpaShape {
  int64_t heads, rows, e, ev;
  DType dtype = DType::f32;
  bool int8_rows = false;  // caches are bytes with scales
  int64_t keys = 1 << 20;  // at most, of caches
};

// glsl/sdpa.glsl: query rows of a workgroup, keys of a block, whether keys and values pass through shared memory (a
// GPU; on a CPU driver that is one more copy), and invocations, of which each row has the same number.
struct SdpaBlocks {
  uint32_t rows, keys;
  bool staged;
  uint32_t lanes = 128;
};
SdpaBlocks sdpa_blocks(const SdpaShape& shape, const Features& features);

// glsl/sdpa_matrix.glsl: subgroups of shape.m query rows each, keys of a block, groups of 8 elements in the staging
// area.
struct SdpaMatrices {
  MatrixShape shape;
  uint32_t subgroups, keys, staged;
  uint32_t rows() const { return subgroups * shape.m; }
};
// glsl/sdpa_fragments.glsl: subgroups, keys of a block, shared memory in uvec4, subgroups that have the same 16 query
// rows and divide the keys.
struct SdpaFragments {
  uint32_t subgroups, keys, shared, key_parts = 1;
  uint32_t rows() const { return subgroups / key_parts * 16; }
};
// Empty where the kernel cannot run; the next one is then asked, and sdpa.glsl, which can do everything, is the last.
std::optional<SdpaFragments> sdpa_fragments(const SdpaShape& shape, const Features& features);
std::optional<SdpaMatrices> sdpa_matrices(const SdpaShape& shape, const Features& features);

}  // namespace pumice::engine
