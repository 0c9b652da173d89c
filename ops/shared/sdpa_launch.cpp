// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/sdpa_launch.h"

#include <algorithm>
#include <cinttypes>

#include "glsl/sdpa.h"
#include "glsl/sdpa_fragments.h"
#include "glsl/sdpa_matrix.h"
#include "graph/boxes.h"
#include "ops/shared/sdpa_kernel.h"
#include "ops/shared/shape.h"
#include "ops/shared/workgroups.h"

namespace pumice::engine {
namespace {

void put_strides(uint32_t (&stride)[3], const HeadSlice& slice) {
  const std::array<int64_t, 3> strides = slice.strides();
  std::transform(strides.begin(), strides.end(), stride, u32);
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

// The rows of a dispatch: all, or where a tensor is larger than a binding a part of them.
struct Part {
  int64_t batches, heads, rows;
};

// Parameters and specialization constants 1 to 8, for workgroups of `rows` query rows and blocks of `keys`.
template <class Params>
void describe(Launch& launch, const Attention& a, const Part& part, uint32_t rows, uint32_t keys, uint32_t lanes) {
  Params params{};
  params.l = u32(part.rows);
  params.s = u32(a.k.rows);
  params.e = u32(a.q.size);
  params.ev = u32(a.v.size);
  params.batches = u32(part.batches);
  params.heads = u32(part.heads);
  params.per_key = u32(a.q.heads / a.k.heads);
  params.scale = a.scale;
  put_strides(params.q_stride, a.q);
  put_strides(params.k_stride, a.k);
  put_strides(params.v_stride, a.v);
  put_strides(params.out_stride, a.out);
  params.q_begin = u32(a.q.begin());
  params.k_begin = u32(a.k.begin());
  params.v_begin = u32(a.v.begin());
  if (a.positions) params.mask_stride[0] = 1;
  if (a.mask && !a.positions) put_mask(params, a.mask, {a.q.batch, a.q.heads, a.q.rows, a.k.rows});
  params.window = a.window;
  params.softcap = a.softcap;
  params.row_blocks = (params.l + rows - 1) / rows;
  launch.over_groups(uint64_t{params.batches} * params.heads * params.row_blocks, lanes);
  launch.params(params);
  const int64_t sizes = a.q.size | a.v.size;
  const uint32_t whole = sizes % 8 == 0 ? 8 : sizes % 4 == 0 ? 4 : 1;
  launch.spec.insert(
      launch.spec.end(),
      {rows, keys, (params.e + 3) / 4, (params.ev + 3) / 4, whole, a.causal,
       static_cast<uint32_t>(a.positions ? glsl::sdpa::MASK::positions : mask_of(a.mask, a.dtype)), a.sinks});
  launch.flops = 2ull * params.batches * params.heads * params.l * params.s * (params.e + params.ev);
  launch.arithmetic = arithmetic_of(a.dtype);
}

void launch_blocks(Launch& launch, const Attention& a, const Part& part, const SdpaBlocks& blocks) {
  const auto vec4s = u32((std::max(a.q.size, a.v.size) + 3) / 4);
  check(blocks.rows * vec4s <= 512, "sdpa: heads of %" PRId64 " elements; the limit is 2048",
        std::max(a.q.size, a.v.size));
  describe<glsl::sdpa::Params>(launch, a, part, blocks.rows, blocks.keys, blocks.lanes);
  launch.spec.insert(launch.spec.end(), {blocks.staged, vec4s + 1});
  launch.shader =
      &glsl::sdpa::variant(glsl::sdpa::dtype(a.dtype), a.int8_rows ? glsl::sdpa::CACHE::i8 : glsl::sdpa::CACHE::own);
}

void launch_matrices(Launch& launch, const Attention& a, const Part& part, const SdpaMatrices& m) {
  const uint32_t subgroup = launch.features.subgroup_size;
  describe<glsl::sdpa_matrix::Params>(launch, a, part, m.rows(), m.keys, m.subgroups * subgroup);
  launch.spec.insert(launch.spec.end(), {m.shape.m, m.shape.n, m.shape.k, subgroup, m.staged});
  require_subgroups(launch);
  launch.shader =
      &glsl::sdpa_matrix::variant(a.int8_rows ? glsl::sdpa_matrix::CACHE::i8 : glsl::sdpa_matrix::CACHE::own);
}

void launch_fragments(Launch& launch, const Attention& a, const Part& part, const SdpaFragments& f) {
  describe<glsl::sdpa_fragments::Params>(launch, a, part, f.rows(), f.keys, f.subgroups * 32);
  launch.spec.insert(launch.spec.end(), {f.shared, f.key_parts});
  require_subgroups(launch);
  launch.split = a.dtype == DType::f32;
  if (launch.split) launch.arithmetic = Arithmetic::split3;
  namespace kernel = glsl::sdpa_fragments;
  launch.shader = &kernel::variant(kernel::dtype(a.dtype), a.int8_rows ? kernel::CACHE::i8 : kernel::CACHE::own,
                                   f.key_parts > 1 ? kernel::KEYS::own : kernel::KEYS::shared);
}

void launch_part(Launch& launch, const Attention& a, const Part& part) {
  const SdpaShape shape{part.batches * part.heads, part.rows, a.q.size, a.v.size, a.dtype, a.int8_rows, a.k.rows};
  if (const auto fragments = sdpa_fragments(shape, launch.features))
    return launch_fragments(launch, a, part, *fragments);
  if (const auto matrices = sdpa_matrices(shape, launch.features)) return launch_matrices(launch, a, part, *matrices);
  launch_blocks(launch, a, part, sdpa_blocks(shape, launch.features));
}

// What the boxes of a call touch: batches, heads of keys, and rows of queries where these do not depend on their
// places.
struct Touching {
  int64_t per_key;  // heads of queries for one of keys
  bool by_rows;

  // `stride`: of batch, head and row, in elements; `size`: elements of a row. `own`: with a row for each query.
  Touched of(const uint32_t* stride, int64_t size, const HeadSlice& s, uint32_t element, bool own) const {
    const int64_t heads = own ? per_key : 1, rows = own && by_rows ? 1 : s.rows;
    Touched touched{.unit = static_cast<uint64_t>((heads - 1) * stride[1] + (rows - 1) * stride[2] + size) * element,
                    .total = static_cast<uint64_t>(s.elements()) * element,
                    .stride = {stride[0], heads * stride[1], own && by_rows ? stride[2] : 0}};
    for (int64_t& each : touched.stride) each *= element;
    return touched;
  }
  Touched of(const HeadSlice& s, DType dtype, bool own) const {
    uint32_t stride[3];
    put_strides(stride, s);
    Touched touched = of(stride, s.size, s, device_bytes(dtype), own);
    // Bound from the tensor's first head on: the kernel skips those in front of the slice.
    touched.unit += static_cast<uint64_t>(s.begin()) * device_bytes(dtype);
    return touched;
  }
  Touched of(const Attention& a) const {
    glsl::sdpa::Params params{};
    put_mask(params, a.mask, {a.q.batch, a.q.heads, a.q.rows, a.k.rows});
    Touched touched =
        of(params.mask_stride, params.mask_stride[3] == 0 ? 1 : a.k.rows, a.q, device_bytes(a.mask.dtype()), true);
    touched.total = a.mask.bytes();
    return touched;
  }
};

}  // namespace

void check_attention_mask(const Tensor& mask, DType dtype) {
  mask_of(mask, dtype);
}

void launch_attention(Launch& launch, const Attention& a) {
  const Part all{a.q.batch, a.q.heads, a.q.rows};
  if (a.positions || a.int8_rows || a.k.rows == 0) return launch_part(launch, a, all);
  const Touching touching{a.q.heads / a.k.heads, !a.causal && a.window == 0};
  const Touched q = touching.of(a.q, a.dtype, true);
  const std::array touched{touching.of(a.out, a.dtype, true), q,
                           touching.of(a.k, a.dtype, false),  touching.of(a.v, a.dtype, false),
                           a.mask ? touching.of(a) : q,       q};
  const std::vector<Box> cut = boxes({a.q.batch, a.k.heads, touching.by_rows ? a.q.rows : 1}, touched, launch.features);
  if (cut.size() == 1) return launch_part(launch, a, all);
  for (const Box& box : cut) {
    launch_part(launch, a, {box.count[0], box.count[1] * touching.per_key, touching.by_rows ? box.count[2] : a.q.rows});
    launch.binding_ranges = ranges_of(touched, box, launch.features);
    launch.next_dispatch();
  }
}

}  // namespace pumice::engine
