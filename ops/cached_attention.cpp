// SPDX-License-Identifier: Apache-2.0
// Attention of new rows over key and value caches that they are first written to. q [B, L, *], k and v [B, L, *] have
// their heads side by side from element q_begin, k_begin, v_begin of a row on (three ranges of one tensor, mostly);
// key_cache [B, G, S, E], value_cache [B, G, S, F]; first [B]: the position of each sequence's first new row.
//   q, k = norm, then rotation, of each head (glsl/cached_attention_write.glsl; both may be absent)
//   row first + l of the caches = row l of k and v
//   out[b, l, h] = softmax_s(score) v[s], score = q . k[s] * scale, with a softcap c: c * tanh(score / c), over the
//   positions s <= first + l, with a window also s > first + l - window; sinks [H]: one more score, whose value is 0
// A position outside of the caches ends the run with an error, and nothing is written for it.
//
// Error, against fp64: that of sdpa over the rounded q and k; these are off by one rounding to their type and 2^-22 of
// the two products that a rotation adds. glsl/cached_attention.glsl and sdpa.glsl have the roundings.
#include "glsl/cached_attention.h"

#include <algorithm>
#include <bit>

#include "base/divide.h"
#include "glsl/cached_attention_write.h"
#include "ops/op.h"
#include "ops/reference/cached_attention.h"
#include "ops/shared/sdpa_launch.h"
#include "ops/shared/shape.h"
#include "ops/shared/workgroups.h"

namespace pumice::engine {
namespace {

constexpr const char* kOp = "cached_attention";

// The arguments of a call, and its sizes at the live shapes.
struct Caches {
  Tensor q, k, v, key_cache, value_cache, first, cos, sin, q_norm, k_norm, sinks;
  float eps, scale, softcap;
  int64_t heads, begin[3];
  uint32_t window;

