// SPDX-License-Identifier: Apache-2.0
// out = x under another shape; no data moves. One size may be -1: it is computed from the others.
#include "ops/conv/channels_last_product.h"
#include "ops/op.h"
#include "ops/reference/moves.h"

namespace pumice::engine {
namespace {

Shape resolve(const Launch& launch, const Tensor& x, const std::vector<SymInt>& sizes) {
  Shape shape;
  int64_t known = 1;
  size_t open = sizes.size();
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t size = launch.size(sizes[d]);
    check(size >= -1 && (size != -1 || open == sizes.size()), "view: size %lld in dimension %zu",
          static_cast<long long>(size), d);
    if (size == -1) open = d;
    shape.push_back(size);
    if (size != -1) check(!__builtin_mul_overflow(known, size, &known), "view: the sizes overflow");
  }
  if (open < shape.size()) {
    check(known > 0, "view: -1 beside a size of 0 can be anything");
    shape[open] = x.numel() / known;
    known *= shape[open];
  }
  check(known == x.numel(), "view: %lld elements seen as %lld", static_cast<long long>(x.numel()),
        static_cast<long long>(known));
  return shape;
}

void view(Graph& graph, Args args) {
  const Tensor x = args.tensor(0), out = args.out();
  const std::vector<SymInt> sizes = args.sizes(1);
  check(x.dtype() == out.dtype(), "view: %s seen as %s", name(x.dtype()), name(out.dtype()));
  if (try_convolution_into(graph, out, x)) return;
  graph.view(out, x, [=](const Launch& launch) { out.resize(resolve(launch, x, sizes)); });
}

}  // namespace

std::span<const Op> view_ops() {
  static constexpr Op kOps[] = {
      {{"view", 1, "Tensor x, sizes shape -> Tensor"},
       view,
       {},
       {"x=T[3,8] shape=[4,-1] -> T[4,6]; x=i64[6] shape=[2,3] -> i64[2,3]", "", reference::view}}};
  return kOps;
}

}  // namespace pumice::engine
