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
#include "ops/shared/matmul_matrices.h"
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
  const Tile tile = pick_tile(count, m, n, launch.features, 1, dtype == DType::f32);
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

MatrixOperand operand_of(const View& view, bool transposed) {
  return transposed ? MatrixOperand{view.columns(), view.column_stride(), view.row_stride()}
                    : MatrixOperand{view.rows(), view.row_stride(), view.column_stride()};
}

// As glsl/matmul_matrix.glsl takes it; a is never transposed, b always.
MatrixProduct matrix_product(const View& left, const View& right, const std::vector<Batch>& batch, DType dtype) {
  MatrixProduct product{
      .a = operand_of(left, false), .b = operand_of(right, true), .k = left.columns(), .dtype = dtype};
  for (size_t d = 0; d < batch.size(); ++d) {
    const size_t at = kBatchRank - batch.size() + d;
    product.size[at] = batch[d].size;
    product.a.batch_stride[at] = batch[d].a;
    product.b.batch_stride[at] = batch[d].b;
  }
  return product;
}

struct Call {
  Tensor a, b, bias, out;
  std::vector<int64_t> a_perm, b_perm;
  uint32_t act;
};

// What a launch computes.
struct Live {
  View left, right;
  Shape shape;  // of the output
  std::vector<Batch> batch;
  explicit Live(const Call& c) : left(c.a, c.a_perm), right(c.b, c.b_perm), batch(batches(left, right, shape)) {
    shape.insert(shape.end(), {left.rows(), right.columns()});
  }
  std::array<Touched, 4> touched(const Call& c) const {
    return touched_by(left, right, batch, {c.out.bytes(), c.a.bytes(), c.b.bytes()}, device_bytes(c.a.dtype()));
  }
  std::vector<Box> boxes_of(std::span<const Touched> touched, const Features& features) const {
    Dims sizes{};
    for (size_t d = 0; d < batch.size(); ++d) sizes[d] = batch[d].size;
    sizes[batch.size()] = left.rows();
    return boxes(sizes, touched, features);
  }
};

// Picks matrices where they suit and all operands fit bindings: the output has its shape.
PickProduct pick_of(const Call& c, std::array<bool, 2> direct) {
  return [=](const Launch& launch) -> std::optional<PickedProduct> {
    const Live live(c);
    if (c.out.numel() == 0 || live.left.columns() == 0) return std::nullopt;
    const MatrixProduct product = matrix_product(live.left, live.right, live.batch, c.a.dtype());
    const bool read = (!direct[0] || is_read_directly(product.a)) && (!direct[1] || is_read_directly(product.b));
    if (!read || !fits_bindings(product, launch.features)) return std::nullopt;
    if (live.boxes_of(live.touched(c), launch.features).size() != 1) return std::nullopt;
    const LinearKernel* kernel = pick_matmul_matrices(product, launch.features);
    return kernel == nullptr ? std::nullopt : std::optional<PickedProduct>({product, kernel});
  };
}

void launch_tiled(Launch& launch, const Call& c, const Live& live) {
  const Epilogue epilogue{bool(c.bias), c.act};
  const DType dtype = c.a.dtype();
  const auto touched = live.touched(c);
  const std::vector<Box> cut = live.boxes_of(touched, launch.features);
  if (cut.size() == 1 || live.left.columns() == 0)
    return launch_product(launch, live.left, live.right, live.batch, live.left.rows(), epilogue, dtype);
  for (const Box& box : cut) {
    std::vector<Batch> part = live.batch;
    for (size_t d = 0; d < part.size(); ++d) part[d].size = box.count[d];
    launch_product(launch, live.left, live.right, part, box.count[part.size()], epilogue, dtype);
    launch.binding_ranges = ranges_of(touched, box, launch.features);
    if (c.bias) launch.binding_ranges.pop_back();
    launch.next_dispatch();
  }
}

void matmul(Graph& graph, Args args) {
  const Tensor a = args.tensor(0), b = args.tensor(1), bias = args.tensor(2), out = args.out();
  check(a.rank() >= 2 && b.rank() >= 2, "matmul: operands of rank %u and %u; 2 or more are needed", a.rank(), b.rank());
  const DType dtype = a.dtype();
  check(b.dtype() == dtype && out.dtype() == dtype, "matmul: a is %s, b %s, the output %s", name(dtype),
        name(b.dtype()), name(out.dtype()));
  if (bias) check(bias.dtype() == dtype && bias.rank() == 1, "matmul: the bias must be %s of rank 1", name(dtype));
  const Call call{a,
                  b,
                  bias,
                  out,
                  permutation(args.ints(3), a.rank()),
                  permutation(args.ints(4), b.rank()),
                  activation(args.integer(5), "matmul")};
  std::array<bool, 2> direct{};
  if (dtype == DType::f16) {  // by the sizes of the export's example
    const View left(a, call.a_perm), right(b, call.b_perm);
    direct = {is_read_directly(operand_of(left, false)), is_read_directly(operand_of(right, true))};
  }
  const bool matrices = has_matmul_matrices(dtype, graph.features());
  const PickProduct pick = pick_of(call, direct);

  graph.dispatch({out}, {a, b, bias ? bias : a}, [=](Launch& launch) {
    const Live live(call);
    check(live.left.columns() == live.right.rows(), "matmul: %" PRId64 " columns times %" PRId64 " rows",
          live.left.columns(), live.right.rows());
    const int64_t n = live.right.columns();
    out.resize(live.shape);
    if (bias)
      check(bias.dim(0) == n, "matmul: the bias has %" PRId64 " elements, the product %" PRId64 " columns", bias.dim(0),
            n);
    if (out.numel() != 0 && !(matrices && pick(launch))) launch_tiled(launch, call, live);
  });
  if (matrices) matmul_by_matrices(graph, out, {a, b}, direct, {bias, call.act}, pick);
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
