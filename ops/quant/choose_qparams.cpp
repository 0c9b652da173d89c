// SPDX-License-Identifier: Apache-2.0
#include "ops/quant/choose_qparams.h"

#include "glsl/choose_qparams.h"
#include "glsl/choose_qparams_range.h"
#include "ops/quant/blocks.h"
#include "ops/shared/textures.h"

namespace pumice::engine {
namespace {

constexpr const char* kOp = "choose_qparams";

// A quantization block divided among workgroups: so few slices that one invocation can combine their ranges.
struct Slices {
  uint32_t count, size, lanes;
};

Slices slices_of(int64_t block) {
  constexpr int64_t kMost = 256, kElements = 4096;
  const int64_t most = std::min(kMost, (block + kElements - 1) / kElements);
  const int64_t size = ((block + most - 1) / most + 3) / 4 * 4;
  return {u32((block + size - 1) / size), u32(size), block > 256 ? 128u : 32u};
}

void range(Launch& launch, Tensor range, Tensor x, const std::vector<int64_t>& block) {
  const QuantBlocks b = quant_blocks(x.shape(), block, kOp);
  check(b.numel >= 1 && (x.numel() != 0 || b.count == 0), "%s: a block without elements has no range", kOp);
  const Slices slices = slices_of(b.numel);
  range.resize({2 * b.count * slices.count});
  if (b.count == 0) return;
  glsl::choose_qparams_range::Params params{};
  params.blocks = u32(b.count);
  params.parts = slices.count;
  params.part_size = slices.size;
  params.block_size = u32(b.numel);
  params.rank = b.rank;
  std::copy(b.size.begin(), b.size.end(), params.size);
  std::copy(b.block.begin(), b.block.end(), params.block);
  const Texels texels = texels_of(x);
  const bool texture = x.storage() == StorageType::texture3d;
  params.columns = texels.columns;
  params.height = texels.height;
  launch.params(params);
  launch.over(uint64_t{params.blocks} * slices.count * slices.lanes, slices.lanes);
  launch.spec.push_back(b.rank == 1 && b.numel % 4 == 0 && (!texture || texels.columns % 4 == 0));
  launch.shader = &glsl::choose_qparams_range::variant(glsl::choose_qparams_range::dtype(x.dtype()),
                                                       static_cast<glsl::choose_qparams_range::X_STORAGE>(texture));
}

}  // namespace

void choose_qparams(Graph& graph, Tensor scale, Tensor zero, Tensor x, const std::vector<int64_t>& block,
                    const QParamsRule& rule) {
  const Shader& shader = glsl::choose_qparams::variant(glsl::choose_qparams::scale(scale.dtype()),
                                                       glsl::choose_qparams::point(zero.dtype()));
  const Tensor ranges = graph.scratch(DType::i32, 1);
  if (graph.in_texture(x)) x = graph.texture(x);
  graph.dispatch({ranges}, {x}, [=](Launch& launch) { range(launch, ranges, x, block); });
  graph.dispatch({scale, zero}, {ranges}, [=, &shader](Launch& launch) {
    const QuantBlocks b = quant_blocks(x.shape(), block, kOp);
    scale.resize(b.grid);
    zero.resize(b.grid);
    if (b.count == 0) return;
    launch.params(glsl::choose_qparams::Params{u32(b.count), slices_of(b.numel).count, static_cast<float>(rule.low),
                                               static_cast<float>(rule.high), rule.eps});
    launch.over(vec4_groups(scale), 64);
    launch.spec.insert(launch.spec.end(), {rule.mapping, rule.steps});
    launch.shader = &shader;
  });
}

}  // namespace pumice::engine
