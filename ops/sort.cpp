// SPDX-License-Identifier: Apache-2.0
// sort and topk along a dimension: values, and their places in the row as i64. NaN is larger than every number. Equal
// elements stay in their order, so that both are stable; of equal elements topk takes the first.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "glsl/sort.h"
#include "glsl/sort_take.h"
#include "ops/op.h"
#include "ops/reference/moves.h"
#include "ops/shared/shape.h"
#include "ops/shared/sort_rows.h"

namespace pumice::engine {
namespace {

using Keep = std::function<int64_t(const Launch&)>;

void take_sorted(Graph& graph, const Args& args, uint32_t dim, bool descending, const Keep& keep, const char* op) {
  const Tensor x = args.tensor(0), values = args.out(0), places = args.out(1);
  check(values.dtype() == x.dtype(), "%s: input is %s, values are %s", op, name(x.dtype()), name(values.dtype()));
  check(places.dtype() == DType::i64 || places.dtype() == DType::i32, "%s: the places are %s", op,
        name(places.dtype()));
  const Tensor pairs = sort_rows(graph, x, dim, descending, keep);
  graph.dispatch({values, places}, {pairs, x}, [=](Launch& launch) {
    const Rows rows(x, dim);
    const int64_t kept = keep(launch);
    check(kept >= 0 && kept <= rows.extent, "%s: %lld elements of a dimension of %u", op, static_cast<long long>(kept),
          rows.extent);
    Shape shape = x.shape();
    if (!shape.empty()) shape[dim] = kept;
    if (shape.empty() && kept == 0) shape = {0};
    values.resize(shape);
    places.resize(shape);
    if (values.numel() == 0) return;
    launch.params(glsl::sort_take::Params{
        .count = u32(values.numel()), .kept = u32(kept), .extent = rows.extent, .inner = rows.inner});
    launch.shader = &glsl::sort_take::variant(bits<glsl::sort_take::BITS>(x.dtype()));
    launch.over(vec4_groups(values));
  });
}

uint32_t axis_of(const Args& args, uint32_t index, const char* op) {
  const uint32_t rank = args.tensor(0).rank();
  return rank == 0 ? 0 : axis(args.integer(index), rank, op);
}

void sort(Graph& graph, Args args) {
  const uint32_t dim = axis_of(args, 1, "sort");
  const Tensor x = args.tensor(0);
  take_sorted(graph, args, dim, args.boolean(2), [=](const Launch&) { return int64_t{Rows(x, dim).extent}; }, "sort");
}

void topk(Graph& graph, Args args) {
  const SymInt k = args.size(1);
  take_sorted(
      graph, args, axis_of(args, 2, "topk"), args.boolean(3), [=](const Launch& launch) { return launch.size(k); },
      "topk");
}

void reference_of(HostCall& call, int64_t dim, bool descending) {
  const HostTensor& x = call.tensor(0);
  const size_t axis = pumice::engine::axis_of(dim, x.shape);
  const auto before = [&](double a, double b) {
    if (descending) std::swap(a, b);
    return !std::isnan(a) && (std::isnan(b) || a < b);
  };
  const Shape& shape = call.out(0).shape;
  for (HostOutput& out : call.outputs) out.elements.resize(out.count());
  for (size_t i = 0; i < call.out(0).count(); ++i) {
    Shape at = coordinates(i, shape);
    if (at[axis] != 0) continue;  // a row is sorted once
    std::vector<double> row;
    for (Shape from = at; static_cast<int64_t>(row.size()) < x.shape[axis];) {
      from[axis] = static_cast<int64_t>(row.size());
      row.push_back(x.values[index_at(from, x.shape)]);
    }
    std::vector<size_t> places(row.size());
    std::iota(places.begin(), places.end(), 0);
    std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) { return before(row[a], row[b]); });
    for (; at[axis] < shape[axis]; ++at[axis]) {
      const size_t place = places[static_cast<size_t>(at[axis])], to = index_at(at, shape);
      call.out(0).elements[to].value = row[place];
      call.out(1).elements[to].value = static_cast<double>(place);
    }
  }
}

void sort_reference(HostCall& call) {
  reference_of(call, call.integer(1), call.integer(2) != 0);
}
void topk_reference(HostCall& call) {
  reference_of(call, call.integer(2), call.integer(3) != 0);
}

// PyTorch has no topk of bools.
static_assert(glsl::sort::kDTYPE[5] == "boolean");
constexpr Axis kOrdered[] = {{"DTYPE", std::span(glsl::sort::kDTYPE).first(5)}};

}  // namespace

std::span<const Op> sort_ops() {
  static constexpr Op kOps[] = {
      {{"sort", 1, "Tensor x, int dim, bool descending -> Tensor, Tensor"},
       sort,
       glsl::sort::axes,
       {"x=T[3,37]|T[3,37]{special} dim=-1 descending=0|1 -> T[3,37] i64[3,37]; "
        "x=i32[2,1500,3]{-9..9} dim=1 descending=0|1 -> i32[2,1500,3] i32[2,1500,3]; "
        "x=u8[40,2]{0..5} dim=0 descending=1 -> u8[40,2] i64[40,2]; x=bool[9] dim=0 descending=0 -> bool[9] i64[9]; "
        "x=i8[3,2050]{-99..99} dim=1 descending=0 -> i8[3,2050] i64[3,2050]; x=i64[5] dim=0 descending=1 -> i64[5] "
        "i64[5]",
        "x=f32[128,32768] dim=1 descending=0 -> f32[128,32768] i64[128,32768]", sort_reference}},
      {{"topk", 1, "Tensor x, size k, int dim, bool largest -> Tensor, Tensor"},
       topk,
       kOrdered,
       {"x=T[3,37]|T[3,37]{special} k=5 dim=-1 largest=0|1 -> T[3,5] i64[3,5]; "
        "x=i32[2,5000,3]{-99..99} k=64 dim=1 largest=1 -> i32[2,64,3] i32[2,64,3]; "
        "x=i64[3,1500] k=70 dim=1 largest=0 -> i64[3,70] i64[3,70]",
        "x=f32[128,32768] k=50 dim=1 largest=1 -> f32[128,50] i64[128,50]", topk_reference}},
  };
  return kOps;
}

}  // namespace pumice::engine