  int64_t batch() const { return key_cache.dim(0); }
  int64_t kv_heads() const { return key_cache.dim(1); }
  int64_t capacity() const { return key_cache.dim(2); }
  int64_t rows() const { return q.dim(1); }
  int64_t key_size() const { return key_cache.dim(3); }
  int64_t value_size() const { return value_cache.dim(3); }
};

void check_row(const Caches& c, const char* what, const Tensor& x, int64_t begin, int64_t heads, int64_t size) {
  check(x.dim(0) == c.batch() && x.dim(1) == c.rows(), "%s: %s is [%lld, %lld, ..], not [%lld, %lld, ..]", kOp, what,
        static_cast<long long>(x.dim(0)), static_cast<long long>(x.dim(1)), static_cast<long long>(c.batch()),
        static_cast<long long>(c.rows()));
  check(begin >= 0 && begin % 4 == 0 && x.dim(2) % 4 == 0 && begin <= x.dim(2) && heads * size <= x.dim(2) - begin,
        "%s: %lld heads of %lld elements from element %lld on are not in rows of %lld of %s, in multiples of 4", kOp,
        static_cast<long long>(heads), static_cast<long long>(size), static_cast<long long>(begin),
        static_cast<long long>(x.dim(2)), what);
}

void check_sizes(const Caches& c) {
  const int64_t e = c.key_size(), f = c.value_size(), groups = c.kv_heads();
  check(c.value_cache.dim(0) == c.batch() && c.value_cache.dim(1) == groups && c.value_cache.dim(2) == c.capacity(),
        "%s: the caches differ in sequences, heads or rows", kOp);
  check(groups >= 1 && c.heads >= 1 && c.heads % groups == 0, "%s: %lld heads of the caches do not divide %lld", kOp,
        static_cast<long long>(groups), static_cast<long long>(c.heads));
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
    const int64_t rotated = c.cos.dim(2);
    check(c.cos.shape() == c.sin.shape() && (c.cos.dim(0) == 1 || c.cos.dim(0) == c.batch()) &&
              c.cos.dim(1) == c.rows() && rotated <= e && rotated % 2 == 0,
          "%s: cos and sin do not fit the rows", kOp);
  }
  for (const Tensor& weight : {c.q_norm, c.k_norm})
    check(!weight || weight.numel() == e, "%s: a norm's weight is not of the size of a head", kOp);
  check(!c.sinks || c.sinks.numel() == c.heads, "%s: the sinks are not one for each head", kOp);
}

// Workgroups that share a head of the caches; their partial sums and tickets are allocated for this many.
int64_t splits(const Caches& c, const Features& features) {
  constexpr int64_t kLeast = 256, kWorkgroups = 264;  // positions of a share; two for each multiprocessor of an H200
  if (features.cpu) return 1;
  return std::clamp<int64_t>(kWorkgroups / (c.batch() * c.kv_heads()), 1, ceil_div(c.capacity(), kLeast));
}

// Query rows of a head of the caches, where cached_attention.glsl takes the call, else 0.
int64_t few_rows(const Caches& c, const Features& features) {
  const int64_t rows = c.heads / c.kv_heads() * c.rows();
  const bool whole = c.key_size() % 8 == 0 && c.value_size() % 8 == 0;
  const bool can = features.runs(glsl::cached_attention::variant(glsl::cached_attention::dtype(c.q.dtype()))) &&
                   features.subgroup_size >= 4;
  return can && whole && rows <= 8 ? rows : 0;
}

void launch_few_rows(Launch& launch, const Caches& c, int64_t rows) {
  const uint32_t subgroup = launch.features.subgroup_size, v8 = u32(c.value_size() / 8);
  const uint32_t e8 = u32(c.key_size() / 8);
  const auto shared = [&](uint32_t lanes) {
    const uint64_t subgroups = lanes / subgroup;
    return 32u * u32(rows) * e8 + 4u * lanes * u32(rows) + u32(subgroups * rows) * (8 + 32 * v8) + 16;
  };
  uint32_t lanes = std::max(256u, subgroup);
  while (lanes > subgroup &&
         (lanes > launch.features.max_invocations || shared(lanes) > launch.features.max_shared_bytes))
    lanes /= 2;
  const auto parts = u32(splits(c, launch.features));
  over_groups(launch, static_cast<uint64_t>(c.batch() * c.kv_heads() * parts), lanes);
  launch.params(glsl::cached_attention::Params{.batches = u32(c.batch()),
                                               .l = u32(c.rows()),
                                               .heads = u32(c.heads),
                                               .kv_heads = u32(c.kv_heads()),
                                               .s = u32(c.capacity()),
                                               .splits = parts,
                                               .scale = c.scale,
                                               .window = c.window,
                                               .softcap = c.softcap});
  launch.spec.insert(launch.spec.end(),
                     {u32(rows), e8, v8, subgroup, std::min(std::bit_ceil(v8), subgroup), 256u, bool(c.sinks)});
  require_subgroups(launch);
  launch.shader = &glsl::cached_attention::variant(glsl::cached_attention::dtype(c.q.dtype()));
}

void launch_many_rows(Launch& launch, const Caches& c) {
  const int64_t b = c.batch(), l = c.rows(), s = c.capacity();
  launch_attention(launch, {.q = {b, c.heads, l, c.key_size()},
                            .k = {b, c.kv_heads(), s, c.key_size()},
                            .v = {b, c.kv_heads(), s, c.value_size()},
                            .out = {b, c.heads, l, c.value_size()},
                            .q_blhd = true,
                            .k_blhd = false,
                            .v_blhd = false,
                            .out_blhd = true,
                            .causal = false,
                            .scale = c.scale,
                            .dtype = c.q.dtype(),
                            .mask = c.first,
                            .positions = true,
                            .sinks = bool(c.sinks),
                            .window = c.window,
                            .softcap = c.softcap});
}

void launch_write(Launch& launch, const Caches& c, Tensor tickets, bool in_place, uint32_t call) {
  const int64_t places = c.batch() * c.rows() * (c.heads + 2 * c.kv_heads());
  const uint32_t e4 = u32(c.key_size() / 4), f4 = u32(c.value_size() / 4);
  const uint32_t per = std::bit_ceil(std::max(e4, f4)), lanes = 64;
  const int64_t copied = in_place ? 0 : (c.key_cache.numel() + c.value_cache.numel()) / 4;
  const int64_t items = std::max({places * per, copied, ceil_div(tickets.numel(), 4)});
  over_groups(launch, static_cast<uint64_t>(ceil_div(items, lanes)), lanes);
  launch.params(glsl::cached_attention_write::Params{
      .batches = u32(c.batch()),
      .l = u32(c.rows()),
      .heads = u32(c.heads),
      .kv_heads = u32(c.kv_heads()),
      .e4 = e4,
      .f4 = f4,
      .s = u32(c.capacity()),
      .rotated = c.cos ? u32(c.cos.dim(2)) : 0,
      .eps = c.eps,
      .q_row = u32(c.q.dim(2) / 4),
      .q_begin = u32(c.begin[0] / 4),
      .k_row = u32(c.k.dim(2) / 4),
      .k_begin = u32(c.begin[1] / 4),
      .v_row = u32(c.v.dim(2) / 4),
      .v_begin = u32(c.begin[2] / 4),
      .angle_batch = c.cos && c.cos.dim(0) > 1 ? u32(c.cos.dim(1) * c.cos.dim(2)) : 0,
      .tickets = u32(ceil_div(tickets.numel(), 4)),
      .call = call});
  launch.spec.insert(launch.spec.end(), {per, bool(c.cos), bool(c.q_norm), bool(c.k_norm), !in_place});
  launch.shader = &glsl::cached_attention_write::variant(glsl::cached_attention_write::dtype(c.q.dtype()));
  if (in_place) launch.bytes = 2 * (c.batch() * c.rows() * (c.heads + 2 * c.kv_heads())) * c.key_size() * 4;
}

Caches read(const Args& args) {
  Caches c{.q = args.tensor(0),
           .k = args.tensor(1),
           .v = args.tensor(2),
           .key_cache = args.tensor(3),
           .value_cache = args.tensor(4),
           .first = args.tensor(5),
           .cos = args.tensor(6),
           .sin = args.tensor(7),
           .q_norm = args.tensor(8),
           .k_norm = args.tensor(9),
           .sinks = args.tensor(10),
           .eps = static_cast<float>(args.real(11)),
           .scale = static_cast<float>(args.real(16)),
           .softcap = static_cast<float>(args.real(18)),
           .heads = args.integer(12),
           .begin = {args.integer(13), args.integer(14), args.integer(15)},
           .window = 0};
  check(args.integer(17) >= 0, "%s: a window of %lld positions", kOp, static_cast<long long>(args.integer(17)));
  c.window = u32(args.integer(17));
  for (const Tensor& t : {c.q, c.k, c.v, c.key_cache, c.value_cache, c.cos, c.sin, c.q_norm, c.k_norm, c.sinks})
    check(!t || t.dtype() == c.q.dtype(), "%s: tensors of %s and %s; one type is needed", kOp, name(c.q.dtype()),
          t ? name(t.dtype()) : "");
  for (const Tensor& t : {c.q, c.k, c.v}) check(t.rank() == 3, "%s: q, k or v of rank %u, not 3", kOp, t.rank());
  check(c.key_cache.rank() == 4 && c.value_cache.rank() == 4, "%s: caches that are not of rank 4", kOp);
  check(bool(c.cos) == bool(c.sin) && (!c.cos || (c.cos.rank() == 3 && c.sin.rank() == 3)),
        "%s: cos and sin of rank 3, or neither", kOp);
  check(c.first.dtype() == DType::i64 || c.first.dtype() == DType::i32, "%s: first is %s", kOp, name(c.first.dtype()));
  return c;
}

void cached_attention(Graph& graph, Args args) {
  const Caches c = read(args);
  const Tensor out = args.out(0), keys = args.out(1), values = args.out(2), q = c.q;
  const Tensor rotated = graph.scratch(q.dtype(), 4), tickets = graph.scratch(DType::i32, 1);
  const Tensor partial = graph.scratch(DType::f32, 1);
  const uint32_t call = graph.call_id();
  const auto or_q = [&](const Tensor& t) { return t ? t : q; };
  graph.dispatch_in_place(
      {keys, values, rotated, tickets, graph.status()},
      {c.key_cache, c.value_cache, q, c.k, c.v, c.first, or_q(c.cos), or_q(c.sin), or_q(c.q_norm), or_q(c.k_norm)},
      [=](Launch& launch) {
        check_sizes(c);
        keys.resize(c.key_cache.shape());
        values.resize(c.value_cache.shape());
        rotated.resize({c.batch(), c.rows(), c.heads, c.key_size()});
        tickets.resize({few_rows(c, launch.features) != 0 ? c.batch() * c.kv_heads() : 0});
        const bool in_place = launch.graph.shares(keys, c.key_cache) && launch.graph.shares(values, c.value_cache);
        if (rotated.numel() != 0 || !in_place) launch_write(launch, c, tickets, in_place, call);
      },
      2);
  // The tickets are read and written; nothing uses them afterwards.
  graph.dispatch({out, partial}, {tickets, rotated, keys, values, c.first, or_q(c.sinks)}, [=](Launch& launch) {
    out.resize({c.batch(), c.rows(), c.heads, c.value_size()});
    const int64_t rows = few_rows(c, launch.features);
    const bool shared = rows != 0 && splits(c, launch.features) > 1;
    partial.resize({shared ? c.batch() * c.kv_heads() * splits(c, launch.features) * rows * (c.value_size() + 4) : 0});
    if (out.numel() != 0 && rows != 0) launch_few_rows(launch, c, rows);
  });
  graph.dispatch({out}, {rotated, keys, values, c.first, or_q(c.sinks)}, [=](Launch& launch) {
    out.resize({c.batch(), c.rows(), c.heads, c.value_size()});
    if (out.numel() != 0 && few_rows(c, launch.features) == 0) launch_many_rows(launch, c);
  });
}

}  // namespace

