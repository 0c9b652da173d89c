// SPDX-License-Identifier: Apache-2.0
// The launches of ops/cached_attention.cpp: new rows into the caches, then attention by one of two kernels.
#pragma once

#include "graph/graph.h"
#include "ops/shared/shape.h"

namespace pumice::engine {

constexpr int64_t kTickets = 1024;  // of all calls together: one for each head of the caches of a call at a time

// The arguments of a call, and its sizes at the live shapes.
struct Caches {
  Tensor q, k, v, key_cache, value_cache, first, cos, sin, q_norm, k_norm, sinks;
  float eps, scale, softcap;
  int64_t heads, begin[3];
  uint32_t window;
  Tensor scales;     // of rows of int8, [B, G, S, 2] f32; else empty
  bool interleaved;  // pairs (2i, 2i + 1) are rotated, not (i, i + R/2); cos and sin have R/2 columns, not R

  bool int8() const { return bool(scales); }
  int64_t batch() const { return key_cache.dim(0); }
  int64_t kv_heads() const { return key_cache.dim(1); }
  int64_t capacity() const { return key_cache.dim(2); }
  int64_t rows() const { return q.dim(1); }
  int64_t key_size() const { return key_cache.dim(3); }
  int64_t value_size() const { return value_cache.dim(3); }

  bool tables() const { return cos && cos.rank() == 2; }  // [S or more, *], of each position
  int64_t angles() const { return cos ? cos.shape().back() : 0; }
  int64_t rotated() const { return interleaved ? 2 * angles() : angles(); }
  uint32_t angle_batch() const { return cos && !tables() && cos.dim(0) > 1 ? u32(cos.dim(1) * angles()) : 0; }
  uint32_t angle_rows() const { return tables() ? u32(cos.dim(0)) : 0; }
};

// Throws when sizes, known at the live shapes, do not fit together.
void check_sizes(const Caches& caches);
// Workgroups of attention/few_rows.glslh that share a head of the caches; partial sums and tickets are for this many.
int64_t cache_splits(const Caches& caches, const Features& features);
// Query rows of a head of the caches, where cached_attention.glsl takes the call, else 0: sdpa.glsl or
// sdpa_matrix.glsl.
int64_t few_rows(const Caches& caches, const Features& features);
// Whether cached_attention_row.glsl takes it: one new row of each sequence. The caches must be written in place.
bool is_one_row(const Caches& caches, const Features& features);

// Lanes that prepare a head, a vec4 group each.
uint32_t head_lanes(const Caches& caches);
// Specialization constants 1 to 7 of kernels with attention/few_rows.glslh, for `rows` of few_rows().
void few_rows_constants(Launch& launch, const Caches& caches, int64_t rows);

// `in_place`: the new caches are the old ones; `call`: Graph::call_id.
void launch_write(Launch& launch, const Caches& caches, bool in_place, uint32_t call);
void launch_one_row(Launch& launch, const Caches& caches, uint32_t call);
void launch_few_rows(Launch& launch, const Caches& caches, int64_t rows);
void launch_many_rows(Launch& launch, const Caches& caches);

}  // namespace pumice::engine
