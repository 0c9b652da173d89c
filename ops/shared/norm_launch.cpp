// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/norm_launch.h"

#include <algorithm>
#include <bit>

#include "glsl/norm.h"
#include "ops/shared/rows.h"

namespace pumice::engine {
namespace {

// Vec4 groups: 32 registers, and on a CPU driver memory next to it.
uint32_t most_held(const Features& features) {
  return features.cpu ? 16 : 8;
}

// On a GPU: of few rows a vec4 group for each lane, as then a row's time counts; of many as many as a lane can keep,
// for fewer barriers. H200: 197 rows of 384 f16 with 32 and 64 lanes 4.7 and 4.3 us, 1,024 of 768 7.4 and 5.7; 131,072
// of 1,024 with 32 lanes 150 us, where 64 lanes that read the row three times took 193.
uint32_t lanes_of(const Norm& norm, const Features& features) {
  constexpr uint32_t kManyRows = 8192;
  // One SIMD vector, unless a row's elements are added one by one: 32 sums of them are more exact than 8.
  if (features.cpu) return norm.width % 4 == 0 ? 8 : lanes_of_row(norm.width);
  const uint32_t vec4s = norm.width / 4, of_lane = norm.rows < kManyRows ? 1 : most_held(features);
  return std::clamp(std::bit_ceil((vec4s + of_lane - 1) / of_lane), 32U, 128U);
}

}  // namespace

void launch_norm(Launch& launch, const Norm& norm) {
  launch.writes_once = true;
  launch.params(glsl::norm::Params{
      .rows = norm.rows, .width = norm.width, .eps = norm.eps, .inner = norm.inner, .channels = norm.channels});
  launch.shader = &glsl::norm::variant(glsl::norm::dtype(norm.dtype));
  launch_rows(launch, norm.rows, norm.width, lanes_of(norm, launch.features));
  // A row that is a workgroup's own is read once, where its lanes can keep it.
  const uint32_t groups_a_lane = (norm.width / 4 + launch.spec[0] - 1) / launch.spec[0];
  const bool holds = launch.spec[1] == 1 && groups_a_lane <= most_held(launch.features);
  const uint32_t held = holds ? std::bit_ceil(groups_a_lane) : 0;
  launch.spec.insert(launch.spec.end(), {norm.center, norm.weight, norm.bias, norm.grouped, held});
}

}  // namespace pumice::engine
