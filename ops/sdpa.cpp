// SPDX-License-Identifier: Apache-2.0
// out = softmax(q k^T * scale + mask) v for q [B, H, L, E], k [B, G, S, E], v [B, G, S, F], G divides H; mask: none,
// bool (true = seen) or q's dtype, rank 4, each dimension full or 1; causal: key s is seen from row l >= s. A row that
// sees nothing is 0. q_blhd (and so on): the tensor at hand is [B, L, H, E], permuted only in thought.
//
// Error, against fp64: |err| <= u * |y| + (2^-24 * (E + S + 8) + 4 * d) * max_s|v|, d = 2^-24 * (E + 2) * scale * max_s
// sum|q k|, the error of a score, u of the output's type: glsl/sdpa.glsl has the roundings.
#include "glsl/sdpa.h"

#include <algorithm>
#include <bit>
#include <cinttypes>

#include "ops/common/gemm.h"
#include "ops/common/shape.h"

namespace pumice {
namespace {

constexpr uint32_t kLanes = 128;

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

// How a workgroup goes over its head: query rows it owns, keys of a block, and whether keys and values pass through
// shared memory (a GPU; on a CPU driver that is one more copy).
struct Blocks {
  uint32_t rows, keys;
  bool staged;
};

uint32_t shared_bytes(const Blocks& b, uint32_t e_quads, uint32_t v_quads) {
  const uint32_t staged = b.staged ? b.keys * (std::max(e_quads, v_quads) + 1) : 1;
  return 16 * (b.rows * e_quads + staged + kLanes) + 4 * (b.rows * b.keys + 2 * kLanes + 3 * b.rows);
}

// All of few rows, else 16 (12 heads of 32 at 128 rows give 96 workgroups); fewer rows and keys as heads grow, to fit.
Blocks pick_blocks(int64_t rows, uint32_t e_quads, uint32_t v_quads, const Features& features) {
  Blocks b{std::bit_ceil(static_cast<uint32_t>(std::min<int64_t>(rows, 16))), rows == 1 ? 128u : 64u, false};
  b.rows = std::max(1u, std::min(b.rows, std::bit_floor(std::max(1u, 512 / std::max(e_quads, v_quads)))));
  if (features.cpu || b.rows == 1) return b;
  for (Blocks s = {b.rows, 64, true}; s.keys >= 8; s.keys /= 2)
    if (shared_bytes(s, e_quads, v_quads) <= features.max_shared_bytes) return s;
  return b;
}

glsl::sdpa::MASK mask_of(const Tensor& mask, DType dtype) {
  using glsl::sdpa::MASK;
  if (!mask) return MASK::none;
  if (mask.dtype() == DType::boolean) return MASK::boolean;
  check(mask.dtype() == dtype && mask.rank() == 4, "sdpa: the mask is %s of rank %u; bool or %s of rank 4 is needed",
        name(mask.dtype()), mask.rank(), name(dtype));
  return dtype == DType::f16 ? MASK::f16 : MASK::f32;
}

void put_mask(glsl::sdpa::Params& params, const Tensor& mask, const Shape& full) {
  const Shape& shape = mask.shape();
  const Shape strides = contiguous_strides(shape);
  for (size_t d = 0; d < 4; ++d) {
    check(shape[d] == 1 || shape[d] == full[d], "sdpa: the mask has %" PRId64 " in dimension %zu, not 1 or %" PRId64,
          shape[d], d, full[d]);
    params.mask_stride[d] = shape[d] == 1 ? 0 : u32(strides[d]);
  }
}

void sdpa(Graph& graph, Args args) {
  const Tensor q = args.tensor(0), k = args.tensor(1), v = args.tensor(2), mask = args.tensor(3), out = args.out();
  const bool causal = args.boolean(4);
  const float scale = static_cast<float>(args.real(5));
  const bool q_blhd = args.boolean(6), k_blhd = args.boolean(7), v_blhd = args.boolean(8), out_blhd = args.boolean(9);
  const DType dtype = q.dtype();
  for (const Tensor& t : {q, k, v, out})
    check(t.rank() == 4 && t.dtype() == dtype, "sdpa: q, k, v and the output must have rank 4 and one dtype");
  const glsl::sdpa::MASK mask_kind = mask_of(mask, dtype);
  if (mask) check(mask.rank() == 4, "sdpa: the mask must have rank 4");

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

    glsl::sdpa::Params params{};
    params.l = u32(sq.rows);
    params.s = u32(sk.rows);
    params.e = u32(sq.size);
    params.ev = u32(sv.size);
    params.batches = u32(sq.batch);
    params.heads = u32(sq.heads);
    params.per_key = u32(sq.heads / sk.heads);
    params.scale = scale;
    put_strides(params.q_stride, sq, q_blhd);
    put_strides(params.k_stride, sk, k_blhd);
    put_strides(params.v_stride, sv, v_blhd);
    put_strides(params.out_stride, so, out_blhd);
    if (mask) put_mask(params, mask, {sq.batch, sq.heads, sq.rows, sk.rows});

    const uint32_t e_quads = (params.e + 3) / 4, v_quads = (params.ev + 3) / 4;
    const Blocks blocks = pick_blocks(sq.rows, e_quads, v_quads, launch.features);
    check(blocks.rows * e_quads <= 512, "sdpa: heads of %u elements; the limit is 2048", params.e);
    params.row_blocks = (params.l + blocks.rows - 1) / blocks.rows;
    over_groups(launch, uint64_t{params.batches} * params.heads * params.row_blocks, kLanes);
    launch.spec.insert(launch.spec.end(),
                       {blocks.rows, blocks.keys, e_quads, v_quads, params.e % 4 == 0 && params.ev % 4 == 0, causal,
                        static_cast<uint32_t>(mask_kind), blocks.staged, std::max(e_quads, v_quads) + 1});
    launch.params(params);
    launch.flops = 2ull * params.batches * params.heads * params.l * params.s * (params.e + params.ev);
    launch.shader = &glsl::sdpa::variant(glsl::sdpa::dtype(dtype));
  });
}

}  // namespace

std::span<const Op> sdpa_ops() {
  static constexpr Op kOps[] = {
      {{"sdpa", 1,
        "Tensor q, Tensor k, Tensor v, Tensor? mask, bool causal, float scale, bool q_blhd, bool k_blhd, bool v_blhd, "
        "bool out_blhd -> Tensor"},
       sdpa,
       glsl::sdpa::axes},
  };
  return kOps;
}

}  // namespace pumice
