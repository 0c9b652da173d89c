// SPDX-License-Identifier: Apache-2.0
// Concatenates tensors along a dimension: a kernel takes four inputs; more are joined in temporaries first.
#include "glsl/cat.h"

#include <algorithm>
#include <array>

#include "graph/boxes.h"
#include "ops/op.h"
#include "ops/reference/moves.h"
#include "ops/shared/shape.h"

namespace pumice::engine {
namespace {

constexpr size_t kInputs = 4;

// Whether each input is a part of the output in one piece, and a binding can begin where it does.
bool can_append(const Launch& launch, const std::vector<Tensor>& inputs, int64_t rows) {
  uint64_t begin = 0, all = 0;
  for (const Tensor& input : inputs) {
    all |= begin;
    begin += input.bytes();
  }
  return rows == 1 && all % static_cast<uint64_t>(binding_alignment(launch.features)) == 0;
}

// One after another, into an output that is larger than a binding.
void append(Launch& launch, const Tensor& out, const std::vector<Tensor>& inputs) {
  const int64_t element = device_bytes(out.dtype());
  int64_t begin = 0;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const int64_t elements = inputs[k].numel();
    if (elements == 0) continue;
    std::array<Touched, 2> touched;
    for (Touched& each : touched) each = {static_cast<uint64_t>(element), inputs[k].bytes(), {element}};
    touched[0].total = out.bytes();
    touched[0].base = begin;
    begin += elements * element;
    for (const Box& box : boxes({elements}, touched, launch.features)) {
      const uint32_t count = u32(box.count[0]);
      const std::vector<BindingRange> ranges = ranges_of(touched, box, launch.features);
      launch.binding_ranges.assign(kInputs + 1, {0, 16});  // of the other inputs nothing is read
      launch.binding_ranges[0] = ranges[0];
      launch.binding_ranges[k + 1] = ranges[1];
      glsl::cat::Params params{.count = count, .end0 = count, .end1 = count, .end2 = count, .end3 = count};
      if (k > 0) params.end0 = 0;
      if (k > 1) params.end1 = 0;
      if (k > 2) params.end2 = 0;
      launch.params(params);
      launch.shader = &glsl::cat::variant(bits<glsl::cat::BITS>(out.dtype()));
      launch.over((count + 3) / 4);
      launch.spec.push_back(false);
      launch.next_dispatch();
    }
  }
}

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
    if (out.bytes() > launch.features.max_storage_bytes && can_append(launch, inputs, product(shape, 0, dim)))
      return append(launch, out, inputs);
    launch.params(glsl::cat::Params{.count = u32(out.numel()),
                                    .end0 = u32(ends[0]),
                                    .end1 = u32(ends[1]),
                                    .end2 = u32(ends[2]),
                                    .end3 = u32(ends[3])});
    launch.shader = &glsl::cat::variant(bits<glsl::cat::BITS>(out.dtype()));
    launch.over(vec4_groups(out));
    launch.spec.push_back(whole_vec4s);
    launch.outer = dim;
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
