// SPDX-License-Identifier: Apache-2.0
// out = self, then out[.., index[p], ..] is joined with src[p] along `dim` for every p of the row, in order: replaced
// by it (the last of equal indices counts), or their sum, product, mean, largest or smallest; src may be a number.
// Without include_self what is joined begins with the first src. The indices of a row are sorted and every element
// looks for its own, so that the result has the same bits in every run. An index out of range, and an i64 sum that 32
// bits cannot hold, are errors of the run.
//
// Sums of f32 with the element that was there: by rows in integers, in any order with the same bits, where rows are
// many and fit in shared memory (glsl/scatter_rows.glsl); other ones by atomics where the feature float_atomics is
// asked for (ops/shared/add_atomic.h), which may differ in their last bits.
//
// Error of floats with n terms of an element: 2^-24 * n * the sum of their sizes, of a product 2^-24 * n |y|, of a mean
// 2^-22 |y| more.
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/divide.h"
#include "glsl/include/core/modes.glslh"
#include "glsl/scatter.h"
#include "glsl/scatter_rows.h"
#include "ops/linear/registers.h"
#include "ops/op.h"
#include "ops/reference/indices.h"
#include "ops/shared/add_atomic.h"
#include "ops/shared/shape.h"
#include "ops/shared/sort_rows.h"

