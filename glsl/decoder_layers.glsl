// SPDX-License-Identifier: Apache-2.0
// All layers of a decoder at one new row, in one dispatch whose workgroups all run at once (ops/shared/decoder_layers.h). A layer
// has five phases, which read what all workgroups have written in the phase before (decoder/exchange.glslh):
//   qkv  = norm(x) . w_qkv^T + bias       attention over the caches (attention/few_rows.glslh), by some of the workgroups
//   x'   = attention . w_o^T + x          h = act(norm(x') . w_gate^T) * (norm(x') . w_up^T)         x = h . w_down^T + x'
// Values are rounded as by the kernels of single products, which this one replaces: x, qkv, h and the attention are fp16.
//
// A workgroup keeps the rows of x that it computes in registers: products into x have their rows in the same workgroups. The words of
// a phase are written again a layer later, when every workgroup that reads them has written what it made of them: each has rows of
// h, which need all of x', which needs all of the attention, and so on.
//
// With a head it runs several steps, each on the token of the one before (decoder/steps.glslh).
//
// Bindings: 0 out, 1 exchange, 2 partial sums and 3 tickets of the attention, 4 counters, 5 status, 6 table, 7 x, 8 first, 9 steps
// that are left.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#pragma variant PRODUCT plain fragments
#define DTYPE f16
#define DTYPE_f16
#include "core/index.glslh"
#include "core/launch.glslh"
#include "core/types.glslh"
#include "math/activation.glslh"
#include "math/math.glslh"
#include "attention/octets.glslh"

layout(constant_id = 8) const uint PER = 16u;  // a power of two, at most LANES; 4 * PER elements hold a head
layout(constant_id = 9) const bool ROPE = true;
layout(constant_id = 10) const bool Q_NORM = false;
layout(constant_id = 11) const bool K_NORM = false;
layout(constant_id = 12) const bool TABLES = false;
layout(constant_id = 13) const bool INTERLEAVED = false;
layout(constant_id = 14) const uint ATTENTION_LANES_ = 128u;
layout(constant_id = 15) const uint WORKGROUPS = 1u;
layout(constant_id = 16) const uint HIDDEN = 64u;    // elements of x
layout(constant_id = 17) const uint QKV = 64u;       // of q, k and v side by side
layout(constant_id = 18) const uint ATTENDED = 64u;  // of the attention's result
layout(constant_id = 19) const uint FEED = 64u;      // of h
layout(constant_id = 20) const uint GROUP = 32u;
layout(constant_id = 21) const uint ACT = ACT_SILU;
layout(constant_id = 22) const bool HAS_BIAS = false;
layout(constant_id = 23) const uint SUM_SLOTS = 16u;  // at least the slots, and the panels of a workgroup

layout(set = 0, binding = 0) writeonly buffer Out { uvec2 out_[]; };
#define EXCHANGE_BINDING 1
layout(set = 0, binding = 2) coherent buffer Partial { vec4 partial_[]; };
layout(set = 0, binding = 3) coherent buffer Tickets { uint tickets_[]; };
layout(set = 0, binding = 4) coherent buffer Counters { uint epoch_, ended_, met_; };
#define STATUS_BINDING 5
#include "core/status.glslh"
layout(set = 0, binding = 6) readonly buffer Table { uvec2 table_[]; };
layout(set = 0, binding = 7) readonly buffer X { uvec2 x_in_[]; };
layout(set = 0, binding = 8) readonly buffer First { WORD(i32) first_[]; };
layout(push_constant) uniform Params {
  uint batches;   // 1
  uint heads;     // of q
  uint kv_heads;  // of the caches
  uint s;         // rows of a cache
  uint splits;    // workgroups of a head of a cache
  float scale;
  uint window;    // positions that a row sees; 0: all before it
  float softcap;  // 0: none
  uint rotated;   // R
  float eps;      // of the norms of heads
  uint q_begin;   // vec4 groups of qkv before its first head
  uint k_begin;
  uint v_begin;
  uint angle_batch;  // 0
  uint angle_rows;   // of cos
  uint layers;
  float attention_eps;  // of the norm before q, k and v
  float feed_eps;       // of the norm before gate and up
  float head_eps;       // of the norm before the head
  uint patience;        // waits of a lane, see decoder/exchange.glslh
  uint call;            // for reports
  uint probe;           // 1: only finds out whether all workgroups run at once
} params;

