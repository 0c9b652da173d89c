// SPDX-License-Identifier: Apache-2.0
// Three convolutions of 8-bit integers in one dispatch, with the bits of three: a window, and two of single pixels, the first of
// which may add a tensor, as in a residual block and the first layer of the next one. For few pixels, where a dispatch waits for
// memory, and for the end of the one before, longer than it multiplies. Stages: 0, 1, 2.
//
// A workgroup has BLOCKS * 8 output pixels and all their channels, whose bytes stay in shared memory between stages. In a pass of a
// stage, a subgroup has a panel of 16 channels; where there are fewer panels, several subgroups (SLOTS) share the tiles of a panel's
// columns: 128, as four cooperative matrices. Those of the weight are filled from registers (linear/fragments.glslh), into which a
// stage's first ones are loaded before the stage in front of it; those of x are loaded from shared memory.
//
// H200, int8, all of ResNet-50, runs in turns: 315 us without, 275 us; with x filled from registers, too, 285 us. Lost: one loop of
// all stages and passes (375 us), whose compiler did not keep the weights in registers; 1024 lanes (292 us).
//
// Bindings: 0 out of stage 2, 1 out of stage 1, 2 x; of the stages 3 weights, 6 biases (weights where there are none), 9 scales and
// 12 row sums of weights; 15 what stage 1 adds (any buffer where nothing). Images are channels-last, as conv/epilogue.glslh says.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#define INTEGERS
#include "core/index.glslh"
#include "core/launch.glslh"
#include "conv/chain_end.glslh"
#include "linear/fragments.glslh"

layout(set = 0, binding = 0) writeonly buffer Out { uint out_[]; };
layout(set = 0, binding = 1) writeonly buffer Middle { uint middle_[]; };
layout(set = 0, binding = 2) readonly buffer X { uvec4 x_[]; };
layout(set = 0, binding = 3) readonly buffer Weight0 { uvec4 weight0_[]; };
layout(set = 0, binding = 4) readonly buffer Weight1 { uvec4 weight1_[]; };
layout(set = 0, binding = 5) readonly buffer Weight2 { uvec4 weight2_[]; };
layout(set = 0, binding = 15) readonly buffer Other { uint other_[]; };

layout(constant_id = 1) const uint PANELS0 = 1u;  // of 16 output channels, of each stage
layout(constant_id = 2) const uint PANELS1 = 1u;
layout(constant_id = 3) const uint PANELS2 = 1u;
layout(constant_id = 4) const uint BLOCKS = 1u;         // of 8 pixels
layout(constant_id = 5) const uint PIXEL_VECTORS = 1u;  // of 16 channels of an input pixel
layout(constant_id = 6) const uint KERNEL_W = 1u;
layout(constant_id = 7) const uint PATCH_VECTORS = 1u;  // of a patch
layout(constant_id = 8) const uint PADDED = 1u;         // there is padding

#define PIXELS_AT_ONCE (BLOCKS * 8u)
#define SUBGROUPS (LANES / 32u)
// Of a stage: panels at once, subgroups for each, passes; tiles of 128 columns, and those of a subgroup.
#define AT_ONCE(panels) (panels < SUBGROUPS ? panels : SUBGROUPS)
#define SLOTS(panels) (SUBGROUPS / AT_ONCE(panels))
#define PASSES(panels) ((panels + AT_ONCE(panels) - 1u) / AT_ONCE(panels))
#define TILES(vectors) ((vectors + 7u) / 8u)
#define EACH(panels, vectors) ((TILES(vectors) + SLOTS(panels) - 1u) / SLOTS(panels))
// Pixels of which all lanes end the sums at once, four channels each; how often.
#define ROWS(panels) (LANES / (AT_ONCE(panels) * 4u))
#define ENDS(panels) ((PIXELS_AT_ONCE + ROWS(panels) - 1u) / ROWS(panels))

