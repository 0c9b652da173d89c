// SPDX-License-Identifier: Apache-2.0
// Reading at positions that a tensor holds: index_select (rows of one dimension), gather (elements along one), and
// index_linear, which makes one index of two. Negative indices count from the end; others out of range fail the run.
#include "glsl/index.h"

#include "glsl/index_gather.h"
#include "glsl/index_linear.h"
#include "ops/op.h"
#include "ops/reference/indices.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

void check_index(Tensor index, const char* op) {
  check(index.dtype() == DType::i64 || index.dtype() == DType::i32, "%s: the index is %s", op, name(index.dtype()));
}

void index_select(Graph& graph, Args args) {
  const Tensor x = args.tensor(0), index = args.tensor(1), out = args.out();
  const uint32_t dim = axis(args.integer(2), x.rank(), "index_select"), call = graph.call_id();
  check_index(index, "index_select");
  check(x.dtype() == out.dtype(), "index_select: input is %s, output %s", name(x.dtype()), name(out.dtype()));
  graph.dispatch({out, graph.status()}, {x, index}, [=](Launch& launch) {
    Shape shape = x.shape();
    shape.erase(shape.begin() + dim);
    shape.insert(shape.begin() + dim, index.shape().begin(), index.shape().end());
    out.resize(shape);
    if (out.numel() == 0) return;
    check(x.dim(dim) > 0, "index_select: picks from a dimension of size 0");
    const uint32_t inner = u32(x.numel(dim + 1, x.rank()));
    launch.params(glsl::index::Params{.count = u32(out.numel()),
                                      .positions = u32(index.numel()),
                                      .rows = u32(x.dim(dim)),
                                      .inner = inner,
                                      .call = call});
    launch.bytes = index.bytes() + 2 * out.bytes();
    launch.shader = &glsl::index::variant(bits<glsl::index::BITS>(x.dtype()));
    launch.over(vec4_groups(out));
    launch.spec.push_back(inner % 4 == 0);
  });
}

void gather(Graph& graph, Args args) {
  const Tensor x = args.tensor(0), index = args.tensor(1), out = args.out();
  const uint32_t dim = axis(args.integer(2), x.rank(), "gather"), call = graph.call_id();
  check_index(index, "gather");
  check(x.dtype() == out.dtype(), "gather: input is %s, output %s", name(x.dtype()), name(out.dtype()));
  check(x.rank() == index.rank(), "gather: input has rank %u, index %u", x.rank(), index.rank());
  graph.dispatch({out, graph.status()}, {x, index}, [=](Launch& launch) {
    out.resize(index.shape());
    if (out.numel() == 0) return;
    Shape strides = contiguous_strides(x.shape());
    for (uint32_t d = 0; d < x.rank(); ++d) {
      check(d == dim ? x.dim(d) > 0 : index.dim(d) <= x.dim(d),
            "gather: index has size %lld in dimension %u, input %lld", static_cast<long long>(index.dim(d)), d,
            static_cast<long long>(x.dim(d)));
    }
    glsl::index_gather::Params params{};
    params.count = u32(out.numel());
    params.rows = u32(x.dim(dim));
    params.row_stride = u32(strides[dim]);
    params.call = call;
    strides[dim] = 0;
    const Walk walk = collapse(index.shape(), strides);
    params.rank = walk.rank;
    std::copy(walk.size.begin(), walk.size.end(), params.size);
    std::copy(walk.stride.begin(), walk.stride.end(), params.stride);
    launch.params(params);
    launch.bytes = index.bytes() + 2 * out.bytes();
    launch.shader = &glsl::index_gather::variant(bits<glsl::index_gather::BITS>(x.dtype()));
    launch.over(vec4_groups(out));
  });
}

void index_linear(Graph& graph, Args args) {
  const Tensor a = args.tensor(0), b = args.tensor(1), out = args.out();
  const SymInt a_size = args.size(2), b_size = args.size(3);
  const uint32_t call = graph.call_id();
  check_index(a, "index_linear");
  check_index(b, "index_linear");
  check_index(out, "index_linear");
  graph.dispatch({out, graph.status()}, {a, b}, [=](Launch& launch) {
    out.resize(broadcast_shape({&a.shape(), &b.shape()}, "index"));
    const Broadcast shape = broadcast(out.shape(), {&a.shape(), &b.shape()});
    glsl::index_linear::Params params{};
    put(params, shape, out);
    params.repeat_a = shape.repeat[0];
    params.repeat_b = shape.repeat[1];
    params.a_size = static_cast<int32_t>(u32(launch.size(a_size)));
    params.b_size = static_cast<int32_t>(u32(launch.size(b_size)));
    params.call = call;
    u32(int64_t{params.a_size} * params.b_size);  // throws when the joined index does not fit
    launch.params(params);
    launch.shader = &glsl::index_linear::variant();
    launch.over(vec4_groups(out));
    launch.spec.insert(launch.spec.end(), {shape.mode[0], shape.mode[1]});
  });
}

constexpr std::string_view kI64[] = {"i64"};
constexpr Axis kPlaces[] = {{"OUT", kI64}};

}  // namespace

std::span<const Op> index_ops() {
  static constexpr Op kOps[] = {
      {{"index_select", 1, "Tensor x, Tensor index, int dim -> Tensor"},
       index_select,
       glsl::index::axes,
       {"x=T[9,20] index=i32[5]{0..8} dim=0 -> T[5,20]; "
        "x=T[2,9,4] index=i64[5,2]{-9..8} dim=-2 -> T[2,5,2,4]; "
        "x=i64[9,4] index=i32[5]{7..12}|i64[5]{-12..-7} dim=0 -> i64[5,4]; "
        "x=i8[3,9] index=i32[5]{0..8} dim=1 -> i8[3,5]",
        "x=f16[4096,768] index=i32[1024]{0..4095} dim=0 -> f16[1024,768]", reference::index_select}},
      {{"gather", 1, "Tensor x, Tensor index, int dim -> Tensor"},
       gather,
       glsl::index_gather::axes,
       {"x=T[5,9] index=i32[5,3]{0..8}|i64[5,3]{-9..8}|i32[5,3]{8..10} dim=1 -> T[5,3]", "", reference::gather}},
      {{"index_linear", 1, "Tensor a, Tensor b, size a_size, size b_size -> Tensor"},
       index_linear,
       kPlaces,
       {"a=i32[5]{0..6} b=i32[5]{0..8} a_size=7 b_size=9 -> i32[5]; "
        "a=i64[4,1]{-7..6} b=i64[3]{-9..8}|i64[3]{9..11} a_size=7 b_size=9 -> i64[4,3]",
        "", reference::index_linear}},
  };
  return kOps;
}

}  // namespace pumice::engine