// Columns of the table: a row for each layer, of addresses, and one for the head. The rows of this layer, the next and the head are
// in shared memory: products ask for weights just before workgroups wait for each other, where a load of an address would take as
// long as all else.
#define TABLE_COLUMNS 18u
shared uvec2 addresses_[3u * TABLE_COLUMNS];
#define ADDRESS(column) addresses_[(turn_ & 1u) * TABLE_COLUMNS + (column)]
#define HEAD(column) addresses_[2u * TABLE_COLUMNS + (column)]
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Groups4 { uvec2 at[]; };
// Coherent: another workgroup may have written a row, in a step before.
layout(buffer_reference, std430, buffer_reference_align = 16) coherent buffer Rows8 { uvec4 at[]; };
uint turn_ = 0u;  // layers that were run, of all steps
uint epoch_of_layer_ = 0u;
Rows8 key_rows_, value_rows_;

#include "decoder/exchange.glslh"
#if defined(PRODUCT_fragments)
#define ROW_HALF8S (HIDDEN / 8u)
#else  // every x, not only those that are normed
#define LONGER(a, b) ((a) > (b) ? (a) : (b))
#define ROW_HALF8S (LONGER(HIDDEN, LONGER(ATTENDED, FEED)) / 8u)
#endif
#include "decoder/product.glslh"

// Words of the exchange, two elements each: of what all workgroups read. Their products' rows are in the order of the table.
#define AT_X 0u
#define AT_QKV (HIDDEN / 2u)
#define AT_ATTENDED (AT_QKV + QKV / 2u)
#define AT_X2 (AT_ATTENDED + ATTENDED / 2u)
#define AT_FEED (AT_X2 + HIDDEN / 2u)
#define AT_BEST (AT_FEED + FEED / 2u)

vec4 exchanged(uint from, uint group4) {
  const uint at = from + group4 * 2u;
  const uvec2 a = ask(at), b = ask(at + 1u);
  const uint low = await_word(at, a, epoch_of_layer_);
  return unpack_f16(uvec2(low, await_word(at + 1u, b, epoch_of_layer_)));
}
void publish_words(uint from, uint group4, uvec2 words, uint epoch) {
  publish(from + group4 * 2u, words.x, epoch);
  publish(from + group4 * 2u + 1u, words.y, epoch);
}
void publish4(uint from, uint group4, vec4 v, uint epoch) { publish_words(from, group4, pack_f16(v), epoch); }
void store_attended(uint octet, vec4 low, vec4 high) {
  publish4(AT_ATTENDED, 2u * octet, low, epoch_of_layer_);
  publish4(AT_ATTENDED, 2u * octet + 1u, high, epoch_of_layer_);
}

int first_position_ = 0;
// 0, but the compiler does not know it: NVIDIA's takes what was packed and unpacked for what it was before.
uint zero_ = 0u;
#define FIRST_OF(batch) first_position_
#define NEW_ROWS 1u
#if defined(PRODUCT_fragments)
#define ATTENTION_FRAGMENTS
#endif
#define NEWEST_IN_SHARED
#define ATTENTION_LANES ATTENTION_LANES_
#define key_cache_ key_rows_.at
#define value_cache_ value_rows_.at
#define cos_ Groups4(ADDRESS(13u)).at
#define sin_ Groups4(ADDRESS(14u)).at
#define q_norm_ Groups4(ADDRESS(15u)).at
#define k_norm_ Groups4(ADDRESS(16u)).at
#define sinks_ x_in_
#define STORE_ROW store_attended
#include "attention/few_rows.glslh"
#include "attention/prepare.glslh"
#if !defined(PRODUCT_fragments)
#include "math/half_round.glslh"
#endif
vec4 new_group(bool query, bool key, uint batch, uint at) {
  return exchanged(AT_QKV, (query ? params.q_begin : key ? params.k_begin : params.v_begin) + at);
}
#include "attention/new_row.glslh"
#include "decoder/steps.glslh"
#include "decoder/norm_row.glslh"

#define QKV_SHAPE SHAPE(QKV, HIDDEN, 1u)
#define OUT_SHAPE SHAPE(HIDDEN, ATTENDED, 1u)
#define FEED_SHAPE SHAPE(2u * FEED, HIDDEN, 2u)
#define DOWN_SHAPE SHAPE(HIDDEN, FEED, 1u)
#define WEIGHT(column) Vectors(ADDRESS(column)), Words(ADDRESS((column) + 1u))

