// SPDX-License-Identifier: Apache-2.0
// Attention of new rows over key and value caches that they are first written to. q [B, L, *], k and v [B, L, *] have
// their heads side by side from element q_begin, k_begin, v_begin of a row on (three ranges of one tensor, mostly);
// key_cache [B, G, S, E], value_cache [B, G, S, F]; first [B]: the position of each sequence's first new row.
//   q, k = norm, then rotation, of each head (glsl/include/attention/prepare.glslh; both may be absent); cos and sin
//   are of the new rows, [B or 1, L, R], or of all positions, [S or more, R]
//   row first + l of the caches = row l of k and v
//   out[b, l, h] = softmax_s(score) v[s], score = q . k[s] * scale, with a softcap c: c * tanh(score / c), over
//   the positions s <= first + l, with a window also s > first + l - window; sinks [H]: one more score, whose value is
//   0
// cached_attention_interleaved rotates neighbours, 2i and 2i + 1, where cached_attention has i and i + R/2; its cos and
// sin have R/2 columns, one for two neighbours.
// cached_attention_int8 and _int8_interleaved keep rows of int8: a row x of a head is round(x / scale), scale = max|x|
// / 127, with scales [B, G, S, 2] f32, of the keys and of the values, as a fourth result. k and v in the formula above
// are then the products of integers and scales, of the new rows, too. A position outside of the caches ends the run
// with an error, and nothing is written for it.
//
// Error, against fp64: that of sdpa over the rounded q and k; these are off by one rounding to their type and 2^-22 of
// the two products that a rotation adds. glsl/cached_attention.glsl and sdpa.glsl have the roundings.
// Of int8 rows: an integer is exact where the row is; a norm or a rotation before may make it the next one beside a
// tie, which is a scale more or less in the element. Matrices take q * scale rounded to fp16: 2^-11 of each product.
// Against the rows before they were quantized: an element is off by at most half a scale, max|x| / 254, so a score by
// |scale| * sum|q| * max|k| / 254, and the result by max|v| / 254 and, with d the largest error of a score, by
// (e^(2 d) - 1) * max|v|.
#include "ops/reference/cached_attention.h"
#include "glsl/cached_attention_write.h"
#include "ops/op.h"
#include "ops/shared/cached_attention_launch.h"
#include "ops/shared/phases.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

constexpr const char* kOp = "cached_attention";
constexpr const char* kSignature =
    "Tensor q, Tensor k, Tensor v, Tensor key_cache, Tensor value_cache, Tensor first, Tensor? cos, Tensor? sin, "
    "Tensor? q_norm, Tensor? k_norm, Tensor? sinks, float eps, int heads, int q_begin, int k_begin, int v_begin, "
    "float scale, int window, float softcap -> Tensor, Tensor, Tensor";
constexpr const char* kInt8Signature =
    "Tensor q, Tensor k, Tensor v, Tensor key_cache, Tensor value_cache, Tensor first, Tensor? cos, Tensor? sin, "
    "Tensor? q_norm, Tensor? k_norm, Tensor? sinks, float eps, int heads, int q_begin, int k_begin, int v_begin, "
    "float scale, int window, float softcap, Tensor scales -> Tensor, Tensor, Tensor, Tensor";

