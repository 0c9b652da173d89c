// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/product_weight.h"

#include <string>
#include <vector>

#include "base/divide.h"
#include "glsl/conv2d_pack.h"
#include "glsl/conv2d_pack_fragments.h"
#include "glsl/conv2d_row_sums.h"
#include "glsl/conv2d_row_units.h"
#include "ops/linear/packed_weight.h"

namespace pumice::engine {
namespace {

constexpr int64_t kChunkGroups = 4, kTileGroups = 8;

// Two convolutions may share a weight whose taps they read differently.
std::string name_of(const char* what, const ConvProduct& p) {
  return std::string(what) + " " + std::to_string(p.taps) + " " + std::to_string(p.row_taps);
}

}  // namespace

Tensor pack_chunks(Graph& graph, const ConvProduct& p) {
  const int64_t chunks = ceil_div(p.taps * p.pixel_groups, kChunkGroups), count = chunks * p.channels * kChunkGroups;
  return graph.prepack(name_of("conv2d_pack", p), {p.weight}, DType::i32, {count * 4}, [=](Launch& launch) {
    using namespace glsl::conv2d_pack;
    launch.over(u32(count));
    launch.params(
        Params{u32(p.channels), u32(p.columns), u32(p.taps), u32(p.row_taps), u32(p.pixel_groups), u32(count)});
    launch.shader = &variant(p.integers ? WEIGHT::i8 : WEIGHT::f16);
  });
}

Tensor pack_fragments(Graph& graph, const ConvProduct& p) {
  const int64_t tiles = ceil_div(p.taps * p.pixel_groups, kTileGroups), parts = p.units ? 2 : 1;
  const int64_t count = row_panels(u32(p.channels)) * tiles * 128;  // steps of lanes
  std::vector<Tensor> inputs = {p.weight};
  if (p.units) inputs.push_back(p.units);
  const std::string what = name_of("conv2d_pack_fragments", p);
  return graph.prepack(what, inputs, DType::i32, {count * parts * 4}, [=](Launch& launch) {
    using namespace glsl::conv2d_pack_fragments;
    launch.over(u32(count));
    launch.params(Params{u32(p.channels), u32(p.columns), u32(p.taps), u32(p.row_taps), u32(p.pixel_groups), u32(tiles),
                         u32(count)});
    launch.shader = &variant(p.units ? WEIGHT::f32 : p.integers ? WEIGHT::i8 : WEIGHT::f16);
  });
}

Tensor row_sums(Graph& graph, const ConvProduct& p) {
  return graph.prepack("conv2d_row_sums", {p.weight}, DType::i32, {p.channels}, [=](Launch& launch) {
    launch.over(u32(p.channels));
    launch.params(glsl::conv2d_row_sums::Params{u32(p.channels), u32(p.weight.dim(1))});
    launch.shader = &glsl::conv2d_row_sums::variant();
  });
}

Tensor row_units(Graph& graph, const ConvProduct& p) {
  return graph.prepack("conv2d_row_units", {p.weight}, DType::f32, {p.channels}, [=](Launch& launch) {
    launch.over_groups(static_cast<uint64_t>(p.channels), 64);
    launch.params(glsl::conv2d_row_units::Params{u32(p.channels), u32(p.weight.dim(1))});
    launch.shader = &glsl::conv2d_row_units::variant();
  });
}

}  // namespace pumice::engine
