// SPDX-License-Identifier: Apache-2.0
// out = softmax(q k^T * scale + mask) v for q [B, H, L, E], k [B, G, S, E], v [B, G, S, F], G divides H; mask: none,
// bool (true = seen) or q's dtype, rank 4, each dimension full or 1; causal: key s is seen from row l >= s. A row that
// sees no key is 0. q_blhd (and so on): the tensor is [B, L, H, E] in memory, and is read permuted.
// sdpa_heads: q, k and v may have more heads, of which those from q_first, k_first, v_first on are read, `heads` of q
// and `kv_heads` of k and v: three slices of one tensor where one product made them.
//
// Error, against fp64: |err| <= u * |y| + (2^-24 * (E + S + 8) + 4 * d) * max_s|v|, d = 2^-24 * (E + 2) * scale * max_s
// sum|q k|, the error of a score, u of the output's type: glsl/sdpa.glsl has the roundings. By matrices all 2^-24 are
// 2^-23, and in fp16 2^-11 * max_s|v| comes on top for the weights: glsl/sdpa_matrix.glsl. fp32 is then split
// (glsl/sdpa_fragments.glsl): (4 * s + 2^-21 + 2^-36 * S) * max_s|v| + 2^-49 * max|v| comes on top, s = scale * (2^-21
// * max_s sum|q k| + 2^-49 * E * max|q| * max|k|). Where subgroups divide the keys
// (glsl/include/linear/sdpa_own_keys.glslh), a sum of n of S keys and p others' sums has n + p + 2 roundings, and each
// of the others but the last has 16 keys or more: S + 8 covers them.
#include "glsl/sdpa.h"

#include <cinttypes>
#include <functional>

#include "ops/op.h"
#include "ops/reference/products.h"
#include "ops/shared/sdpa_launch.h"

#define PUMICE_HIDE_32 "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0"
#define PUMICE_SHOW_32 "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"

