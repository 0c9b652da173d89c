// SPDX-License-Identifier: Apache-2.0
#include "ops/reference/sample_token.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "glsl/include/core/modes.glslh"

namespace pumice::engine::reference {
namespace {

using uint = uint32_t;
uint high_product(uint a, uint b) {
  return static_cast<uint>(uint64_t{a} * b >> 32);
}
uint top_bit(uint x) {
  return 31u - static_cast<uint>(std::countl_zero(x));
}
#include "glsl/include/math/fixed_point.glslh"

enum Argument : size_t { kLogits, kOptions, kCounts, kText, kMade, kToken, kPosition, kStep };
enum Option : size_t { kTemperature, kTopP, kMinP, kPenalty };
enum Count : size_t { kTopK, kRepeatLast, kSeedLow, kSeedHigh };

// The options of one row.
struct Row {
  const HostCall& call;
  size_t row;
  float option(size_t index) const { return static_cast<float>(call.tensor(kOptions).values[4 * row + index]); }
  int32_t count(size_t index) const { return static_cast<int32_t>(call.tensor(kCounts).values[4 * row + index]); }
};

// Reports what a run must refuse.
bool is_right(HostCall& call, size_t row) {
  const size_t before = call.reports.size(), rows = call.out(1).count();
  const Row r{call, row};
  const bool options[] = {r.option(kTemperature) >= 0, r.option(kTopP) > 0 && r.option(kTopP) <= 1,
                          r.option(kMinP) >= 0 && r.option(kMinP) <= 1,
                          r.option(kPenalty) > 0 && std::isfinite(r.option(kPenalty))};
  for (size_t i = 0; i < 4; ++i)
    if (!options[i]) call.reports.push_back({static_cast<uint32_t>(4 * row + i), 0, STATUS_BAD_OPTION});
  for (const size_t i : {kTopK, kRepeatLast})
    if (r.count(i) < 0) call.reports.push_back({static_cast<uint32_t>(4 * (rows + row) + i), 0, STATUS_BAD_OPTION});
  return call.reports.size() == before;
}

// Marks the tokens at the last positions.
bool mark_repeated(HostCall& call, size_t row, std::vector<bool>& repeated) {
  const HostTensor &text = call.tensor(kText), &made = call.tensor(kMade);
  const auto position = static_cast<int32_t>(call.tensor(kPosition).values[row]) + 1;
  const auto step = static_cast<int32_t>(call.tensor(kStep).values[0]);
  const int32_t from_text = position - step;
  const auto most_text = static_cast<int32_t>(text.dim(1)), most_made = static_cast<int32_t>(made.dim(1));
  if (step < 0 || step > most_made) {
    call.reports.push_back({0, step, most_made + 1});
    return false;
  }
  if (from_text < 0 || from_text > most_text) {
    call.reports.push_back({static_cast<uint32_t>(row), position, most_text + step + 1});
    return false;
  }
  const size_t before = call.reports.size();
  for (int32_t i = std::max(position - Row{call, row}.count(kRepeatLast), 0); i < position; ++i) {
    const HostTensor& from = i < from_text ? text : made;
    const int32_t at = i < from_text ? i : i - from_text;
    const double id = from.values[row * static_cast<size_t>(from.dim(1)) + static_cast<size_t>(at)];
    const auto tokens = static_cast<int32_t>(repeated.size());
    if (id < 0 || id >= tokens)
      call.reports.push_back({static_cast<uint32_t>(i), static_cast<int32_t>(id), tokens});
    else
      repeated[static_cast<size_t>(id)] = true;
  }
  return call.reports.size() == before;
}

uint bits_of(float x) {
  return std::bit_cast<uint32_t>(x);
}
int exponent_of(float x) {
  return static_cast<int>(bits_of(x) >> 23) - 127;
}
uint mantissa_of(float x) {
  return (bits_of(x) & 0x7fffffu) | 0x800000u;
}

uint octaves_below(float x, float largest, int shift) {
  if (x == largest) return 0;
  const double distance = std::ldexp(static_cast<double>(largest - x), shift);
  return octaves_of(distance < 0x1p31 ? static_cast<uint>(distance) : 0x80000000u);
}

// The ids that top_k, top_p and min_p leave.
std::vector<uint> kept_of(const Row& r, const std::vector<float>& x, float largest) {
  std::vector<uint> kept;
  for (uint id = 0; id < x.size(); ++id)
    if (x[id] > -INFINITY) kept.push_back(id);
  std::stable_sort(kept.begin(), kept.end(), [&](uint a, uint b) { return x[a] > x[b]; });
  if (r.count(kTopK) > 0 && kept.size() > static_cast<size_t>(r.count(kTopK)))
    kept.resize(static_cast<size_t>(r.count(kTopK)));
  if (r.option(kTopP) < 1) {
    uint64_t all = 0, sum = 0;
    for (const uint id : kept) all += weight_of(octaves_below(x[id], largest, 24));
    const auto part = static_cast<uint64_t>(static_cast<double>(r.option(kTopP)) * 0x1p32);
    const uint64_t target = std::max<uint64_t>(1, (all >> 32) * part + ((all & 0xffffffffu) * part >> 32));
    size_t n = 0;
    while (sum < target) sum += weight_of(octaves_below(x[kept[n++]], largest, 24));
    kept.resize(n);
  }
  if (const int e = exponent_of(r.option(kMinP)); e > -127) {
    const uint least = (static_cast<uint>(23 - e) << 24) - (log2_of(mantissa_of(r.option(kMinP))) >> 3);
    std::erase_if(kept, [&](uint id) { return octaves_below(x[id], largest, 24) > least; });
  }
  return kept;
}

uint drawn(const Row& r, const std::vector<float>& x, float largest) {
  int k = exponent_of(r.option(kTemperature));
  if (k < -64) return static_cast<uint>(std::find(x.begin(), x.end(), largest) - x.begin());
  const uint mantissa = k > 64 ? 0x800000u : mantissa_of(r.option(kTemperature));
  k = std::min(k, 64);
  const uint seed = hash_of(static_cast<uint>(r.count(kSeedLow)) + hash_of(static_cast<uint>(r.count(kSeedHigh))));
  const uint position = static_cast<uint>(static_cast<int32_t>(r.call.tensor(kPosition).values[r.row])) + 1u;
  uint best = 0;
  int64_t most = INT64_MIN;
  for (const uint id : kept_of(r, x, largest)) {
    const uint cooled = high_product(octaves_below(x[id], largest, 24 - k), inverse_of(mantissa));
    if (cooled >= 38 * OCTAVE) continue;
    const int64_t score = int64_t{gumbel_of(hash_of(id + hash_of(position + seed)))} - cooled;
    if (score > most || (score == most && id < best)) {
      best = id;
      most = score;
    }
  }
  return best;
}

}  // namespace

void sample_token(HostCall& call) {
  const HostTensor &logits = call.tensor(kLogits), &made = call.tensor(kMade);
  const auto step = static_cast<int64_t>(call.tensor(kStep).values[0]), columns = made.dim(1);
  if (step < 0 || step >= columns)
    call.reports.push_back({0, static_cast<int32_t>(step), static_cast<int32_t>(columns)});
  const auto tokens = static_cast<size_t>(logits.dim(1));
  for (size_t row = 0; row < static_cast<size_t>(logits.dim(0)); ++row) {
    const Row r{call, row};
    std::vector<bool> repeated(tokens, false);
    bool right = is_right(call, row);
    if (r.option(kPenalty) != 1 && r.count(kRepeatLast) != 0) right = mark_repeated(call, row, repeated) && right;
    std::vector<float> x(tokens);
    for (size_t id = 0; id < tokens; ++id) {
      x[id] = static_cast<float>(logits.values[row * tokens + id]);
      if (repeated[id]) x[id] = x[id] > 0 ? x[id] / r.option(kPenalty) : x[id] * r.option(kPenalty);
      if (std::isnan(x[id])) x[id] = -INFINITY;
    }
    const float largest = *std::max_element(x.begin(), x.end());
    if (largest == -INFINITY) call.reports.push_back({static_cast<uint32_t>(row), 0, STATUS_NO_NUMBER});
    const double token = right && largest > -INFINITY ? drawn(r, x, largest) : 0;
    for (int64_t column = 0; column < columns; ++column)
      call.out(0).push(column == step ? token
                                      : made.values[row * static_cast<size_t>(columns) + static_cast<size_t>(column)]);
    call.out(1).push(token);
    call.out(2).push(call.tensor(kPosition).values[row] + 1);
  }
  call.out(3).push(static_cast<double>(step) + 1);
}

}  // namespace pumice::engine::reference
