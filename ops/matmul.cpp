// SPDX-License-Identifier: Apache-2.0
// out[..., m, n] = act(sum_k a'[..., m, k] * b'[..., k, n] + bias[n]), a' = a permuted by `a_perm` (empty: as it is),
// b' likewise; batch dimensions broadcast. Both have rank 2 or more (Python gives vectors a dimension).
//
// Error, against fp64: |err| <= u * |y| + 2^-24 * (K + 2) * sum|a b| * L; u and L as in ops/linear/error_bound.h.
#include "glsl/matmul.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <numeric>

#include "graph/boxes.h"
#include "ops/linear/epilogue.h"
#include "ops/linear/packed_weight.h"
#include "ops/linear/pick.h"
#include "ops/op.h"
#include "ops/reference/products.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

constexpr uint32_t kBatchRank = 4;  // of size, a_batch and b_batch in matmul.glsl

// How a tensor is read: its permuted sizes, and the strides of its memory.
struct View {
  Shape size, stride;
  View(const Tensor& tensor, const std::vector<int64_t>& perm) {
    const Shape strides = contiguous_strides(tensor.shape());
    for (const int64_t axis : perm) {
      size.push_back(tensor.dim(axis));
      stride.push_back(strides[static_cast<size_t>(axis)]);
    }
  }
  size_t rank() const { return size.size(); }
  int64_t rows() const { return size[rank() - 2]; }
  int64_t columns() const { return size[rank() - 1]; }
  int64_t row_stride() const { return stride[rank() - 2]; }
  int64_t column_stride() const { return stride[rank() - 1]; }
};

std::vector<int64_t> permutation(std::vector<int64_t> perm, uint32_t rank) {
  if (perm.empty()) {
    perm.resize(rank);
    std::iota(perm.begin(), perm.end(), 0);
  }
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i)
    check(sorted[i] == static_cast<int64_t>(i), "matmul: not a permutation of %u dimensions", rank);
  check(perm.size() == rank, "matmul: a permutation of %zu dimensions for a tensor of rank %u", perm.size(), rank);
  return perm;
}

struct Batch {
  int64_t size, a, b;  // a, b: strides
};

// The broadcast batch dimensions, neighbours merged where both operands are contiguous; `shape` gets their sizes.
std::vector<Batch> batches(const View& a, const View& b, Shape& shape) {
  const size_t rank = std::max(a.rank(), b.rank()) - 2;
  std::vector<Batch> merged;
  for (size_t d = 0; d < rank; ++d) {
    const auto at = [&](const View& v) -> std::pair<int64_t, int64_t> {
      const size_t missing = rank - (v.rank() - 2);
      return d < missing ? std::pair<int64_t, int64_t>{1, 0} : std::pair{v.size[d - missing], v.stride[d - missing]};
    };
    const auto [a_size, a_stride] = at(a);
    const auto [b_size, b_stride] = at(b);
    check(a_size == b_size || a_size == 1 || b_size == 1,
          "matmul: batch sizes %" PRId64 " and %" PRId64 " do not broadcast", a_size, b_size);
    const Batch next = {a_size == 1 ? b_size : a_size, a_size == 1 ? 0 : a_stride, b_size == 1 ? 0 : b_stride};
    shape.push_back(next.size);
    if (next.size == 1) continue;
    Batch* last = merged.empty() ? nullptr : &merged.back();
    if (last != nullptr && last->a == next.a * next.size && last->b == next.b * next.size) {
      *last = {last->size * next.size, next.a, next.b};
    } else {
      merged.push_back(next);
    }
  }
  check(merged.size() <= kBatchRank, "matmul: %zu batch dimensions are left after merging, the limit is %u",
        merged.size(), kBatchRank);
  return merged;
}

glsl::matmul::READ read_of(int64_t k_stride, std::initializer_list<int64_t> others) {
  using glsl::matmul::READ;
  if (k_stride != 1) return READ::along_rows;
  return std::all_of(others.begin(), others.end(), [](int64_t s) { return s % 4 == 0; }) ? READ::vec4 : READ::along_k;
}

struct Epilogue {
  bool bias;
  uint32_t act;
};

// A product of `m` rows of each of the batches.
void launch_product(Launch& launch, const View& left, const View& right, const std::vector<Batch>& batch, int64_t m,
                    const Epilogue& epilogue, DType dtype) {
  const int64_t n = right.columns(), k = left.columns();
  int64_t count = 1;
  for (const Batch& each : batch) count *= each.size;
  const Tile tile = pick_tile(count, m, n, launch.features);
  glsl::matmul::Params params{};
  params.m = u32(m);
  params.n = u32(n);
  params.k = u32(k);
  params.batches = u32(count);
  params.row_blocks = (params.m + tile.bm - 1) / tile.bm;
  params.column_blocks = (params.n + tile.bn - 1) / tile.bn;
  params.a_row = u32(left.row_stride());
  params.a_k = u32(left.column_stride());
  params.b_k = u32(right.row_stride());
  params.b_column = u32(right.column_stride());
  std::fill(params.size, params.size + kBatchRank, 1u);
  int64_t a_odd = left.row_stride(), b_odd = right.column_stride();  // not a multiple of 4 if a stride is not
  for (size_t d = 0; d < batch.size(); ++d) {
    const size_t at = kBatchRank - batch.size() + d;
    params.size[at] = u32(batch[d].size);
    params.a_batch[at] = u32(batch[d].a);
    params.b_batch[at] = u32(batch[d].b);
    a_odd |= batch[d].a;
    b_odd |= batch[d].b;
  }
  launch.over_groups(uint64_t{params.batches} * params.row_blocks * params.column_blocks, tile.subtiles());
  launch.spec.insert(launch.spec.end(), {static_cast<uint32_t>(read_of(left.column_stride(), {a_odd})),
                                         static_cast<uint32_t>(read_of(right.row_stride(), {b_odd})), epilogue.bias,
                                         n % 4 == 0, epilogue.act, tile.bm, tile.bn, tile.tm, tile.tn});
  launch.params(params);
  launch.flops = 2ull * static_cast<uint64_t>(count * m) * static_cast<uint64_t>(n * k);
  launch.arithmetic = arithmetic_of(dtype);
  launch.shader = &glsl::matmul::variant(glsl::matmul::dtype(dtype));
}

