// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/cached_attention_launch.h"

#include <algorithm>
#include <bit>

#include "base/divide.h"
#include "glsl/cached_attention.h"
#include "glsl/cached_attention_row.h"
#include "glsl/cached_attention_row_fragments.h"
#include "glsl/cached_attention_write.h"
#include "ops/linear/registers.h"
#include "ops/shared/sdpa_launch.h"
#include "ops/shared/shape.h"
#include "ops/shared/workgroups.h"

namespace pumice::engine {
namespace {

constexpr const char* kOp = "cached_attention";

void check_row(const Caches& c, const char* what, const Tensor& x, int64_t begin, int64_t heads, int64_t size) {
  check(x.dim(0) == c.batch() && x.dim(1) == c.rows(), "%s: %s is [%lld, %lld, ..], not [%lld, %lld, ..]", kOp, what,
        static_cast<long long>(x.dim(0)), static_cast<long long>(x.dim(1)), static_cast<long long>(c.batch()),
        static_cast<long long>(c.rows()));
  check(begin >= 0 && begin % 4 == 0 && x.dim(2) % 4 == 0 && begin <= x.dim(2) && heads * size <= x.dim(2) - begin,
        "%s: %lld heads of %lld elements from element %lld on are not in rows of %lld of %s, in multiples of 4", kOp,
        static_cast<long long>(heads), static_cast<long long>(size), static_cast<long long>(begin),
        static_cast<long long>(x.dim(2)), what);
}

// The kernel of cooperative matrices has the same parameters and constants.
const Shader& one_row_shader(const Caches& c, const Features& features) {
  const Shader& fragments = glsl::cached_attention_row_fragments::variant();
  const bool matrices = features.has(Feature::fragments) && features.subgroup_size == 32 && features.runs(fragments);
  if (matrices && c.q.dtype() == DType::f16 && !c.int8()) return fragments;
  using namespace glsl::cached_attention_row;
  return variant(dtype(c.q.dtype()), c.int8() ? CACHE::i8 : CACHE::own);
}
const Shader& few_rows_shader(const Caches& c) {
  using namespace glsl::cached_attention;
  return variant(dtype(c.q.dtype()), c.int8() ? CACHE::i8 : CACHE::own);
}
const Shader& write_shader(const Caches& c) {
  using namespace glsl::cached_attention_write;
  return variant(dtype(c.q.dtype()), c.int8() ? CACHE::i8 : CACHE::own);
}

// Of a workgroup of attention/few_rows.glslh; the shared memory is that of cached_attention_row.glsl, which has the
// most.
uint32_t lanes_of(const Caches& c, int64_t rows, const Features& features) {
  const uint32_t subgroup = features.subgroup_size, v8 = u32(c.value_size() / 8), e8 = u32(c.key_size() / 8);
  const auto shared = [&](uint32_t lanes) {
    const uint64_t subgroups = lanes / subgroup;
    return 32u * (u32(rows) + 1) * e8 + 32 * v8 + 4u * lanes * (u32(rows) + 5) + u32(subgroups * rows) * (8 + 32 * v8) +
           32;
  };
  // Adreno 660, 4 heads of 64 that share a key: 44 spills in fp32 and 28 in fp16 among 256, none among 128.
  uint32_t lanes = std::max(has_fewest_registers(features) ? 128u : 256u, subgroup);
  while (lanes > subgroup && (lanes > features.max_invocations || shared(lanes) > features.max_shared_bytes))
    lanes /= 2;
  return lanes;
}

// What every kernel over the caches is told.
template <class Params>
Params common_params(const Caches& c) {
  Params params{};
  params.batches = u32(c.batch());
  params.heads = u32(c.heads);
  params.kv_heads = u32(c.kv_heads());
  params.s = u32(c.capacity());
  return params;
}

// Of a kernel that attends.
template <class Params>
void set_attention(Params& params, const Caches& c, const Features& features) {
  params.splits = u32(cache_splits(c, features));
  params.scale = c.scale;
  params.window = c.window;
  params.softcap = c.softcap;
}

// Of a kernel that norms, rotates and writes new rows.
template <class Params>
void set_new_rows(Params& params, const Caches& c, uint32_t call) {
  params.rotated = u32(c.rotated());
  params.eps = c.eps;
  params.q_row = u32(c.q.dim(2) / 4);
  params.q_begin = u32(c.begin[0] / 4);
  params.k_row = u32(c.k.dim(2) / 4);
  params.k_begin = u32(c.begin[1] / 4);
  params.v_row = u32(c.v.dim(2) / 4);
  params.v_begin = u32(c.begin[2] / 4);
  params.angle_batch = c.angle_batch();
  params.angle_rows = c.angle_rows();
  params.call = call;
}

void over_splits(Launch& launch, const Caches& c, int64_t rows) {
  const int64_t groups = c.batch() * c.kv_heads() * cache_splits(c, launch.features);
  launch.over_groups(static_cast<uint64_t>(groups), lanes_of(c, rows, launch.features));
}

}  // namespace

uint32_t head_lanes(const Caches& c) {
  return u32(std::bit_ceil(static_cast<uint64_t>(std::max(c.key_size(), c.value_size()) / 4)));
}

void few_rows_constants(Launch& launch, const Caches& c, int64_t rows) {
  const uint32_t subgroup = launch.features.subgroup_size, v8 = u32(c.value_size() / 8);
  const uint32_t options = (c.sinks ? 1u : 0u) | (c.softcap > 0 ? 2u : 0u) | (c.window != 0 ? 4u : 0u);
  launch.spec.insert(launch.spec.end(), {u32(rows), u32(c.key_size() / 8), v8, subgroup,
                                         std::min(std::bit_ceil(v8), subgroup), 256u, options});
  require_subgroups(launch);
}

void check_sizes(const Caches& c) {
  const int64_t e = c.key_size(), f = c.value_size(), groups = c.kv_heads();
  check(c.value_cache.dim(0) == c.batch() && c.value_cache.dim(1) == groups && c.value_cache.dim(2) == c.capacity(),
        "%s: the caches differ in sequences, heads or rows", kOp);
  check(!c.int8() || c.scales.shape() == (Shape{c.batch(), groups, c.capacity(), 2}),
        "%s: the scales are not two for each row of the caches", kOp);
  check(groups >= 1 && c.heads >= 1 && c.heads <= c.q.dim(2) && c.heads % groups == 0,
        "%s: %lld heads of the caches do not divide %lld", kOp, static_cast<long long>(groups),
        static_cast<long long>(c.heads));
  for (const int64_t size : {e, f})
    check(size >= 4 && size % 4 == 0 && size <= 256, "%s: heads of %lld elements; a multiple of 4 up to 256 is needed",
          kOp, static_cast<long long>(size));
  check_row(c, "q", c.q, c.begin[0], c.heads, e);
  check_row(c, "k", c.k, c.begin[1], groups, e);
  check_row(c, "v", c.v, c.begin[2], groups, f);
  check(c.rows() <= c.capacity(), "%s: %lld rows for caches of %lld", kOp, static_cast<long long>(c.rows()),
        static_cast<long long>(c.capacity()));
  check(c.first.numel() == c.batch(), "%s: %lld first positions for %lld sequences", kOp,
        static_cast<long long>(c.first.numel()), static_cast<long long>(c.batch()));
  if (c.cos) {
    const int64_t rotated = c.rotated();
    const bool of_rows = !c.tables() && (c.cos.dim(0) == 1 || c.cos.dim(0) == c.batch()) && c.cos.dim(1) == c.rows();
    check(c.cos.shape() == c.sin.shape() && rotated <= e && rotated % 2 == 0, "%s: cos and sin do not fit the heads",
          kOp);
    check(of_rows || (c.tables() && c.cos.dim(0) >= c.capacity()), "%s: cos and sin do not fit the rows", kOp);
  }
  for (const Tensor& weight : {c.q_norm, c.k_norm})
    check(!weight || weight.numel() == e, "%s: a norm's weight is not of the size of a head", kOp);
  check(!c.sinks || c.sinks.numel() == c.heads, "%s: the sinks are not one for each head", kOp);
}

int64_t cache_splits(const Caches& c, const Features& features) {
  constexpr int64_t kLeast = 256;  // positions of a share
  const int64_t workgroups = 2 * int64_t{features.units()};
  if (features.cpu) return 1;
  return std::clamp<int64_t>(workgroups / (c.batch() * c.kv_heads()), 1, ceil_div(c.capacity(), kLeast));
}

int64_t few_rows(const Caches& c, const Features& features) {
  const int64_t rows = c.heads / c.kv_heads() * c.rows();
  const bool whole = c.key_size() % 8 == 0 && c.value_size() % 8 == 0;
  const bool can = features.runs(few_rows_shader(c)) && features.subgroup_size >= 4;
  const int64_t bytes = (c.key_size() + c.value_size()) * device_bytes(c.q.dtype());
  return can && whole && holds_key_and_value(bytes, rows, features) && rows <= 8 ? rows : 0;
}

bool is_one_row(const Caches& c, const Features& features) {
  const int64_t rows = few_rows(c, features);
  if (c.rows() != 1 || rows == 0 || c.batch() * c.kv_heads() > kTickets) return false;
  return features.runs(one_row_shader(c, features)) && lanes_of(c, rows, features) >= head_lanes(c);
}

void launch_one_row(Launch& launch, const Caches& c, uint32_t call) {
  const int64_t rows = few_rows(c, launch.features);
  auto params = common_params<glsl::cached_attention_row::Params>(c);
  set_attention(params, c, launch.features);
  set_new_rows(params, c, call);
  launch.params(params);
  over_splits(launch, c, rows);
  few_rows_constants(launch, c, rows);
  launch.spec.insert(launch.spec.end(),
                     {head_lanes(c), bool(c.cos), bool(c.q_norm), bool(c.k_norm), c.tables(), c.interleaved});
  launch.shader = &one_row_shader(c, launch.features);
}

void launch_few_rows(Launch& launch, const Caches& c, int64_t rows) {
  auto params = common_params<glsl::cached_attention::Params>(c);
  params.l = u32(c.rows());
  set_attention(params, c, launch.features);
  launch.params(params);
  over_splits(launch, c, rows);
  few_rows_constants(launch, c, rows);
  launch.shader = &few_rows_shader(c);
}

void launch_many_rows(Launch& launch, const Caches& c) {
  const int64_t b = c.batch(), l = c.rows(), s = c.capacity();
  launch_attention(launch, {.q = {b, c.heads, l, c.key_size(), true},
                            .k = {b, c.kv_heads(), s, c.key_size()},
                            .v = {b, c.kv_heads(), s, c.value_size()},
                            .out = {b, c.heads, l, c.value_size(), true},
                            .causal = false,
                            .scale = c.scale,
                            .dtype = c.q.dtype(),
                            .mask = c.first,
                            .positions = true,
                            .sinks = bool(c.sinks),
                            .int8_rows = c.int8(),
                            .window = c.window,
                            .softcap = c.softcap});
}

void launch_write(Launch& launch, const Caches& c, bool in_place, uint32_t call) {
  const int64_t places = c.batch() * c.rows() * (c.heads + 2 * c.kv_heads());
  const uint32_t per = head_lanes(c), lanes = 64;
  const int64_t copied = in_place ? 0 : (c.key_cache.numel() + c.value_cache.numel()) / 4;
  const int64_t items = std::max(places * per, copied);
  launch.over_groups(static_cast<uint64_t>(ceil_div(items, lanes)), lanes);
  auto params = common_params<glsl::cached_attention_write::Params>(c);
  params.l = u32(c.rows());
  params.e4 = u32(c.key_size() / 4);
  params.f4 = u32(c.value_size() / 4);
  set_new_rows(params, c, call);
  launch.params(params);
  launch.spec.insert(launch.spec.end(),
                     {per, bool(c.cos), bool(c.q_norm), bool(c.k_norm), !in_place, c.tables(), c.interleaved});
  launch.shader = &write_shader(c);
  if (in_place) launch.bytes = 2 * (c.batch() * c.rows() * (c.heads + 2 * c.kv_heads())) * c.key_size() * 4;
}

}  // namespace pumice::engine