// x of the stages in shared memory, [pixel][word]: stage 2 has the place of stage 0. Whole tiles, and four words more, so that loads
// of a subgroup do not meet in a bank.
#define PITCH(vectors) (TILES(vectors) * 32u + 4u)
#define LARGER_PITCH (PITCH(PATCH_VECTORS) > PITCH(PANELS1) ? PITCH(PATCH_VECTORS) : PITCH(PANELS1))
#define SECOND (PIXELS_AT_ONCE * LARGER_PITCH)
#define SUMS_OF_PANEL (PIXELS_AT_ONCE * 4u + 4u)
shared uint image_[SECOND + PIXELS_AT_ONCE * PITCH(PANELS0)];
shared ivec4 sums_[SUBGROUPS * SUMS_OF_PANEL];  // [subgroup][pixel][four channels]

// The place of a word of a pixel: each half of 16 words are the columns of a matrix, in the order that w_matrix() gives the weight.
uint placed(uint word) { return (word & ~15u) | (word & 3u) << 2 | (word >> 2 & 3u); }

// ---- the patches of stage 0 -----------------------------------------------------------------------------------------------

uvec2 pair(uint word) { return uvec2(word & 0xffffu, word >> 16); }

// Vector i % PATCH_VECTORS of the patch of pixel i / PATCH_VECTORS.
uvec4 patch_vector(uint i, uint first_n) {
  const uint pixel = i / PATCH_VECTORS, vector = i - pixel * PATCH_VECTORS, tap = vector / PIXEL_VECTORS;
  uint rest = min(first_n + pixel, params.pixels - 1u);
  const uint x = take(rest, params.out_w), y = take(rest, params.out_h), ky = tap / KERNEL_W;
  // Wraps in the padding.
  const uvec2 at = pair(params.stride) * uvec2(y, x) + pair(params.dilation) * uvec2(ky, tap - ky * KERNEL_W) - pair(params.pads);
  const bool inside = PADDED == 0u || (at.x < params.in_h && at.y < params.in_w);
  const uint from = ((rest * params.in_h + at.x) * params.in_w + at.y) * PIXEL_VECTORS + vector - tap * PIXEL_VECTORS;
  const uvec4 loaded = x_[inside ? from : 0u];
  return inside ? loaded : uvec4(params.border);
}

#define PATCH_LOADS ((PIXELS_AT_ONCE * PATCH_VECTORS + LANES - 1u) / LANES)
uvec4 patch_[PATCH_LOADS];

void load_patches(uint first_n) {
  const uint last = PIXELS_AT_ONCE * PATCH_VECTORS - 1u;
  [[unroll]] for (uint i = 0u; i < PATCH_LOADS; ++i) patch_[i] = patch_vector(min(lane() + i * LANES, last), first_n);
}

void share_patches() {
  [[unroll]] for (uint i = 0u; i < PATCH_LOADS; ++i) {
    const uint at = lane() + i * LANES, pixel = at / PATCH_VECTORS;
    const uint to = pixel * PITCH(PATCH_VECTORS) + placed((at - pixel * PATCH_VECTORS) * 4u);
    if (pixel >= PIXELS_AT_ONCE) continue;
    [[unroll]] for (uint e = 0u; e < 4u; ++e) image_[to + 4u * e] = patch_[i][e];
  }
}

// ---- products -------------------------------------------------------------------------------------------------------------

// Tiles of a subgroup in all passes of a stage, and those on their way at once.
#define ALL(panels, vectors) (PASSES(panels) * EACH(panels, vectors))
#define AHEAD(all, most) ((all) < most ? (all) : most)
#define AHEAD0 AHEAD(ALL(PANELS0, PATCH_VECTORS), 3u)
#define AHEAD1 AHEAD(ALL(PANELS1, PANELS0), 2u)
#define AHEAD2 AHEAD(ALL(PANELS2, PANELS1), 2u)
uvec4 w0_[AHEAD0 * 4u];
uvec4 w1_[AHEAD1 * 4u];
uvec4 w2_[AHEAD2 * 4u];
SUM_MATRIX sum_[BLOCKS];