namespace pumice::engine {
namespace {

// The heads of a call that are read, at its live shapes.
struct Slices {
  HeadSlice q, k, v;
};

void attend(Graph& graph, const Args& args, const std::function<Slices()>& slices) {
  const Tensor q = args.tensor(0), k = args.tensor(1), v = args.tensor(2), mask = args.tensor(3), out = args.out();
  const bool causal = args.boolean(4), out_blhd = args.boolean(9);
  const float scale = static_cast<float>(args.real(5));
  const DType dtype = q.dtype();
  for (const Tensor& t : {q, k, v, out})
    check(t.rank() == 4 && t.dtype() == dtype, "sdpa: q, k, v and the output must have rank 4 and one dtype");
  check(!mask || mask.rank() == 4, "sdpa: the mask has rank %u, not 4", mask ? mask.rank() : 0);
  check_attention_mask(mask, dtype);

  graph.dispatch({out}, {q, k, v, mask ? mask : q, q}, [=](Launch& launch) {
    const auto [sq, sk, sv] = slices();
    check(sk.batch == sq.batch && sv.batch == sq.batch, "sdpa: batches of %" PRId64 ", %" PRId64 " and %" PRId64,
          sq.batch, sk.batch, sv.batch);
    check(sk.heads == sv.heads && sk.rows == sv.rows, "sdpa: k and v differ in heads or rows");
    check(sk.heads >= 1 && sq.heads % sk.heads == 0, "sdpa: %" PRId64 " heads of k do not divide %" PRId64, sk.heads,
          sq.heads);
    check(sk.size == sq.size && sq.size >= 1 && sv.size >= 1, "sdpa: a query has %" PRId64 " elements, a key %" PRId64,
          sq.size, sk.size);
    const HeadSlice so = {sq.batch, sq.heads, sq.rows, sv.size, out_blhd};
    out.resize(out_blhd ? Shape{so.batch, so.rows, so.heads, so.size} : Shape{so.batch, so.heads, so.rows, so.size});
    if (out.numel() == 0) return;
    launch_attention(launch, {sq, sk, sv, so, causal, scale, dtype, mask});
  });
}

void sdpa(Graph& graph, Args args) {
  const Tensor q = args.tensor(0), k = args.tensor(1), v = args.tensor(2);
  const bool q_blhd = args.boolean(6), k_blhd = args.boolean(7), v_blhd = args.boolean(8);
  attend(graph, args, [=] { return Slices{all_heads(q, q_blhd), all_heads(k, k_blhd), all_heads(v, v_blhd)}; });
}

void sdpa_heads(Graph& graph, Args args) {
  const Tensor q = args.tensor(0), k = args.tensor(1), v = args.tensor(2);
  const bool q_blhd = args.boolean(6), k_blhd = args.boolean(7), v_blhd = args.boolean(8);
  const int64_t q_first = args.integer(10), k_first = args.integer(11), v_first = args.integer(12);
  const int64_t heads = args.integer(13), kv_heads = args.integer(14);
  attend(graph, args, [=] {
    return Slices{some_heads(q, q_blhd, q_first, heads), some_heads(k, k_blhd, k_first, kv_heads),
                  some_heads(v, v_blhd, v_first, kv_heads)};
  });
}

constexpr const char* kCases =
    "q=T[1,2,5,16] k=T[1,2,7,16] v=T[1,2,7,16] causal=0|1 scale=0.25 q_blhd=0 k_blhd=0 v_blhd=0 "
    "out_blhd=0; "
    "q=T[1,2,5,16] k=T[1,1,70,16] v=T[1,1,70,16] mask=bool[1,2,5,70] causal=0|1 scale=0.25 q_blhd=0 k_blhd=0 "
    "v_blhd=0 out_blhd=0; "
    "q=T[2,9,4,20] k=T[2,2,9,20] v=T[2,2,9,12] mask=T[1,1,9,9] causal=0 scale=0.25 q_blhd=1 k_blhd=0 "
    "v_blhd=0 out_blhd=1 -> T[2,9,4,12]; "
    "q=T[1,3,37,32] k=T[1,1,70,32] v=T[1,1,70,48] mask=T[1,1,37,70] causal=0|1 scale=0.2 q_blhd=0 k_blhd=0 "
    "v_blhd=0 out_blhd=0 -> T[1,3,37,48]; "
    "q=T[1,150,2,64] k=T[1,131,2,64] v=T[1,131,2,64] causal=0|1 scale=0.125 q_blhd=1 k_blhd=1 v_blhd=1 out_blhd=1; "
    "q=T[1,2,20,64] k=T[1,1,300,64] v=T[1,1,300,64] causal=0|1 scale=0.125 q_blhd=0 k_blhd=0 v_blhd=0 out_blhd=0; "
    "q=T[1,2,40,32] k=T[1,2,7,32] v=T[1,2,7,32] causal=0|1 scale=0.2 q_blhd=0 k_blhd=0 v_blhd=0 out_blhd=0; "
    "q=T[1,2,100,24] k=T[1,2,100,24] v=T[1,2,100,52] mask=T[1,2,100,1] causal=1 scale=0.2 q_blhd=0 k_blhd=0 "
    "v_blhd=0 out_blhd=0 -> T[1,2,100,52]; "
    "q=T[2,4,37,31] k=T[2,2,75,31] v=T[2,2,75,29] causal=0|1 scale=0.2 q_blhd=0 k_blhd=0 v_blhd=0 out_blhd=0 -> "
    "T[2,4,37,29]; "
    // A mask that hides 32 keys, shows 32, ...: all that one of several subgroups has, or none.
    "q=T[1,3,25,32] k=T[1,3,150,32] v=T[1,3,150,32] mask=bool[1,1,1,150]{" PUMICE_HIDE_32 "," PUMICE_SHOW_32
    "} causal=0 scale=0.2 q_blhd=0 k_blhd=0 v_blhd=0 out_blhd=0; "
    // Heads whose sums fill the registers; many, whose queries go through shared memory in two passes.
    "q=T[1,3,37,80] k=T[1,1,70,80] v=T[1,1,70,80] mask=bool[1,1,37,70] causal=0|1 scale=0.11 q_blhd=0 k_blhd=0 "
    "v_blhd=0 out_blhd=0; "
    "q=T[2,4,45,97] k=T[2,2,75,97] v=T[2,2,75,72] causal=0|1 scale=0.1 q_blhd=0 k_blhd=0 v_blhd=0 out_blhd=0 -> "
    "T[2,4,45,72]; "
    "q=T[1,150,2,128] k=T[1,131,2,128] v=T[1,131,2,128] causal=0|1 scale=0.09 q_blhd=1 k_blhd=1 v_blhd=1 "
    "out_blhd=1; "
    "q=T[1,66,67,112] k=T[1,3,45,112] v=T[1,3,45,128] mask=T[1,1,67,45] causal=0|1 scale=0.1 q_blhd=0 k_blhd=0 "
    "v_blhd=0 out_blhd=0 -> T[1,66,67,128]; "
    // The largest value of a block may be below or above 1, where its power of two changes.
    "q=f32[1,2,70,128] k=f32[1,2,300,128] v=f32[1,2,300,128]{-1.0001..1.0001} causal=0 scale=0.09 q_blhd=0 "
    "k_blhd=0 "
    "v_blhd=0 out_blhd=0; "
    "q=f32[1,2,20,32] k=f32[1,2,700,32] v=f32[1,2,700,32]{-1.0005..1.0005} causal=0 scale=0.2 q_blhd=0 k_blhd=0 "
    "v_blhd=0 out_blhd=0; "
    // Small beside large.
    "q=f32[1,2,70,128]{1,-2e-9,0.5,3e-13,0,-1,1e-30} "
    "k=f32[1,2,100,128]{-1,0.3,0,2e-10,1,1e-14,-1e-33,1e-5,0.7,1e-8,2} "
    "v=f32[1,2,100,96]{3,-1e-10,0,1e-6,2e-13,-1,1e-31} causal=0 scale=0.5 q_blhd=0 k_blhd=0 v_blhd=0 out_blhd=0 "
    "-> f32[1,2,70,96]; "
    "q=T[1,2,35,112] k=T[1,2,80,112] v=T[1,2,80,72]{1,inf,2,-1,nan} causal=0 scale=0.1 q_blhd=0 k_blhd=0 v_blhd=0 "
    "out_blhd=0 -> T[1,2,35,72]; "
    "q=f32[1,2,40,36]{1,-2e-9,0.5,3e-13,0,-1,1e-30} "
    "k=f32[1,2,100,36]{-1,0.3,0,2e-10,1,1e-14,-1e-33,1e-5,0.7,1e-8,2} "
    "v=f32[1,2,100,60]{3,-1e-10,0,1e-6,2e-13,-1,1e-31} causal=0 scale=0.5 q_blhd=0 k_blhd=0 v_blhd=0 out_blhd=0 "
    "-> f32[1,2,40,60]; "
    "q=T[1,2,33,32] k=T[1,2,80,32] v=T[1,2,80,60]{1,inf,2,-1,nan} causal=0 scale=0.2 q_blhd=0 k_blhd=0 v_blhd=0 "
    "out_blhd=0 -> T[1,2,33,60]; "
    // Workgroups for all of a large device, which then share keys.
    "q=T[8,40,17,32] k=T[8,40,45,32] v=T[8,40,45,32] causal=0 scale=0.2 q_blhd=0 k_blhd=0 v_blhd=0 out_blhd=0; "
    "q=f32[1,2,20,17]{-1e-20..1e-20} k=f32[1,2,100,17]{-1e20..1e20} v=f32[1,2,100,9]{-1e30..1e30} causal=0 "
    "scale=0.5 q_blhd=0 k_blhd=0 v_blhd=0 out_blhd=0 -> f32[1,2,20,9]";

}  // namespace

std::span<const Op> sdpa_ops() {
  static constexpr Op kOps[] = {
      {{"sdpa", 1,
        "Tensor q, Tensor k, Tensor v, Tensor? mask, bool causal, float scale, bool q_blhd, bool k_blhd, bool v_blhd, "
        "bool out_blhd -> Tensor"},
       sdpa,
       glsl::sdpa::axes,
       {kCases,
        "q=T[1,12,128,64] k=T[1,12,128,64] v=T[1,12,128,64] causal=1 scale=0.125 q_blhd=0 k_blhd=0 "
        "v_blhd=0 out_blhd=0",
        reference::sdpa}},
      {{"sdpa_heads", 1,
        "Tensor q, Tensor k, Tensor v, Tensor? mask, bool causal, float scale, bool q_blhd, bool k_blhd, bool v_blhd, "
        "bool out_blhd, int q_first, int k_first, int v_first, int heads, int kv_heads -> Tensor"},
       sdpa_heads,
       glsl::sdpa::axes,
       // Slices in any order, of sizes that are whole vectors and are not; heads shared by two queries; heads first.
       {"q=T[2,9,7,8] k=T[2,11,7,8] v=T[2,11,7,8] causal=0|1 scale=0.25 q_blhd=1 k_blhd=1 v_blhd=1 out_blhd=1 "
        "q_first=0|2 k_first=5 v_first=1 heads=2 kv_heads=2 -> T[2,9,2,8]; "
        "q=T[2,40,8,20] k=T[2,75,8,20] v=T[2,75,5,12] mask=T[2,1,40,75] causal=0 scale=0.2 q_blhd=1 k_blhd=1 v_blhd=1 "
        "out_blhd=0 q_first=1 k_first=5 v_first=3 heads=4 kv_heads=2 -> T[2,4,40,12]; "
        "q=T[2,5,37,31] k=T[2,5,70,31] v=T[2,5,70,31] causal=0 scale=0.2 q_blhd=0 k_blhd=0 v_blhd=0 out_blhd=1 "
        "q_first=3 k_first=1 v_first=2 heads=2 kv_heads=1 -> T[2,37,2,31]; "
        "q=T[1,150,6,64] k=T[1,131,6,64] v=T[1,131,6,64] causal=0|1 scale=0.125 q_blhd=1 k_blhd=1 v_blhd=1 out_blhd=1 "
        "q_first=0 k_first=2 v_first=4 heads=2 kv_heads=2 -> T[1,150,2,64]; "
        "q=T[1,1,9,64] k=T[1,300,9,64] v=T[1,300,9,64] mask=bool[1,1,1,300] causal=0 scale=0.125 q_blhd=1 k_blhd=1 "
        "v_blhd=1 out_blhd=1 q_first=0 k_first=3 v_first=6 heads=3 kv_heads=3 -> T[1,1,3,64]; "
        // Workgroups for all of a large device, which then share keys.
        "q=T[8,17,80,32] k=T[8,45,80,32] v=T[8,45,80,32] causal=0 scale=0.2 q_blhd=1 k_blhd=1 v_blhd=1 out_blhd=1 "
        "q_first=40 k_first=20 v_first=0 heads=40 kv_heads=20 -> T[8,17,40,32]",
        "q=T[1,197,18,64] k=T[1,197,18,64] v=T[1,197,18,64] causal=0 scale=0.125 q_blhd=1 k_blhd=1 v_blhd=1 out_blhd=1 "
        "q_first=0 k_first=6 v_first=12 heads=6 kv_heads=6 -> T[1,197,6,64]",
        reference::sdpa_heads}},
  };
  return kOps;
}

}  // namespace pumice::engine
