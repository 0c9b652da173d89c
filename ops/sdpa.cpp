// SPDX-License-Identifier: Apache-2.0
// out = softmax(q k^T * scale + mask) v for q [B, H, L, E], k [B, G, S, E], v [B, G, S, F], G divides H; mask: none,
// bool (true = seen) or q's dtype, rank 4, each dimension full or 1; causal: key s is seen from row l >= s. A row that
// sees no key is 0. q_blhd (and so on): the tensor is [B, L, H, E] in memory, and is read permuted.
//
// Error, against fp64: |err| <= u * |y| + (2^-24 * (E + S + 8) + 4 * d) * max_s|v|, d = 2^-24 * (E + 2) * scale * max_s
// sum|q k|, the error of a score, u of the output's type: glsl/sdpa.glsl has the roundings. By matrices (fp16 only) all
// 2^-24 are 2^-23, and 2^-11 * max_s|v| comes on top for the weights: glsl/sdpa_matrix.glsl.
#include "glsl/sdpa.h"

#include <algorithm>
#include <cinttypes>

#include "glsl/sdpa_matrix.h"
#include "ops/linear/packed_weight.h"
#include "ops/op.h"
#include "ops/reference/products.h"
#include "ops/shared/sdpa_kernel.h"
#include "ops/shared/shape.h"
#include "ops/shared/workgroups.h"