// What is touched of the output, a, b, and a in place of a bias. A box has indices of the batch dimensions, and rows of
// a.
std::array<Touched, 4> touched_by(const View& left, const View& right, const std::vector<Batch>& batch,
                                  std::array<uint64_t, 3> totals, int64_t element) {
  const int64_t m = left.rows(), n = right.columns(), k = left.columns();
  const int64_t row = (k - 1) * left.column_stride() + 1;
  const int64_t matrix = (k - 1) * right.row_stride() + (n - 1) * right.column_stride() + 1;
  Touched out{.unit = static_cast<uint64_t>(n * element), .total = totals[0], .stride = {}};
  Touched a{.unit = static_cast<uint64_t>(row * element), .total = totals[1], .stride = {}};
  Touched b{.unit = static_cast<uint64_t>(matrix * element), .total = totals[2], .stride = {}};
  out.stride[batch.size()] = n * element;
  a.stride[batch.size()] = left.row_stride() * element;
  int64_t product = m * n * element;
  for (size_t d = batch.size(); d-- > 0;) {
    out.stride[d] = product;
    a.stride[d] = batch[d].a * element;
    b.stride[d] = batch[d].b * element;
    product *= batch[d].size;
  }
  return {out, a, b, a};
}

void matmul(Graph& graph, Args args) {
  const Tensor a = args.tensor(0), b = args.tensor(1), bias = args.tensor(2), out = args.out();
  check(a.rank() >= 2 && b.rank() >= 2, "matmul: operands of rank %u and %u; 2 or more are needed", a.rank(), b.rank());
  const DType dtype = a.dtype();
  check(b.dtype() == dtype && out.dtype() == dtype, "matmul: a is %s, b %s, the output %s", name(dtype),
        name(b.dtype()), name(out.dtype()));
  if (bias) check(bias.dtype() == dtype && bias.rank() == 1, "matmul: the bias must be %s of rank 1", name(dtype));
  const std::vector<int64_t> a_perm = permutation(args.ints(3), a.rank()), b_perm = permutation(args.ints(4), b.rank());
  const uint32_t act = activation(args.integer(5), "matmul");

  graph.dispatch({out}, {a, b, bias ? bias : a}, [=](Launch& launch) {
    const View left(a, a_perm), right(b, b_perm);
    check(left.columns() == right.rows(), "matmul: %" PRId64 " columns times %" PRId64 " rows", left.columns(),
          right.rows());
    Shape shape;
    const std::vector<Batch> batch = batches(left, right, shape);
    const int64_t m = left.rows(), n = right.columns();
    shape.insert(shape.end(), {m, n});
    out.resize(shape);
    if (bias)
      check(bias.dim(0) == n, "matmul: the bias has %" PRId64 " elements, the product %" PRId64 " columns", bias.dim(0),
            n);
    if (out.numel() == 0) return;

    const Epilogue epilogue{bool(bias), act};
    const std::array<Touched, 4> touched =
        touched_by(left, right, batch, {out.bytes(), a.bytes(), b.bytes()}, device_bytes(dtype));
    Dims sizes{};
    for (size_t d = 0; d < batch.size(); ++d) sizes[d] = batch[d].size;
    sizes[batch.size()] = m;
    const std::vector<Box> cut = boxes(sizes, touched, launch.features);
    if (cut.size() == 1 || left.columns() == 0) return launch_product(launch, left, right, batch, m, epilogue, dtype);
    for (const Box& box : cut) {
      std::vector<Batch> part = batch;
      for (size_t d = 0; d < batch.size(); ++d) part[d].size = box.count[d];
      launch_product(launch, left, right, part, box.count[batch.size()], epilogue, dtype);
      launch.binding_ranges = ranges_of(touched, box, launch.features);
      if (bias) launch.binding_ranges.pop_back();
      launch.next_dispatch();
    }
  });
}

}  // namespace

std::span<const Op> matmul_ops() {
  static constexpr Op kOps[] = {
      {{"matmul", 1, "Tensor a, Tensor b, Tensor? bias, ints a_perm, ints b_perm, int act -> Tensor"},
       matmul,
       glsl::matmul::axes,
       {"a=T[5,37] b=T[37,9] bias=T[9] a_perm=[0,1] b_perm=[0,1] act=0|1 -> T[5,9]; "
        "a=T[2,5,16] b=T[2,12,16] a_perm=[0,1,2] b_perm=[0,2,1] act=0|2|3|4|5|6|7 -> T[2,5,12]; "
        "a=T[16,2,5] b=T[3,1,16,9] a_perm=[1,2,0] b_perm=[] act=0 -> T[3,2,5,9]",
        "a=f16[128,512] b=f16[512,512] a_perm=[0,1] b_perm=[0,1] act=0 -> f16[128,512]", reference::matmul}},
  };
  return kOps;
}

}  // namespace pumice::engine
