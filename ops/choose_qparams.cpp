// SPDX-License-Identifier: Apache-2.0
// A scale and a zero point for each block of x, from its smallest and largest element, bit for bit what PyTorch's CPU
// operators give (torchao.choose_qparams_affine, quantized_decomposed.choose_qparams*). `mapping` and `steps`:
// QPARAMS_* and STEPS_* of glsl/include/modes.glslh. Results have a dimension for each of x: the number of blocks along
// it.
#include "glsl/choose_qparams.h"

#include <cinttypes>

#include "glsl/choose_qparams_range.h"
#include "glsl/include/modes.glslh"
#include "ops/common/blocks.h"

namespace pumice {
namespace {

constexpr const char* kOp = "choose_qparams";

// Parts of a block, a workgroup each: few enough that one invocation can join them.
struct Parts {
  uint32_t count, size, lanes;
};

Parts parts_of(int64_t block) {
  constexpr int64_t kMost = 256, kElements = 4096;
  const int64_t most = std::min(kMost, (block + kElements - 1) / kElements);
  const int64_t size = ((block + most - 1) / most + 3) / 4 * 4;
  return {u32((block + size - 1) / size), u32(size), block > 256 ? 128u : 32u};
}

void range(Launch& launch, Tensor range, Tensor x, const std::vector<int64_t>& block) {
  const Blocks b = blocks(x.shape(), block, kOp);
  check(b.numel >= 1 && (x.numel() != 0 || b.count == 0), "%s: a block without elements has no range", kOp);
  const Parts parts = parts_of(b.numel);
  range.resize({2 * b.count * parts.count});
  if (b.count == 0) return;
  glsl::choose_qparams_range::Params params{};
  params.blocks = u32(b.count);
  params.parts = parts.count;
  params.part_size = parts.size;
  params.block_size = u32(b.numel);
  params.rank = b.rank;
  std::copy(b.size.begin(), b.size.end(), params.size);
  std::copy(b.block.begin(), b.block.end(), params.block);
  launch.params(params);
  launch.over(uint64_t{params.blocks} * parts.count * parts.lanes, parts.lanes);
  launch.spec.push_back(b.rank == 1 && b.numel % 4 == 0);
  launch.shader = &glsl::choose_qparams_range::variant(glsl::choose_qparams_range::dtype(x.dtype()));
}

void choose_qparams(Graph& graph, Args args) {
  const Tensor x = args.tensor(0), scale = args.out(0), zero = args.out(1);
  const std::vector<int64_t> block = args.ints(1);
  const int64_t mapping = args.integer(2), low = args.integer(3), high = args.integer(4), steps = args.integer(6);
  const auto eps = static_cast<float>(args.real(5));
  check(mapping >= 0 && mapping <= QPARAMS_TENSOR, "%s: mapping %" PRId64 " is not in 0..%u", kOp, mapping,
        QPARAMS_TENSOR);
  check(steps >= 0 && steps <= STEPS_F16_THEN_F32 && (steps == STEPS_F32 || x.dtype() == DType::f16),
        "%s: steps %" PRId64 " with an input of %s", kOp, steps, name(x.dtype()));
  check(low < high && low >= INT32_MIN && high <= INT32_MAX, "%s: %" PRId64 "..%" PRId64 " is no range of integers",
        kOp, low, high);
  const Shader& shader = glsl::choose_qparams::variant(glsl::choose_qparams::scale(scale.dtype()),
                                                       glsl::choose_qparams::point(zero.dtype()));
  const Tensor ranges = graph.scratch(DType::i32, 1);
  graph.dispatch({ranges}, {x}, [=](Launch& launch) { range(launch, ranges, x, block); });
  graph.dispatch({scale, zero}, {ranges}, [=, &shader](Launch& launch) {
    const Blocks b = blocks(x.shape(), block, kOp);
    scale.resize(b.grid);
    zero.resize(b.grid);
    if (b.count == 0) return;
    launch.params(glsl::choose_qparams::Params{u32(b.count), parts_of(b.numel).count, static_cast<float>(low),
                                               static_cast<float>(high), eps});
    launch.over(quads(scale), 64);
    launch.spec.insert(launch.spec.end(), {static_cast<uint32_t>(mapping), static_cast<uint32_t>(steps)});
    launch.shader = &shader;
  });
}

constexpr Axis kAxes[] = {{"DTYPE", glsl::choose_qparams_range::kDTYPE}};

}  // namespace

std::span<const Op> choose_qparams_ops() {
  static constexpr Op kOps[] = {
      {{kOp, 1, "Tensor x, ints block, int mapping, int qmin, int qmax, float eps, int steps -> Tensor, Tensor"},
       choose_qparams,
       kAxes}};
  return kOps;
}

}  // namespace pumice