namespace pumice::engine {
namespace {

struct Sizes {
  int64_t batch, heads, rows, size;
};

Sizes sizes(const Tensor& t, bool blhd) {
  return blhd ? Sizes{t.dim(0), t.dim(2), t.dim(1), t.dim(3)} : Sizes{t.dim(0), t.dim(1), t.dim(2), t.dim(3)};
}

// Strides of batch, head and row.
void put_strides(uint32_t (&stride)[3], const Sizes& s, bool blhd) {
  stride[0] = u32(s.heads * s.rows * s.size);
  stride[1] = u32(blhd ? s.size : s.rows * s.size);
  stride[2] = u32(blhd ? s.heads * s.size : s.size);
}

glsl::sdpa::MASK mask_of(const Tensor& mask, DType dtype) {
  using glsl::sdpa::MASK;
  if (!mask) return MASK::none;
  if (mask.dtype() == DType::boolean) return MASK::boolean;
  check(mask.dtype() == dtype && mask.rank() == 4, "sdpa: the mask is %s of rank %u; bool or %s of rank 4 is needed",
        name(mask.dtype()), mask.rank(), name(dtype));
  return dtype == DType::f16 ? MASK::f16 : MASK::f32;
}

template <class Params>
void put_mask(Params& params, const Tensor& mask, const Shape& full) {
  const Shape& shape = mask.shape();
  const Shape strides = contiguous_strides(shape);
  for (size_t d = 0; d < 4; ++d) {
    check(shape[d] == 1 || shape[d] == full[d], "sdpa: the mask has %" PRId64 " in dimension %zu, not 1 or %" PRId64,
          shape[d], d, full[d]);
    params.mask_stride[d] = shape[d] == 1 ? 0 : u32(strides[d]);
  }
}

// A call at one shape, as both kernels read it.
struct Attention {
  Sizes q, k, v, out;
  bool q_blhd, k_blhd, v_blhd, out_blhd, causal;
  float scale;
  DType dtype;
  Tensor mask;
};

// Parameters and specialization constants 1 to 7, for workgroups of `rows` query rows and blocks of `keys`.
template <class Params>
void describe(Launch& launch, const Attention& a, uint32_t rows, uint32_t keys, uint32_t lanes) {
  Params params{};
  params.l = u32(a.q.rows);
  params.s = u32(a.k.rows);
  params.e = u32(a.q.size);
  params.ev = u32(a.v.size);
  params.batches = u32(a.q.batch);
  params.heads = u32(a.q.heads);
  params.per_key = u32(a.q.heads / a.k.heads);
  params.scale = a.scale;
  put_strides(params.q_stride, a.q, a.q_blhd);
  put_strides(params.k_stride, a.k, a.k_blhd);
  put_strides(params.v_stride, a.v, a.v_blhd);
  put_strides(params.out_stride, a.out, a.out_blhd);
  if (a.mask) put_mask(params, a.mask, {a.q.batch, a.q.heads, a.q.rows, a.k.rows});
  params.row_blocks = (params.l + rows - 1) / rows;
  over_groups(launch, uint64_t{params.batches} * params.heads * params.row_blocks, lanes);
  launch.params(params);
  launch.spec.insert(launch.spec.end(),
                     {rows, keys, (params.e + 3) / 4, (params.ev + 3) / 4, params.e % 4 == 0 && params.ev % 4 == 0,
                      a.causal, static_cast<uint32_t>(mask_of(a.mask, a.dtype))});
  launch.flops = 2ull * params.batches * params.heads * params.l * params.s * (params.e + params.ev);
}

void launch_blocks(Launch& launch, const Attention& a, const SdpaBlocks& blocks) {
  const auto vec4s = u32((std::max(a.q.size, a.v.size) + 3) / 4);
  check(blocks.rows * vec4s <= 512, "sdpa: heads of %" PRId64 " elements; the limit is 2048",
        std::max(a.q.size, a.v.size));
  describe<glsl::sdpa::Params>(launch, a, blocks.rows, blocks.keys, SdpaBlocks::kLanes);
  launch.spec.insert(launch.spec.end(), {blocks.staged, vec4s + 1});
  launch.shader = &glsl::sdpa::variant(glsl::sdpa::dtype(a.dtype));
}

void launch_matrices(Launch& launch, const Attention& a, const SdpaMatrices& m) {
  const uint32_t subgroup = launch.features.subgroup_size;
  describe<glsl::sdpa_matrix::Params>(launch, a, m.rows(), m.keys, m.subgroups * subgroup);
  launch.spec.insert(launch.spec.end(), {m.shape.m, m.shape.n, m.shape.k, subgroup, m.staged});
  require_subgroups(launch);
  launch.shader = &glsl::sdpa_matrix::variant();
}

void sdpa(Graph& graph, Args args) {
  const Tensor q = args.tensor(0), k = args.tensor(1), v = args.tensor(2), mask = args.tensor(3), out = args.out();
  const bool causal = args.boolean(4);
  const float scale = static_cast<float>(args.real(5));
  const bool q_blhd = args.boolean(6), k_blhd = args.boolean(7), v_blhd = args.boolean(8), out_blhd = args.boolean(9);
  const DType dtype = q.dtype();
  for (const Tensor& t : {q, k, v, out})
    check(t.rank() == 4 && t.dtype() == dtype, "sdpa: q, k, v and the output must have rank 4 and one dtype");
  mask_of(mask, dtype);

  graph.dispatch({out}, {q, k, v, mask ? mask : q}, [=](Launch& launch) {
    const Sizes sq = sizes(q, q_blhd), sk = sizes(k, k_blhd), sv = sizes(v, v_blhd);
    check(sk.batch == sq.batch && sv.batch == sq.batch, "sdpa: batches of %" PRId64 ", %" PRId64 " and %" PRId64,
          sq.batch, sk.batch, sv.batch);
    check(sk.heads == sv.heads && sk.rows == sv.rows, "sdpa: k and v differ in heads or rows");
    check(sk.heads >= 1 && sq.heads % sk.heads == 0, "sdpa: %" PRId64 " heads of k do not divide %" PRId64, sk.heads,
          sq.heads);
    check(sk.size == sq.size && sq.size >= 1 && sv.size >= 1, "sdpa: a query has %" PRId64 " elements, a key %" PRId64,
          sq.size, sk.size);
    const Sizes so = {sq.batch, sq.heads, sq.rows, sv.size};
    out.resize(out_blhd ? Shape{so.batch, so.rows, so.heads, so.size} : Shape{so.batch, so.heads, so.rows, so.size});
    if (out.numel() == 0) return;
    const Attention a{sq, sk, sv, so, q_blhd, k_blhd, v_blhd, out_blhd, causal, scale, dtype, mask};
    const SdpaShape shape{sq.batch * sq.heads, sq.rows, sq.size, sv.size, dtype};
    if (const auto matrices = sdpa_matrices(shape, launch.features)) return launch_matrices(launch, a, *matrices);
    launch_blocks(launch, a, sdpa_blocks(shape, launch.features));
  });
}

}  // namespace

std::span<const Op> sdpa_ops() {
  static constexpr Op kOps[] = {
      {{"sdpa", 1,
        "Tensor q, Tensor k, Tensor v, Tensor? mask, bool causal, float scale, bool q_blhd, bool k_blhd, bool v_blhd, "
        "bool out_blhd -> Tensor"},
       sdpa,
       glsl::sdpa::axes,
       {"q=T[1,2,5,16] k=T[1,2,7,16] v=T[1,2,7,16] causal=0|1 scale=0.25 q_blhd=0 k_blhd=0 v_blhd=0 "
        "out_blhd=0; "
        "q=T[1,2,5,16] k=T[1,1,70,16] v=T[1,1,70,16] mask=bool[1,2,5,70] causal=0|1 scale=0.25 q_blhd=0 k_blhd=0 "
        "v_blhd=0 out_blhd=0; "
        "q=T[2,9,4,20] k=T[2,2,9,20] v=T[2,2,9,12] mask=T[1,1,9,9] causal=0 scale=0.25 q_blhd=1 k_blhd=0 "
        "v_blhd=0 out_blhd=1 -> T[2,9,4,12]",
        "q=f16[1,12,128,64] k=f16[1,12,128,64] v=f16[1,12,128,64] causal=1 scale=0.125 q_blhd=0 k_blhd=0 "
        "v_blhd=0 out_blhd=0",
        reference::sdpa}},
  };
  return kOps;
}

}  // namespace pumice::engine