// The products of a layer, in their order.
#define PHASE_QKV 0u
#define PHASE_OUT 1u
#define PHASE_FEED 2u
#define PHASE_DOWN 3u
Shape shape_of(uint phase) {
  if (phase == PHASE_QKV) return QKV_SHAPE;
  if (phase == PHASE_OUT) return OUT_SHAPE;
  if (phase == PHASE_FEED) return FEED_SHAPE;
  return DOWN_SHAPE;
}
#if defined(PRODUCT_fragments)
#define ASKS_AHEAD true
#else
#define ASKS_AHEAD false
#endif
uint column_of(uint phase) { return phase == PHASE_QKV ? 1u : phase == PHASE_OUT ? 4u : phase == PHASE_FEED ? 7u : 9u; }

uint vec4_of(Shape s, uint i) { return unit_of(s, i >> 2) * 4u + (i & 3u); }
bool owns_x(uint i) { return i < 4u * OUT_SHAPE.panels && has_panel(OUT_SHAPE, i >> 2); }

// Rows 4 * (lane % 4) on of panel lane / 4 of the products into x, fp16.
uvec2 residual_;
// Adds the panel's sums and publishes x; the last layer's is the result.
void add_to_x(Shape s, uint from, uint epoch, bool is_result) {
  if (!owns_x(lane())) return;
  residual_ = pack_f16(sum_of(s, 1u, lane() >> 2, (lane() & 3u) * 4u) + unpack_f16(residual_ ^ zero_));
  const uint at = vec4_of(s, lane());
  if (is_result) out_[at] = residual_;
  else publish_words(from, at, residual_, epoch);
}

void attend_layer() {
  key_rows_ = Rows8(ADDRESS(11u));
  value_rows_ = Rows8(ADDRESS(12u));
  Share share;
  if (!share_of_workgroup(share)) return;  // the whole workgroup
  if (share.first < 0 || share.first >= int(params.s)) {  // nothing is written; the others must not wait
    if (share.split != 0u) return;
    if (share.kv_head == 0u && lane() == 0u) report_index(ADDRESS(17u).x, share.batch, share.first, int(params.s));
    for (uint i = lane(); i < ROWS * V8; i += LANES) STORE_ROW(share.kv_head * ROWS * V8 + i, vec4(0.0), vec4(0.0));
    return;
  }
  load_first_key(share);
  prepare_row(share);
  if (uint(share.first) >= share.begin && uint(share.first) < share.end) write_row(share);
  attend(share);
}

// Ends a phase. A CPU driver runs the subgroups of a workgroup one after another up to the next barrier: one that waited for what
// another of the same workgroup has to publish would wait for ever.
void end_phase() {
#if !defined(PRODUCT_fragments)
  barrier();
#endif
}

// Row `row` of the table to place `place` of addresses_.
void load_addresses(uint row, uint place) {
  if (lane() < TABLE_COLUMNS) addresses_[place * TABLE_COLUMNS + lane()] = table_[row * TABLE_COLUMNS + lane()];
}

void publish_qkv() {
  for (uint i = lane(); i < 4u * QKV_SHAPE.panels; i += LANES) {
    if (!has_panel(QKV_SHAPE, i >> 2)) continue;
    vec4 v = sum_of(QKV_SHAPE, 0u, i >> 2, (i & 3u) * 4u);
    if (HAS_BIAS) v += unpack_f16(Groups4(ADDRESS(3u)).at[vec4_of(QKV_SHAPE, i)]);
    publish4(AT_QKV, vec4_of(QKV_SHAPE, i), v, epoch_of_layer_);
  }
}

void publish_gated() {
  for (uint i = lane(); i < 2u * FEED_SHAPE.panels; i += LANES) {
    const uint unit = i >> 2, row = (i & 3u) * 4u;
    if (!has_panel(FEED_SHAPE, 2u * unit)) continue;
    const vec4 gate = activate(sum_of(FEED_SHAPE, 0u, 2u * unit, row), ACT), up = sum_of(FEED_SHAPE, 0u, 2u * unit + 1u, row);
    publish4(AT_FEED, unit_of(FEED_SHAPE, 2u * unit) * 4u + (i & 3u), gate * up, epoch_of_layer_);
  }
}