std::span<const Op> cached_attention_ops() {
  static constexpr Op kOps[] = {
      {{"cached_attention", 1,
        "Tensor q, Tensor k, Tensor v, Tensor key_cache, Tensor value_cache, Tensor first, Tensor? cos, Tensor? sin, "
        "Tensor? q_norm, Tensor? k_norm, Tensor? sinks, float eps, int heads, int q_begin, int k_begin, int v_begin, "
        "float scale, int window, float softcap -> Tensor, Tensor, Tensor"},
       cached_attention,
       glsl::cached_attention_write::axes,
       {"q=T[1,1,96] k=T[1,1,96] v=T[1,1,96] key_cache=T[1,2,40,16] value_cache=T[1,2,40,16] first=i32[1]{0..39} "
        "eps=0.000001 heads=2 q_begin=0 k_begin=32 v_begin=64 scale=0.25 window=0 softcap=0 "
        "-> T[1,1,2,16] T[1,2,40,16] T[1,2,40,16]; "
        "q=T[2,3,64] k=T[2,3,32] v=T[2,3,32] key_cache=T[2,2,40,16] value_cache=T[2,2,40,16] first=i32[2]{0..36} "
        "cos=T[1,3,8] sin=T[1,3,8] q_norm=T[16] k_norm=T[16] eps=0.000001 heads=4 q_begin=0 k_begin=0 v_begin=0 "
        "scale=0.0625 window=5 softcap=1 -> T[2,3,4,16] T[2,2,40,16] T[2,2,40,16]",
        "q=f16[1,1,3072] k=f16[1,1,3072] v=f16[1,1,3072] key_cache=f16[1,8,4096,64] value_cache=f16[1,8,4096,64] "
        "first=i32[1]{4095..4095} eps=0.000001 heads=32 q_begin=0 k_begin=2048 v_begin=2560 scale=0.125 window=0 "
        "softcap=0 -> f16[1,1,32,64] f16[1,8,4096,64] f16[1,8,4096,64]",
        reference::cached_attention}}};
  return kOps;
}

}  // namespace pumice::engine
