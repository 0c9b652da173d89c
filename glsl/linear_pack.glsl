// SPDX-License-Identifier: Apache-2.0
// Packs weights [N, K] of the file (q4: two a byte, even k in the low nibble, value + 8, rows start on a byte; q8: int8; f16; f32)
// into the layout of linear/packed.glslh. One invocation makes one uvec4. Rows and columns of padding become 0, which for q4 and q8
// is the stored 8 or 128.
// Bindings: 0 out, 1 source.
#version 450
#extension GL_GOOGLE_include_directive : require
#pragma variant WEIGHT q4 q8 f16 f32
#pragma variant WEIGHT_STORAGE buffer texture2d
#include "core/launch.glslh"

#if defined(WEIGHT_STORAGE_texture2d)
layout(set = 0, binding = 0, rgba32ui) writeonly uniform uimage2D out_;
#else
layout(set = 0, binding = 0) writeonly buffer Out { uvec4 out_[]; };
#endif
layout(set = 0, binding = 1) readonly buffer Weight { uint source_[]; };
layout(push_constant) uniform Params {
  uint n;
  uint k;
  uint tiles;      // of a row panel
  uint row_bytes;  // of the source
  uint last_word;  // of the source
  uint count;      // of vectors
  uint first;      // of them, where the whole weight is bound: a texture
} params;

// Four bytes from any byte on; bytes past the end of the source are undefined.
uint word_at(uint byte) {
  const uint at = byte >> 2, shift = (byte & 3u) * 8u;
  uint word = source_[min(at, params.last_word)] >> shift;
  if (shift != 0u) word |= source_[min(at + 1u, params.last_word)] << (32u - shift);
  return word;
}

// The first column of step s, where that of step 0 is k.
uint column(uint k, uint s) { return k + (s >> 1) * 32u + (s & 1u) * 4u; }

#if defined(WEIGHT_q4)
#define VECTORS 1u
// Columns k .. k+3 of row n in the low nibbles of four bytes, in the order 0, 2, 1, 3.
uint four(uint n, uint k) {
  uint value = 0x8888u;
  if (n < params.n && k < params.k) {
    const uint valid = params.k - k < 4u ? (1u << 4u * (params.k - k)) - 1u : 0xffffu;
    value = (word_at(n * params.row_bytes + (k >> 1)) & valid) | (value & ~valid);
  }
  return (value & 0xf0fu) | (value & 0xf0f0u) << 12;
}

uvec4 vector_of(uint n, uint k, uint v) {
  uvec4 made;
  for (uint s = 0u; s < 4u; ++s) made[s] = four(n, column(k, s)) | four(n + 8u, column(k, s)) << 4;
  return made;
}
#elif defined(WEIGHT_q8)
#define VECTORS 2u
uint four(uint n, uint k) {
  uint value = 0u;
  if (n < params.n && k < params.k) {
    const uint valid = params.k - k < 4u ? (1u << 8u * (params.k - k)) - 1u : 0xffffffffu;
    value = word_at(n * params.row_bytes + k) & valid;
  }
  value ^= 0x80808080u;
  return (value & 0xff0000ffu) | (value & 0xff00u) << 8 | (value & 0xff0000u) >> 8;  // columns 0, 2, 1, 3
}

uvec4 vector_of(uint n, uint k, uint v) {
  const uint first = column(k, 2u * v);
  return uvec4(four(n, first), four(n + 8u, first), four(n, first + 4u), four(n + 8u, first + 4u));
}
#elif defined(WEIGHT_f16)
#define VECTORS 4u
uint two(uint n, uint k) {
  if (n >= params.n || k >= params.k) return 0u;
  const uint value = word_at(n * params.row_bytes + 2u * k);
  return k + 1u < params.k ? value : value & 0xffffu;
}

uvec4 vector_of(uint n, uint k, uint v) {
  const uint first = column(k, v);
  return uvec4(two(n, first), two(n, first + 2u), two(n + 8u, first), two(n + 8u, first + 2u));
}
#else
#define VECTORS 8u
uint one(uint n, uint k) { return n < params.n && k < params.k ? source_[n * params.k + k] : 0u; }

uvec4 vector_of(uint n, uint k, uint v) {
  const uint row = n + 8u * (v & 1u), first = column(k, v >> 1);
  return uvec4(one(row, first), one(row, first + 1u), one(row, first + 2u), one(row, first + 3u));
}
#endif

void main() {
  const uint i = item();
  if (i >= params.count) return;
  const uint l = i & 31u, v = (i >> 5) % VECTORS, tile = (i >> 5) / VECTORS;
  const uint panel = tile / params.tiles;
  const uint n = panel * 16u + (l >> 2), k = (tile - panel * params.tiles) * 64u + (l & 3u) * 8u;
#if defined(WEIGHT_STORAGE_texture2d)
  const uint at = params.first + i;
  imageStore(out_, ivec2(at & 4095u, at >> 12), vector_of(n, k, v));
#else
  out_[i] = vector_of(n, k, v);
#endif
}
