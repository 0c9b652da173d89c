// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/registers.h"

namespace pumice::engine {

// Few on Adreno, and fewer in small subgroups, on Apple's and Intel's GPUs.
uint32_t most_sums(const Features& features) {
  if (!features.few_registers) return 128;
  return features.subgroup_size > 32 ? 64 : 32;
}

bool holds_sums(const Tile& tile, const Features& features, uint32_t sums) {
  return !features.few_registers || sums * tile.tm * tile.tn <= most_sums(features) * features.subgroup_size;
}

// Mesa's compiler for Intel, processor time of a pipeline by how many times the sums are more than what is held: 2
// times 0.1 to 0.4 s, 4 times 0.6 to 3.5 s, 8 times 0.8 to 1.0 s, 16 times 4 to 8 s. No table picks such a kernel.
std::string sums_unsupported_reason(const Tile& tile, const Features& features, uint32_t sums) {
  constexpr uint32_t kTooMany = 4;
  const uint32_t held = most_sums(features), each = sums * tile.tm * tile.tn / features.subgroup_size;
  if (!features.few_registers || each < kTooMany * held) return "";
  return format("keeps %u sums an invocation, where this GPU has registers for about %u", each, held);
}

}  // namespace pumice::engine