namespace pumice::engine {
namespace {

using glsl::scatter::MODE;

constexpr const char* kNames[] = {"scatter",      "scatter_add", "scatter_prod",
                                  "scatter_mean", "scatter_max", "scatter_min"};

// What the choice between the kernels depends on.
struct Scatter {
  MODE mode;
  Tensor self, index, src;  // src: none for a number
  uint32_t dim;
  bool include_self;
};

// The workgroups of glsl/scatter_rows.glsl.
struct Tiles {
  uint32_t columns, parts, tiles, slabs;
  uint32_t groups() const { return parts * tiles * slabs; }
};

// A workgroup reads a sector of memory, eight floats, of neighbouring rows; all indices of a row are read by each of
// its parts, so that there are few.
constexpr uint32_t kMostColumns = 8, kMostParts = 4, kLeastGroups = 64, kLeastExtent = 256, kMostLanes = 1024;

// Adreno 660 has registers for half as many: of 1024 lanes it spills.
uint32_t most_lanes(const Features& features) {
  return std::min(kMostLanes / (has_fewest_registers(features) ? 2 : 1), std::bit_floor(features.max_invocations));
}

Tiles tiles_of(const Rows& rows, const Features& features, uint32_t columns) {
  const int64_t most = (features.max_shared_bytes - 8) / (8 * columns);  // two words of glsl/scatter_rows.glsl's own
  return {.columns = columns,
          .parts = u32(ceil_div(int64_t{rows.extent}, most)),
          .tiles = u32(ceil_div(int64_t{rows.inner}, int64_t{columns})),
          .slabs = rows.count / rows.inner};
}

Tiles tiles_of(const Rows& rows, const Features& features) {
  Tiles t = tiles_of(rows, features, std::min(std::bit_ceil(rows.inner), kMostColumns));
  while (t.columns > 1 && (t.parts > kMostParts || t.groups() < kLeastGroups))
    t = tiles_of(rows, features, t.columns / 2);
  return t;
}

// Whether glsl/scatter_rows.glsl does it: sums of rows that shared memory takes, of which there are enough to fill a
// GPU.
bool by_rows(const Scatter& s, const Features& features) {
  if (s.mode != MODE::add || s.self.dtype() != DType::f32 || !s.src || !s.include_self || s.self.rank() == 0)
    return false;
  for (uint32_t d = 0; d < s.self.rank(); ++d)
    if (d != s.dim && (s.index.dim(d) != s.self.dim(d) || s.src.dim(d) != s.self.dim(d))) return false;
  const Rows rows(s.self, s.dim);
  if (rows.extent < kLeastExtent || rows.count == 0 || s.index.dim(s.dim) > 1 << 16) return false;
  const Tiles t = tiles_of(rows, features);
  return t.parts <= kMostParts && t.groups() >= kLeastGroups;
}

void launch_rows(Launch& launch, const Scatter& s, uint32_t call, glsl::scatter_rows::SRC src) {
  const Rows rows(s.self, s.dim);
  const Tiles t = tiles_of(rows, launch.features);
  launch.params(glsl::scatter_rows::Params{.groups = t.groups(),
                                           .parts = t.parts,
                                           .tiles = t.tiles,
                                           .extent = rows.extent,
                                           .indices = u32(s.index.dim(s.dim)),
                                           .terms = u32(s.src.dim(s.dim)),
                                           .inner = rows.inner,
                                           .call = call});
  launch.shader = &glsl::scatter_rows::variant(src);
  const auto longest = static_cast<uint32_t>(std::max<int64_t>(rows.extent, s.index.dim(s.dim)));
  const uint32_t lanes =
      std::clamp(std::bit_ceil(longest) * t.columns / SCATTER_EACH, 32U, most_lanes(launch.features));
  launch.over_groups(t.groups(), lanes);
  launch.spec.insert(launch.spec.end(), {t.columns, (rows.extent + t.parts - 1) / t.parts,
                                         uint32_t{longest <= lanes / t.columns * SCATTER_EACH}});
}

// Checks the live shapes; whether there is something to do.
bool check_shapes(const Scatter& s, const char* op) {
  const Shape values = s.src ? s.src.shape() : s.self.shape();
  const uint32_t rank = s.self.rank();
  for (uint32_t d = 0; d < rank; ++d) {
    check(s.index.numel() == 0 || ((d == s.dim || s.index.dim(d) <= s.self.dim(d)) && s.index.dim(d) <= values[d]) ||
              (!s.src && (d == s.dim || s.index.dim(d) <= s.self.dim(d))),
          "%s: index has size %lld in dimension %u", op, static_cast<long long>(s.index.dim(d)), d);
  }
  check(rank <= kMaxRank, "%s: rank %u, the limit is %u", op, rank, kMaxRank);
  check(s.self.numel() != 0 || s.index.numel() == 0, "%s: writes into an empty tensor", op);
  u32(s.index.numel());
  u32(product(values, 0, values.size()));
  return s.self.numel() != 0;
}

void scatter(Graph& graph, const Args& args, MODE mode) {
  const char* const op = kNames[static_cast<size_t>(mode)];
  const Tensor self = args.tensor(0), index = args.tensor(1), out = args.out();
  const Operand src = args.operand(2);
  const uint32_t rank = self.rank(), dim = axis(args.integer(3), rank, op), call = graph.call_id();
  const bool include_self = mode == MODE::put || args.boolean(4);
  const DType dtype = self.dtype();
  check(index.dtype() == DType::i64 || index.dtype() == DType::i32, "%s: the index is %s", op, name(index.dtype()));
  check(index.rank() == rank && (!src.tensor || src.tensor.rank() == rank), "%s: the ranks differ", op);
  check(out.dtype() == dtype && (!src.tensor || src.tensor.dtype() == dtype), "%s: self is %s, output %s", op,
        name(dtype), name(out.dtype()));
  check(mode != MODE::mean || is_float(dtype), "%s: needs floats, got %s", op, name(dtype));
  check(mode != MODE::prod || dtype != DType::i64, "%s: of i64 is not supported", op);
  check(mode == MODE::put || dtype != DType::boolean, "%s: of bool is not supported", op);
  const uint32_t number = src.tensor ? 0 : number_bits(src.number, dtype, op);
  const Scatter how{mode, self, index, src.tensor, dim, include_self};
  using glsl::scatter_rows::SRC;
  if (mode == MODE::add && src.tensor && include_self && adds_by_atomics(graph, dtype)) {
    const AtomicScatter atomic{out, self, index, src.tensor, dim, call};
    graph.dispatch({out, graph.status()}, {self, index, src.tensor}, [=](Launch& launch) {
      out.resize(self.shape());
      if (!check_shapes(how, op)) return;
      if (by_rows(how, launch.features)) return launch_rows(launch, how, call, SRC::at4);
      atomic.launch(launch);
    });
    return;
  }
  const Tensor pairs = sort_rows(graph, index, dim, false, [=](const Launch& launch) {
    return by_rows(how, launch.features) ? 0 : int64_t{Rows(index, dim).extent};
  });
  const Tensor values = src.tensor ? src.tensor : self;
  graph.dispatch({out, graph.status()}, {self, index, pairs, values}, [=](Launch& launch) {
    out.resize(self.shape());
    if (!check_shapes(how, op)) return;
    if (by_rows(how, launch.features)) return launch_rows(launch, how, call, SRC::at5);
    const Shape strides = contiguous_strides(values.shape());
    glsl::scatter::Params params{.count = u32(out.numel()), .positions = u32(index.numel()), .rank = rank, .dim = dim};
    params.number = number;
    params.call = call;
    for (uint32_t d = 0; d < rank; ++d) {
      params.size[d] = u32(self.dim(d));
      params.index_size[d] = u32(index.dim(d));
      params.stride[d] = u32(strides[d]);
    }
    launch.params(params);
    launch.shader = &glsl::scatter::variant(glsl::scatter::dtype(dtype));
    launch.over(std::max(vec4_groups(out), params.positions));
    launch.spec.insert(launch.spec.end(), {static_cast<uint32_t>(mode), include_self, !src.tensor});
  });
}

template <MODE mode>
void build(Graph& graph, Args args) {
  scatter(graph, args, mode);
}

template <MODE mode>
void reference_of(HostCall& call) {
  reference::scatter_elements(call, static_cast<int>(mode));
}

// A mode takes a stretch of the shader's axis: f32 f16 i32 u8 i8 i64 boolean.
template <size_t count>
constexpr Axis kDtypes[] = {{"DTYPE", std::span(glsl::scatter::kDTYPE).first(count)}};
static_assert(glsl::scatter::kDTYPE[1] == "f16" && glsl::scatter::kDTYPE[4] == "i8" &&
              glsl::scatter::kDTYPE[5] == "i64");

template <MODE mode, size_t dtypes>
constexpr Op row(std::string_view more) {
  constexpr bool kPuts = mode == MODE::put;
  return {{kNames[static_cast<size_t>(mode)], 1,
           kPuts ? "Tensor self, Tensor index, operand src, int dim -> Tensor"
                 : "Tensor self, Tensor index, operand src, int dim, bool include_self -> Tensor"},
          build<mode>,
          kDtypes<dtypes>,
          {more,
           kPuts ? "self=f32[1024,1024] index=i32[1024,1024]{0..1023} src=f32[1024,1024] dim=1"
                 : "self=f32[1024,1024] index=i32[1024,1024]{0..1023} src=f32[1024,1024] dim=1 include_self=1",
           reference_of<mode>},
          mode == MODE::prod ? "i64" : ""};
}

#define FLOAT_CASES                                                                          \
  "self=T[5,9] index=i32[4,3]{0..8}|i64[4,3]{7..10} src=T[4,7]|0.5 dim=1 include_self=0|1; " \
  "self=T[2,3,4] index=i32[2,40,3]{0..2} src=T[2,40,4] dim=1 include_self=0|1"
#define ROWS_CASES                                                                                               \
  "; self=f32[70,300] index=i32[70,1000]{0..299}|i64[70,40]{0..2}|i32[70,300]{298..301} src=f32[70,1001] dim=1 " \
  "include_self=1; self=f32[64,300] index=i32[64,4500]{0..299}|i32[64,4500]{3..3} src=f32[64,4500] dim=1 "       \
  "include_self=1; self=f32[9,260,8] index=i64[9,600,8]{0..259} src=f32[9,600,8] dim=1 include_self=1; "         \
  "self=f32[7,2300,40] index=i64[7,20,40]{0..2299} src=f32[7,20,40] dim=1 include_self=1"
#define INTEGER_CASES "; self=i32[7] index=i32[20]{0..6} src=i32[20]{-9..9} dim=0 include_self=0|1"

}  // namespace

std::span<const Op> scatter_ops() {
  static constexpr Op kOps[] = {
      row<MODE::put, 7>("self=T[5,9] index=i32[4,3]{0..8}|i64[4,3]{-1..8} src=T[4,7]|0.5 dim=1; "
                        "self=i8[3,4] index=i32[30,4]{0..2} src=i8[30,5] dim=0; self=bool[9] index=i32[4]{0..8} "
                        "src=bool[4] dim=0; self=i64[2,3] index=i32[2,3]{0..2} src=5 dim=1"),
      row<MODE::add, 6>(FLOAT_CASES INTEGER_CASES ROWS_CASES
                        "; self=i64[2] index=i64[3]{0..1} src=i64[3]{2000000000..2100000000} dim=0 include_self=1"),
      row<MODE::prod, 5>(FLOAT_CASES INTEGER_CASES),
      row<MODE::mean, 2>(FLOAT_CASES),
      row<MODE::max, 6>(FLOAT_CASES INTEGER_CASES),
      row<MODE::min, 6>(FLOAT_CASES INTEGER_CASES),
  };
  return kOps;
}

}  // namespace pumice::engine