Caches read(const Args& args, bool int8, bool interleaved) {
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
           .window = 0,
           .scales = int8 ? args.tensor(19) : Tensor{},
           .interleaved = interleaved};
  check(args.integer(17) >= 0, "%s: a window of %lld positions", kOp, static_cast<long long>(args.integer(17)));
  c.window = u32(args.integer(17));
  const DType rows = int8 ? DType::i8 : c.q.dtype();
  check(c.key_cache.dtype() == rows && c.value_cache.dtype() == rows, "%s: caches of %s and %s, not of %s", kOp,
        name(c.key_cache.dtype()), name(c.value_cache.dtype()), name(rows));
  check(!int8 || c.scales.dtype() == DType::f32, "%s: scales of %s, not f32", kOp, int8 ? name(c.scales.dtype()) : "");
  for (const Tensor& t : {c.q, c.k, c.v, c.cos, c.sin, c.q_norm, c.k_norm, c.sinks})
    check(!t || t.dtype() == c.q.dtype(), "%s: tensors of %s and %s; one type is needed", kOp, name(c.q.dtype()),
          t ? name(t.dtype()) : "");
  for (const Tensor& t : {c.q, c.k, c.v}) check(t.rank() == 3, "%s: q, k or v of rank %u, not 3", kOp, t.rank());
  check(c.key_cache.rank() == 4 && c.value_cache.rank() == 4, "%s: caches that are not of rank 4", kOp);
  check(bool(c.cos) == bool(c.sin) && (!c.cos || c.cos.rank() == 3 || c.cos.rank() == 2),
        "%s: cos and sin of rank 3 or 2, or neither", kOp);
  check(c.first.dtype() == DType::i64 || c.first.dtype() == DType::i32, "%s: first is %s", kOp, name(c.first.dtype()));
  return c;
}

void attend(Graph& graph, const Args& args, bool int8, bool interleaved) {
  const Caches c = read(args, int8, interleaved);
  const Tensor out = args.out(0), q = c.q;
  std::vector<Tensor> old_caches = {c.key_cache, c.value_cache}, caches = {args.out(1), args.out(2)};
  if (int8) old_caches.push_back(c.scales), caches.push_back(args.out(3));
  check(out.dtype() == q.dtype(), "%s: q is %s, the output %s", kOp, name(q.dtype()), name(out.dtype()));
  for (size_t i = 0; i < caches.size(); ++i)
    check(caches[i].dtype() == old_caches[i].dtype(), "%s: a cache of %s becomes one of %s", kOp,
          name(old_caches[i].dtype()), name(caches[i].dtype()));
  const Tensor rotated = graph.scratch(q.dtype(), 4), partial = graph.scratch(DType::f32, 1),
               words = graph.counters(kTickets);
  const uint32_t call = graph.call_id();
  const auto or_q = [&](const Tensor& t) { return t ? t : q; };
  const std::vector<Tensor> inputs = {
      q, c.k, c.v, c.first, or_q(c.cos), or_q(c.sin), or_q(c.q_norm), or_q(c.k_norm), or_q(c.sinks)};
  const auto in_place = [=](const Launch& launch) {
    for (size_t i = 0; i < caches.size(); ++i)
      if (!launch.graph.shares(caches[i], old_caches[i])) return false;
    return true;
  };
  const auto one_row = [=](const Launch& launch) { return is_one_row(c, launch.features) && in_place(launch); };
  const auto resize = [=](const Launch& launch) {
    const int64_t rows = few_rows(c, launch.features), splits = rows == 0 ? 1 : cache_splits(c, launch.features);
    out.resize({c.batch(), c.rows(), c.heads, c.value_size()});
    partial.resize({splits > 1 ? c.batch() * c.kv_heads() * splits * rows * (c.value_size() + 4) : 0});
  };
  const auto resize_caches = [=] {
    for (size_t i = 0; i < caches.size(); ++i) caches[i].resize(old_caches[i].shape());
  };

  std::vector<Tensor> written = caches, of_write = old_caches, of_row = {out, partial, words};
  written.insert(written.end(), {rotated, graph.status()});
  of_write.insert(of_write.end(), inputs.begin(), inputs.end() - 1);
  of_row.insert(of_row.end(), caches.begin(), caches.end());
  of_row.push_back(graph.status());
  std::vector<Tensor> attended = {rotated, caches[0], caches[1], c.first, or_q(c.sinks)};
  attended.insert(attended.end(), caches.begin() + 2, caches.end());
  graph.dispatch_in_place(
      written, of_write,
      [=](Launch& launch) {
        check_sizes(c);
        resize_caches();
        const bool one = one_row(launch);
        rotated.resize({one ? 0 : c.batch(), c.rows(), c.heads, c.key_size()});
        if (!one && (rotated.numel() != 0 || !in_place(launch))) launch_write(launch, c, in_place(launch), call);
      },
      u32(static_cast<int64_t>(caches.size())));
  graph.dispatch(of_row, inputs, [=](Launch& launch) {
    resize(launch);
    resize_caches();
    if (out.numel() == 0 || !one_row(launch)) return;
    launch_one_row(launch, c, call);
    launch.phase = std::make_shared<AttentionPhase>(c, out, caches[0], caches[1], call);
  });
  graph.dispatch({out, partial, words}, attended, [=](Launch& launch) {
    resize(launch);
    const int64_t rows = few_rows(c, launch.features);
    if (out.numel() != 0 && rows != 0 && !one_row(launch)) launch_few_rows(launch, c, rows);
  });
  graph.dispatch({out}, attended, [=](Launch& launch) {
    out.resize({c.batch(), c.rows(), c.heads, c.value_size()});
    if (out.numel() != 0 && few_rows(c, launch.features) == 0) launch_many_rows(launch, c);
  });
}