// The weights of the next product are asked for before workgroups wait for each other, but not before the attention, which needs the
// registers. Plain, at the begin of its phase, where x is still to come: one place in the code for all.
void run_phase(uint phase, uint layer) {
  const bool is_last = layer + 1u == params.layers, down = phase == PHASE_DOWN, into_x = phase == PHASE_OUT || down;
  const Shape s = shape_of(phase);
  if (phase == PHASE_OUT || !ASKS_AHEAD) ask_weights(s, WEIGHT(column_of(phase)));
  if (!into_x) {
    const bool feed = phase == PHASE_FEED;
    norm_row(layer == 0u && !feed, feed ? AT_X2 : AT_X, Words(ADDRESS(feed ? 6u : 0u)), feed ? params.feed_eps : params.attention_eps);
  }
  multiply(s, WEIGHT(column_of(phase)), !into_x, down ? AT_FEED : AT_ATTENDED, epoch_of_layer_, into_x ? 1u : 0u);
  if (down) ++turn_;
  if (phase != PHASE_QKV && ASKS_AHEAD) {
    const uint next = down ? PHASE_QKV : phase + 1u;
    ask_weights_or_head(STEPS && is_last && down, shape_of(next), WEIGHT(column_of(next)), HEAD_SHAPE, HEAD_WEIGHT);
  }
  barrier();
  if (phase == PHASE_QKV) publish_qkv();
  if (phase == PHASE_FEED) publish_gated();
  if (into_x) add_to_x(s, down ? AT_X : AT_X2, epoch_of_layer_ + (down ? 1u : 0u), down && !STEPS && is_last);
  if (phase == PHASE_OUT) load_addresses(is_last ? 0u : layer + 1u, (turn_ + 1u) & 1u);
  end_phase();
}

void run_layer(uint layer) {
#if defined(PRODUCT_fragments)
  run_phase(PHASE_QKV, layer);
  attend_layer();
  end_phase();
  run_phase(PHASE_OUT, layer);
  run_phase(PHASE_FEED, layer);
  run_phase(PHASE_DOWN, layer);
#else  // compilers take three times as long for four products as for one
  [[dont_unroll]] for (uint phase = PHASE_QKV; phase <= PHASE_DOWN; ++phase) {
    run_phase(phase, layer);
    if (phase != PHASE_QKV) continue;
    attend_layer();
    end_phase();
  }
#endif
}

void run_step() {
  if (owns_x(lane())) residual_ = first_x(vec4_of(OUT_SHAPE, lane()));
  for (uint layer = 0u; layer < params.layers; ++layer) {
    run_layer(layer);
    ++epoch_of_layer_;
  }
  if (!STEPS) return;
  if (!ASKS_AHEAD) ask_weights_or_head(true, HEAD_SHAPE, HEAD_WEIGHT, HEAD_SHAPE, HEAD_WEIGHT);
  norm_row(false, AT_X, Words(HEAD(0u)), params.head_eps);
  const uvec2 mine = best_of_head();
  if (ASKS_AHEAD) ask_weights(QKV_SHAPE, WEIGHT(1u));
  next_token(mine);
}

// Whether all workgroups are here at once: each waits until it has seen the others. The host has set met_ to 0.
void probe() {
  if (lane() != 0u) return;
  atomicAdd(met_, 1u);
  while (atomicAdd(met_, 0u) < WORKGROUPS && patience_ != 0u) --patience_;
  if (patience_ == 0u) report(params.call, group(), STATUS_GAVE_UP);
}

void main() {
  patience_ = params.patience;
  if (params.probe != 0u) {
    probe();
    return;
  }
#if defined(PRODUCT_fragments)
  exponent_ |= slot_lane() * params.layers >> 31;  // adds 0, too
#endif
  zero_ = params.layers >> 31;
  first_position_ = LOAD1(i32, first_, 0u);
  load_addresses(0u, 0u);
  if (STEPS) load_addresses(params.layers, 2u);
  barrier();
  const uint steps = STEPS ? begin_steps() : 1u;
  if (steps == 0u) return;
  if (ASKS_AHEAD) ask_weights(QKV_SHAPE, WEIGHT(1u));
  epoch_of_layer_ = epoch_ + 1u;
  for (uint i = 0u; i < steps; ++i) run_step();
  if (STEPS) end_steps();
  if (gave_up()) report(params.call, group(), STATUS_GAVE_UP);
  barrier();
  // The last workgroup counts on: all others have read what it changes.
  if (lane() != 0u || atomicAdd(ended_, 1u) != WORKGROUPS - 1u) return;
  atomicExchange(ended_, 0u);
  atomicAdd(epoch_, steps * (params.layers + 1u));
  if (STEPS) atomicAdd(left_, 0u - steps);
}
