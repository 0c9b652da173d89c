// SPDX-License-Identifier: Apache-2.0
// Concatenates tensors along a dimension: a kernel takes four inputs; more are joined in temporaries first.
#include "glsl/cat.h"

#include "ops/op.h"
#include "ops/reference/moves.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

constexpr size_t kInputs = 4;

// Concatenates at most kInputs tensors.
void join(Graph& graph, Tensor out, std::vector<Tensor> inputs, uint32_t dim) {
  std::vector<Tensor> bindings = inputs;
  bindings.resize(kInputs, inputs.back());  // never read
  graph.dispatch({out}, bindings, [=](Launch& launch) {
    Shape shape = inputs[0].shape();
    shape[dim] = 0;
    int64_t ends[kInputs];
    bool whole_vec4s = true;
    for (size_t k = 0; k < kInputs; ++k) {
      if (k < inputs.size()) {
        Shape expected = inputs[k].shape();
        expected[dim] = shape[dim];
        check(expected == shape, "cat: input %zu differs outside of dimension %u", k, dim);
        shape[dim] += inputs[k].dim(dim);
      }
      ends[k] = product(shape, dim, shape.size());
      whole_vec4s = whole_vec4s && ends[k] % 4 == 0;
    }
    out.resize(shape);
    launch.params(glsl::cat::Params{.count = u32(out.numel()),
                                    .end0 = u32(ends[0]),
                                    .end1 = u32(ends[1]),
                                    .end2 = u32(ends[2]),
                                    .end3 = u32(ends[3])});
    launch.shader = &glsl::cat::variant(bits<glsl::cat::BITS>(out.dtype()));
    launch.over(vec4_groups(out));
    launch.spec.push_back(whole_vec4s);
  });
}

void cat(Graph& graph, Args args) {
  std::vector<Tensor> inputs = args.tensors(0);
  const Tensor out = args.out();
  check(!inputs.empty(), "cat: no input");
  const uint32_t rank = inputs[0].rank(), dim = axis(args.integer(1), rank, "cat");
  for (const Tensor& input : inputs) {
    check(input.dtype() == out.dtype() && input.rank() == rank,
          "cat: an input is %s of rank %u, expected %s of rank %u", name(input.dtype()), input.rank(),
          name(out.dtype()), rank);
  }
  while (inputs.size() > kInputs) {
    std::vector<Tensor> joined;
    for (size_t k = 0; k < inputs.size(); k += kInputs) {
      const std::vector<Tensor> part(inputs.begin() + k, inputs.begin() + std::min(k + kInputs, inputs.size()));
      joined.push_back(part.size() == 1 ? part[0] : graph.scratch(out.dtype(), rank));
      if (part.size() > 1) join(graph, joined.back(), part, dim);
    }
    inputs = joined;
  }
  join(graph, out, inputs, dim);
}

}  // namespace

std::span<const Op> cat_ops() {
  static constexpr Op kOps[] = {{{"cat", 1, "Tensors inputs, int dim -> Tensor"},
                                 cat,
                                 glsl::cat::axes,
                                 {"inputs=T[3,2,5]+T[3,4,5]+T[3,1,5] dim=1 -> T[3,7,5]; "
                                  "inputs=i64[3,2]+i64[3,5] dim=-1 -> i64[3,7]; "
                                  "inputs=i8[8]+i8[4]+i8[3]+i8[5]+i8[4] dim=0 -> i8[24]",
                                  "inputs=f16[32,512,64]+f16[32,512,64] dim=-1 -> f16[32,512,128]", reference::cat}}};
  return kOps;
}

}  // namespace pumice::engine