template <bool int8, bool interleaved>
void cached_attention(Graph& graph, Args args) {
  attend(graph, args, int8, interleaved);
}

constexpr Op kOps[] = {
    {{"cached_attention", 1, kSignature},
     cached_attention<false, false>,
     glsl::cached_attention_write::axes,
     {"q=T[1,1,96] k=T[1,1,96] v=T[1,1,96] key_cache=T[1,2,40,16] value_cache=T[1,2,40,16] first=i32[1]{0..39} "
      "eps=0.000001 heads=2 q_begin=0 k_begin=32 v_begin=64 scale=0.25 window=0 softcap=0 "
      "-> T[1,1,2,16] T[1,2,40,16] T[1,2,40,16]; "
      "q=T[2,3,64] k=T[2,3,32] v=T[2,3,32] key_cache=T[2,2,40,16] value_cache=T[2,2,40,16] first=i32[2]{0..36} "
      "cos=T[1,3,8] sin=T[1,3,8] q_norm=T[16] k_norm=T[16] eps=0.000001 heads=4 q_begin=0 k_begin=0 v_begin=0 "
      "scale=0.0625 window=5 softcap=1 -> T[2,3,4,16] T[2,2,40,16] T[2,2,40,16]; "
      // Rows enough for matrices.
      "q=T[2,20,64]{-1..1} k=T[2,20,32]{-1..1} v=T[2,20,32] key_cache=T[2,2,90,16]{-1..1} "
      "value_cache=T[2,2,90,16] first=i32[2]{0..70} "
      "cos=T[2,20,16] sin=T[2,20,16] eps=0.000001 heads=4 q_begin=0 k_begin=0 v_begin=0 scale=0.25 window=0|30 "
      "softcap=0 -> T[2,20,4,16] T[2,2,90,16] T[2,2,90,16]; "
      // Likewise of heads whose sums fill the registers.
      "q=T[1,40,512]{-1..1} k=T[1,40,128]{-1..1} v=T[1,40,128] key_cache=T[1,1,90,128]{-1..1} "
      "value_cache=T[1,1,90,128] first=i32[1]{0..50} cos=T[90,64] sin=T[90,64] sinks=T[4] eps=0.000001 heads=4 "
      "q_begin=0 "
      "k_begin=0 v_begin=0 scale=0.09 window=0|30 softcap=0 -> T[1,40,4,128] T[1,1,90,128] T[1,1,90,128]; "
      // Angles of all positions; one row, then several.
      "q=T[2,1,64] k=T[2,1,32] v=T[2,1,32] key_cache=T[2,2,40,16] value_cache=T[2,2,40,16] first=i32[2]{0..39} "
      "cos=T[41,8] sin=T[41,8] q_norm=T[16] k_norm=T[16] eps=0.000001 heads=4 q_begin=0 k_begin=0 v_begin=0 "
      "scale=0.0625 window=5 softcap=1 -> T[2,1,4,16] T[2,2,40,16] T[2,2,40,16]; "
      "q=T[2,3,64] k=T[2,3,32] v=T[2,3,32] key_cache=T[2,2,40,16] value_cache=T[2,2,40,16] first=i32[2]{0..36} "
      "cos=T[40,16] sin=T[40,16] eps=0.000001 heads=4 q_begin=0 k_begin=0 v_begin=0 "
      "scale=0.0625 window=0 softcap=0 -> T[2,3,4,16] T[2,2,40,16] T[2,2,40,16]; "
      // Positions enough for several workgroups a head.
      "q=T[2,1,32] k=T[2,1,16] v=T[2,1,16] key_cache=T[2,1,700,16] value_cache=T[2,1,700,16] first=i32[2]{500..699} "
      "sinks=T[2] eps=0.000001 heads=2 q_begin=0 k_begin=0 v_begin=0 scale=0.25 window=0 softcap=0 "
      "-> T[2,1,2,16] T[2,1,700,16] T[2,1,700,16]; "
      "q=T[1,1,16] k=T[1,1,8] v=T[1,1,8] key_cache=T[1,1,1500,8] value_cache=T[1,1,1500,8] "
      "first=i32[1]{1300..1499} eps=0.000001 heads=2 q_begin=0 k_begin=0 v_begin=0 scale=0.25 window=0 softcap=0 "
      "-> T[1,1,2,8] T[1,1,1500,8] T[1,1,1500,8]",
      "q=f16[1,1,3072] k=f16[1,1,3072] v=f16[1,1,3072] key_cache=f16[1,8,4096,64] value_cache=f16[1,8,4096,64] "
      "first=i32[1]{4095..4095} eps=0.000001 heads=32 q_begin=0 k_begin=2048 v_begin=2560 scale=0.125 window=0 "
      "softcap=0 -> f16[1,1,32,64] f16[1,8,4096,64] f16[1,8,4096,64]",
      reference::cached_attention}},
    {{"cached_attention_interleaved", 1, kSignature},
     cached_attention<false, true>,
     glsl::cached_attention_write::axes,
     // One row; several, with a part of the head and norms; and rows enough for matrices.
     {"q=T[2,1,64] k=T[2,1,32] v=T[2,1,32] key_cache=T[2,2,40,16] value_cache=T[2,2,40,16] first=i32[2]{0..39} "
      "cos=T[41,8] sin=T[41,8] eps=0.000001 heads=4 q_begin=0 k_begin=0 v_begin=0 "
      "scale=0.0625 window=0 softcap=0 -> T[2,1,4,16] T[2,2,40,16] T[2,2,40,16]; "
      "q=T[2,3,64] k=T[2,3,32] v=T[2,3,32] key_cache=T[2,2,40,16] value_cache=T[2,2,40,16] first=i32[2]{0..36} "
      "cos=T[2,3,3] sin=T[2,3,3] q_norm=T[16] k_norm=T[16] eps=0.000001 heads=4 q_begin=0 k_begin=0 v_begin=0 "
      "scale=0.0625 window=5 softcap=1 -> T[2,3,4,16] T[2,2,40,16] T[2,2,40,16]; "
      "q=T[2,20,64]{-1..1} k=T[2,20,32]{-1..1} v=T[2,20,32] key_cache=T[2,2,90,16]{-1..1} "
      "value_cache=T[2,2,90,16] first=i32[2]{0..70} "
      "cos=T[90,8] sin=T[90,8] eps=0.000001 heads=4 q_begin=0 k_begin=0 v_begin=0 scale=0.125 window=0 "
      "softcap=0 -> T[2,20,4,16] T[2,2,90,16] T[2,2,90,16]",
      "q=f16[1,1,3072] k=f16[1,1,3072] v=f16[1,1,3072] key_cache=f16[1,8,4096,64] value_cache=f16[1,8,4096,64] "
      "first=i32[1]{4095..4095} cos=f16[4096,32] sin=f16[4096,32] eps=0.000001 heads=32 q_begin=0 k_begin=2048 "
      "v_begin=2560 scale=0.125 window=0 softcap=0 -> f16[1,1,32,64] f16[1,8,4096,64] f16[1,8,4096,64]",
      reference::cached_attention_interleaved}},
    {{"cached_attention_int8", 1, kInt8Signature},
     cached_attention<true, false>,
     glsl::cached_attention_write::axes,
     // One row, alone and with all options; several; enough for matrices, of whole and of other vec4 groups; rows
     // shared by workgroups.
     {"q=T[1,1,96] k=T[1,1,96] v=T[1,1,96] key_cache=i8[1,2,40,16] value_cache=i8[1,2,40,16] first=i32[1]{0..39} "
      "eps=0.000001 heads=2 q_begin=0 k_begin=32 v_begin=64 scale=0.25 window=0 softcap=0 "
      "scales=f32[1,2,40,2]{0..0.02} -> T[1,1,2,16] i8[1,2,40,16] i8[1,2,40,16] f32[1,2,40,2]; "
      "q=T[2,1,64] k=T[2,1,32] v=T[2,1,32] key_cache=i8[2,2,40,16] value_cache=i8[2,2,40,16] first=i32[2]{0..39} "
      "cos=T[41,8] sin=T[41,8] q_norm=T[16] k_norm=T[16] sinks=T[4] eps=0.000001 heads=4 q_begin=0 k_begin=0 "
      "v_begin=0 scale=0.0625 window=0|5 softcap=1 scales=f32[2,2,40,2]{0..0.01} "
      "-> T[2,1,4,16] i8[2,2,40,16] i8[2,2,40,16] f32[2,2,40,2]; "
      "q=T[2,3,64] k=T[2,3,32] v=T[2,3,32] key_cache=i8[2,2,40,16] value_cache=i8[2,2,40,16] first=i32[2]{0..36} "
      "cos=T[1,3,8] sin=T[1,3,8] q_norm=T[16] k_norm=T[16] eps=0.000001 heads=4 q_begin=0 k_begin=0 v_begin=0 "
      "scale=0.0625 window=5 softcap=1 scales=f32[2,2,40,2]{0..0.01} "
      "-> T[2,3,4,16] i8[2,2,40,16] i8[2,2,40,16] f32[2,2,40,2]; "
      "q=T[2,20,64]{-1..1} k=T[2,20,32]{-1..1} v=T[2,20,32] key_cache=i8[2,2,90,16] value_cache=i8[2,2,90,16] "
      "first=i32[2]{0..70} cos=T[2,20,16] sin=T[2,20,16] eps=0.000001 heads=4 q_begin=0 k_begin=0 v_begin=0 "
      "scale=0.25 window=0|30 softcap=0 scales=f32[2,2,90,2]{0..0.01} "
      "-> T[2,20,4,16] i8[2,2,90,16] i8[2,2,90,16] f32[2,2,90,2]; "
      "q=T[1,9,40]{-1..1} k=T[1,9,20]{-1..1} v=T[1,9,12] key_cache=i8[1,1,50,20] value_cache=i8[1,1,50,12] "
      "first=i32[1]{0..41} sinks=T[2] eps=0.000001 heads=2 q_begin=0 k_begin=0 v_begin=0 scale=0.25 window=0 "
      "softcap=0 scales=f32[1,1,50,2]{0..0.01} -> T[1,9,2,12] i8[1,1,50,20] i8[1,1,50,12] f32[1,1,50,2]; "
      "q=T[2,1,32] k=T[2,1,16] v=T[2,1,16] key_cache=i8[2,1,700,16] value_cache=i8[2,1,700,16] "
      "first=i32[2]{500..699} sinks=T[2] eps=0.000001 heads=2 q_begin=0 k_begin=0 v_begin=0 scale=0.25 window=0 "
      "softcap=0 scales=f32[2,1,700,2]{0..0.02} -> T[2,1,2,16] i8[2,1,700,16] i8[2,1,700,16] f32[2,1,700,2]",
      "q=f16[1,1,3072] k=f16[1,1,3072] v=f16[1,1,3072] key_cache=i8[1,8,4096,64] value_cache=i8[1,8,4096,64] "
      "first=i32[1]{4095..4095} eps=0.000001 heads=32 q_begin=0 k_begin=2048 v_begin=2560 scale=0.125 window=0 "
      "softcap=0 scales=f32[1,8,4096,2]{0..0.01} -> f16[1,1,32,64] i8[1,8,4096,64] i8[1,8,4096,64] f32[1,8,4096,2]",
      reference::cached_attention_int8}},
    {{"cached_attention_int8_interleaved", 1, kInt8Signature},
     cached_attention<true, true>,
     glsl::cached_attention_write::axes,
     {"q=T[2,1,64] k=T[2,1,32] v=T[2,1,32] key_cache=i8[2,2,40,16] value_cache=i8[2,2,40,16] first=i32[2]{0..39} "
      "cos=T[41,8] sin=T[41,8] eps=0.000001 heads=4 q_begin=0 k_begin=0 v_begin=0 scale=0.0625 window=0 softcap=0 "
      "scales=f32[2,2,40,2]{0..0.01} -> T[2,1,4,16] i8[2,2,40,16] i8[2,2,40,16] f32[2,2,40,2]; "
      "q=T[2,3,64] k=T[2,3,32] v=T[2,3,32] key_cache=i8[2,2,40,16] value_cache=i8[2,2,40,16] first=i32[2]{0..36} "
      "cos=T[2,3,3] sin=T[2,3,3] q_norm=T[16] k_norm=T[16] eps=0.000001 heads=4 q_begin=0 k_begin=0 v_begin=0 "
      "scale=0.0625 window=5 softcap=1 scales=f32[2,2,40,2]{0..0.01} "
      "-> T[2,3,4,16] i8[2,2,40,16] i8[2,2,40,16] f32[2,2,40,2]; "
      "q=T[2,20,64]{-1..1} k=T[2,20,32]{-1..1} v=T[2,20,32] key_cache=i8[2,2,90,16] value_cache=i8[2,2,90,16] "
      "first=i32[2]{0..70} cos=T[90,8] sin=T[90,8] eps=0.000001 heads=4 q_begin=0 k_begin=0 v_begin=0 scale=0.125 "
      "window=0 softcap=0 scales=f32[2,2,90,2]{0..0.01} "
      "-> T[2,20,4,16] i8[2,2,90,16] i8[2,2,90,16] f32[2,2,90,2]",
      "q=f16[1,1,3072] k=f16[1,1,3072] v=f16[1,1,3072] key_cache=i8[1,8,4096,64] value_cache=i8[1,8,4096,64] "
      "first=i32[1]{4095..4095} cos=f16[4096,32] sin=f16[4096,32] eps=0.000001 heads=32 q_begin=0 k_begin=2048 "
      "v_begin=2560 scale=0.125 window=0 softcap=0 scales=f32[1,8,4096,2]{0..0.01} "
      "-> f16[1,1,32,64] i8[1,8,4096,64] i8[1,8,4096,64] f32[1,8,4096,2]",
      reference::cached_attention_int8_interleaved}}};

}  // namespace

std::span<const Op> cached_attention_ops() {
  return kOps;
}

}  // namespace pumice::engine