uint subgroup() { return lane() >> 5; }
uint tile_of(uint panels, uint i) { return subgroup() / AT_ONCE(panels) + i * SLOTS(panels); }

// Loads tile u of a stage, in a ring; past the last panel and tile: those.
#define LOAD(w, ahead, weight, panels, vectors, u)                                                             \
  {                                                                                                            \
    const uint pass = (u) / EACH(panels, vectors), i = (u) % EACH(panels, vectors);                            \
    const uint panel = min(pass * AT_ONCE(panels) + subgroup() % AT_ONCE(panels), panels - 1u);                \
    const uint tile = min(tile_of(panels, i), TILES(vectors) - 1u);                                            \
    const uint from = (panel * TILES(vectors) + tile) * 128u + (lane() & 31u);                                 \
    [[unroll]] for (uint v = 0u; v < 4u; ++v) w[(u) % ahead * 4u + v] = weight[from + v * 32u];                \
  }
#define LOAD_FIRST(w, ahead, weight, panels, vectors) \
  [[unroll]] for (uint u = 0u; u < ahead; ++u) LOAD(w, ahead, weight, panels, vectors, u)

X_MATRIX x_at(uint from, uint pitch) {
  X_MATRIX x;
  coopMatLoad(x, image_, from, pitch, gl_CooperativeMatrixLayoutColumnMajor);
  return x;
}

// A pass: by each tile that there is, in whose place another one is loaded.
#define MULTIPLY(w, ahead, weight, panels, vectors, pass, begin)                                                          \
  [[unroll]] for (uint b = 0u; b < BLOCKS; ++b) sum_[b] = SUM_MATRIX(0);                                                  \
  [[unroll]] for (uint i = 0u; i < EACH(panels, vectors); ++i) {                                                          \
    const uint of_stage = (pass) * EACH(panels, vectors) + i, tile = tile_of(panels, i);                                  \
    if (tile < TILES(vectors)) {                                                                                          \
      [[unroll]] for (uint s = 0u; s < 4u; ++s) {                                                                         \
        const W_MATRIX a = w_matrix(w[of_stage % ahead * 4u + s]);                                                        \
        [[unroll]] for (uint b = 0u; b < BLOCKS; ++b) {                                                                   \
          const uint from = begin + b * 8u * PITCH(vectors) + tile * 32u + s * 8u;                                        \
          sum_[b] = coopMatMulAdd(a, x_at(from, PITCH(vectors)), sum_[b]);                                                \
        }                                                                                                                 \
      }                                                                                                                   \
    }                                                                                                                     \
    if (of_stage + ahead < ALL(panels, vectors)) LOAD(w, ahead, weight, panels, vectors, of_stage + ahead)                \
  }

// The place of four channels of a panel; turned, so that stores of a subgroup meet in few banks.
uint sums_at(uint subgroup, uint pixel, uint four) { return subgroup * SUMS_OF_PANEL + pixel * 4u + (four ^ ((pixel >> 1) & 3u)); }

void share_sums() {
  const uint l = lane() & 31u;
  [[unroll]] for (uint b = 0u; b < BLOCKS; ++b) {
    [[unroll]] for (uint e = 0u; e < 4u; ++e) {
      const uint pixel = b * 8u + (l & 3u) * 2u + (e & 1u), channel = (l >> 2) + (e >> 1) * 8u;
      sums_[sums_at(subgroup(), pixel, channel >> 2)][channel & 3u] = sum_[b][e];
    }
  }
  barrier();
}

// ---- the end of a pass ----------------------------------------------------------------------------------------------------

// A lane ends the same four channels of a pixel in each row.
uint four_of(uint panels, uint pass) { return pass * AT_ONCE(panels) * 4u + lane() % (AT_ONCE(panels) * 4u); }
Channels channels_of(uint stage, uint panels, uint pass) { return channels_at(stage, min(four_of(panels, pass), panels * 4u - 1u)); }

