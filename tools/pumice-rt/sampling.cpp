// SPDX-License-Identifier: Apache-2.0
#include "tools/pumice-rt/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "tools/pumice-rt/tool.h"

namespace tool {
namespace {

template <class Number>
void require(bool fits, const char* name, Number value, const char* range) {
  std::ostringstream text;
  text << name << " is " << value << ", it must be " << range;
  if (!fits) throw UsageError(text.str());
}

int32_t in_32_bits(int64_t count) {
  return static_cast<int32_t>(std::min<int64_t>(count, std::numeric_limits<int32_t>::max()));
}

}  // namespace

void Sampling::check() const {
  require(temperature >= 0, "temperature", temperature, "0 or more");
  require(top_k >= 0, "top-k", top_k, "0 (all) or more");
  require(top_p > 0 && top_p <= 1, "top-p", top_p, "above 0 and at most 1");
  require(min_p >= 0 && min_p <= 1, "min-p", min_p, "between 0 and 1");
  require(repeat_penalty > 0 && std::isfinite(repeat_penalty), "repeat-penalty", repeat_penalty, "above 0");
  require(repeat_last >= 0, "repeat-last", repeat_last, "0 or more");
}

std::array<float, 4> Sampling::options() const {
  constexpr double kTiny = std::numeric_limits<float>::min(), kMost = std::numeric_limits<float>::max();
  const auto heat = temperature > kMost ? std::numeric_limits<float>::infinity() : static_cast<float>(temperature);
  return {heat, static_cast<float>(std::max(top_p, kTiny)), static_cast<float>(min_p),
          static_cast<float>(std::clamp(repeat_penalty, kTiny, kMost))};
}

std::array<int32_t, 4> Sampling::counts() const {
  return {in_32_bits(top_k), in_32_bits(repeat_last), static_cast<int32_t>(static_cast<uint32_t>(seed)),
          static_cast<int32_t>(static_cast<uint32_t>(seed >> 32))};
}

}  // namespace tool