// Row i of a pass: of the sums of all slots. Where the word is in an image of the stage's channels, or NO_WORD; and the word.
#define NO_WORD 0xffffffffu
uint end_row(uint stage, uint panels, uint pass, uint i, uint first_n, Channels c, uint other, uint begin, uint pitch, out uint word) {
  const uint own = lane() % (AT_ONCE(panels) * 4u), row = lane() / (AT_ONCE(panels) * 4u), pixel = row + i * ROWS(panels);
  const uint four = four_of(panels, pass);
  if (row >= ROWS(panels) || four >= panels * 4u || pixel >= PIXELS_AT_ONCE) return NO_WORD;
  ivec4 sums = ivec4(0);
  [[unroll]] for (uint s = 0u; s < SLOTS(panels); ++s) sums += sums_[sums_at(s * AT_ONCE(panels) + (own >> 2), pixel, own & 3u)];
  word = end_of(stage, c, sums, other);
  if (stage < 2u) image_[begin + pixel * pitch + placed(four)] = word;
  return first_n + pixel < params.pixels ? (first_n + pixel) * panels * 4u + four : NO_WORD;
}

void main() {
  const uint first_n = group() * PIXELS_AT_ONCE;
  if (first_n >= params.pixels) return;  // the whole workgroup
  uint word = 0u;
  load_patches(first_n);
  LOAD_FIRST(w0_, AHEAD0, weight0_, PANELS0, PATCH_VECTORS)
  LOAD_FIRST(w1_, AHEAD1, weight1_, PANELS1, PANELS0)
  share_patches();
  barrier();

  [[unroll]] for (uint p = 0u; p < PASSES(PANELS0); ++p) {
    const Channels end = channels_of(0u, PANELS0, p);
    MULTIPLY(w0_, AHEAD0, weight0_, PANELS0, PATCH_VECTORS, p, 0u)
    if (p + 1u == PASSES(PANELS0)) LOAD_FIRST(w2_, AHEAD2, weight2_, PANELS2, PANELS1)
    share_sums();
    [[unroll]] for (uint i = 0u; i < ENDS(PANELS0); ++i) {
      end_row(0u, PANELS0, p, i, first_n, end, 0u, SECOND, PITCH(PANELS0), word);
    }
    barrier();
  }

  [[unroll]] for (uint p = 0u; p < PASSES(PANELS1); ++p) {
    const Channels end = channels_of(1u, PANELS1, p);
    uint other[ENDS(PANELS1)];
    [[unroll]] for (uint i = 0u; i < ENDS(PANELS1); ++i) {
      const uint n = min(first_n + lane() / (AT_ONCE(PANELS1) * 4u) + i * ROWS(PANELS1), params.pixels - 1u);
      other[i] = HAS_OTHER != 0u ? other_[n * PANELS1 * 4u + min(four_of(PANELS1, p), PANELS1 * 4u - 1u)] : 0u;
    }
    MULTIPLY(w1_, AHEAD1, weight1_, PANELS1, PANELS0, p, SECOND)
    share_sums();
    [[unroll]] for (uint i = 0u; i < ENDS(PANELS1); ++i) {
      const uint at = end_row(1u, PANELS1, p, i, first_n, end, other[i], 0u, PITCH(PANELS1), word);
      if (at != NO_WORD) middle_[at] = word;
    }
    barrier();
  }

  [[unroll]] for (uint p = 0u; p < PASSES(PANELS2); ++p) {
    const Channels end = channels_of(2u, PANELS2, p);
    MULTIPLY(w2_, AHEAD2, weight2_, PANELS2, PANELS1, p, 0u)
    share_sums();
    [[unroll]] for (uint i = 0u; i < ENDS(PANELS2); ++i) {
      const uint at = end_row(2u, PANELS2, p, i, first_n, end, 0u, 0u, 0u, word);
      if (at != NO_WORD) out_[at] = word;
    }
    if (p + 1u < PASSES(PANELS2)) barrier();
  }
}
