// SPDX-License-Identifier: Apache-2.0
#include "vulkan/features.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "base/text.h"

namespace pumice::engine {
namespace {

// Limits by name, and the lowest value that a test may set.
struct Limit {
  std::string_view name;
  uint64_t floor;
  uint64_t (*get)(const Features&);
  void (*set)(Features&, uint64_t);
};

#define PUMICE_LIMIT(name, floor, member)                                \
  {#name, floor, [](const Features& f) -> uint64_t { return f.member; }, \
   [](Features& f, uint64_t value) { f.member = static_cast<decltype(f.member)>(value); }}
constexpr Limit kLimits[] = {
    PUMICE_LIMIT(max_storage, 16, max_storage_bytes),
    PUMICE_LIMIT(max_allocation, 16, max_allocation_bytes),
    PUMICE_LIMIT(max_invocations, 128, max_invocations),
    PUMICE_LIMIT(max_shared, 16384, max_shared_bytes),
    PUMICE_LIMIT(max_image_3d, 1, max_image_3d),
    PUMICE_LIMIT(max_image_2d, 1, max_image_2d),
    PUMICE_LIMIT(max_waits, 1, max_waits),
    {"max_groups", 1, [](const Features& f) -> uint64_t { return f.max_groups[0]; },
     [](Features& f, uint64_t value) {
       for (uint32_t& groups : f.max_groups) groups = std::min(groups, static_cast<uint32_t>(value));
     }},
};
#undef PUMICE_LIMIT

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

void force_subgroup(Features& features, std::string_view value) {
  uint32_t size = 0;
  if (!read_number(value, size) || (size & (size - 1)) != 0 || size < features.min_subgroup_size ||
      size > features.max_subgroup_size) {
    fail(Code::InvalidArgument, Stage::device, "features",
         "feature 'subgroup=%s': the device takes powers of two from %u to %u", printable(value).c_str(),
         features.min_subgroup_size, features.max_subgroup_size);
  }
  if (size != features.subgroup_size && !features.has(Feature::subgroup_size_control)) {
    fail(Code::InvalidArgument, Stage::device, "features",
         "feature 'subgroup=%u': the device runs subgroups of %u and has no subgroup_size_control to change that", size,
         features.subgroup_size);
  }
  features.subgroup_size = features.min_subgroup_size = features.max_subgroup_size = size;
}

// "16x8x16": puts that shape before all others.
void force_matrix(Features& features, std::string_view value) {
  std::string listed;
  for (auto* shapes : {&features.matrix_f16, &features.matrix_s8}) {
    for (MatrixShape& shape : *shapes) {
      if (shape.m == 0) break;
      const std::string name = format("%ux%ux%u", shape.m, shape.n, shape.k);
      if (name == value) {
        std::swap(shape, shapes->front());
        return;
      }
      listed += (listed.empty() ? "" : ", ") + name;
    }
  }
  fail(Code::InvalidArgument, Stage::device, "features", "feature 'matrix=%s': the device has %s",
       printable(value).c_str(), listed.empty() ? "no cooperative matrices" : listed.c_str());
}

// "1m" is 2^20; nothing where the text is not a number.
std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit(end, static_cast<size_t>(last - end));
  const uint32_t shift = unit == "k" ? 10 : unit == "m" ? 20 : unit == "g" ? 30 : 0;
  if ((shift == 0 && !unit.empty()) || value > (~uint64_t{0} >> shift)) return std::nullopt;
  return value << shift;
}

// Whether `word` is "limit=number"; sets the limit then. Limits only become tighter.
bool tighten(Features& features, std::string_view word) {
  const size_t equals = std::min(word.find('='), word.size());
  const std::string_view name = word.substr(0, equals);
  const std::optional<uint64_t> value = number(word.substr(std::min(equals + 1, word.size())));
  const auto refuse = [&](uint64_t low, uint64_t high, const char* what) {
    fail(Code::InvalidArgument, Stage::device, "features", "feature '%s': %s from %llu to %llu",
         printable(word).c_str(), what, static_cast<unsigned long long>(low), static_cast<unsigned long long>(high));
  };
  if (name == "alignment") {
    const uint64_t least = features.storage_alignment;
    if (!value || !std::has_single_bit(*value) || *value < least || *value > 256)
      refuse(least, 256, "the device takes powers of two");
    features.storage_alignment = *value;
    return true;
  }
  for (const Limit& limit : kLimits) {
    if (name != limit.name) continue;
    const uint64_t most = limit.get(features);
    if (!value || *value < limit.floor || *value > most) refuse(limit.floor, most, "the limit can be");
    limit.set(features, *value);
    return true;
  }
  return false;
}

void set_submit(Features& features, std::string_view value) {
  const std::optional<uint64_t> us = number(value);
  if (!us || *us < 1 || *us > 1'000'000)
    fail(Code::InvalidArgument, Stage::device, "features", "feature 'submit_us=%s': from 1 to 1000000 microseconds",
         printable(value).c_str());
  features.submit_us = static_cast<uint32_t>(*us);
}

void choose_lie(Features& features, std::string_view value) {
  std::string names;
  for (uint32_t i = 0; i < kKernelFamilies; ++i) {
    const auto family = static_cast<KernelFamily>(i);
    if (value == name(family)) features.lie = family;
    names += (i > 0 ? ", " : "") + std::string(name(family));
  }
  if (!features.lie)
    fail(Code::InvalidArgument, Stage::device, "features", "feature 'lie=%s': families of kernels are %s",
         printable(value).c_str(), names.c_str());
}

void choose_storage(Features& features, std::string_view value) {
  if (value != "buffers" && value != "textures")
    fail(Code::InvalidArgument, Stage::device, "features", "feature 'storage=%s': it is 'buffers' or 'textures'",
         printable(value).c_str());
  features.storage = value == "buffers" ? StorageOverride::buffers : StorageOverride::textures;
}

[[noreturn]] void unknown(std::string_view word) {
  std::vector<std::string_view> known;
  for (uint32_t i = 0; i < kNumFeatures; ++i) known.push_back(name(static_cast<Feature>(i)));
  known.insert(known.end(), {"none", "subgroup=", "matrix=", "kernel=", "storage=", "submit_us=", "like_gpu", "staged",
                             "untuned", "untested", "lie=", "alignment="});
  std::vector<std::string> limits;
  for (const Limit& limit : kLimits) limits.push_back(std::string(limit.name) + "=");
  known.insert(known.end(), limits.begin(), limits.end());
  std::string list;
  for (const std::string_view each : known) list += (list.empty() ? "" : ", ") + std::string(each);
  fail(Code::InvalidArgument, Stage::device, "features",
       "unknown feature '%s': did you mean '%s'? Known are %s; '-' before a name takes it away, '+' gives it",
       printable(word).c_str(), std::string(nearest(word, known)).c_str(), list.c_str());
}

uint64_t bit_of(std::string_view word) {
  for (uint32_t i = 0; i < kNumFeatures; ++i) {
    if (word == name(static_cast<Feature>(i))) return bit(static_cast<Feature>(i));
  }
  unknown(word);
}

}  // namespace

Features baseline_features() {
  return Features{};
}

Features apply(Features features, const std::string& text) {
  const uint64_t has = features.bits;
  features.bits &= ~kAskedFor;
  constexpr std::string_view kSubgroup = "subgroup=", kMatrix = "matrix=", kKernel = "kernel=", kStorage = "storage=",
                             kSubmit = "submit_us=", kLie = "lie=";
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view word = trim(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (word.empty()) continue;
    if (word == "none") {
      features.bits = 0;
    } else if (word == "like_gpu") {
      features.cpu = false;
      features.as_if_units = 132;
    } else if (word == "untuned") {
      features.untuned = true;
    } else if (word == "untested") {
      features.untested = true;
    } else if (word.starts_with(kLie)) {
      choose_lie(features, word.substr(kLie.size()));
    } else if (word == "staged") {
      features.staged = true;
    } else if (word.starts_with(kKernel)) {
      features.kernel = word.substr(kKernel.size());
    } else if (word.starts_with(kSubgroup)) {
      force_subgroup(features, word.substr(kSubgroup.size()));
    } else if (word.substr(0, kMatrix.size()) == kMatrix) {
      force_matrix(features, word.substr(kMatrix.size()));
    } else if (word.substr(0, kStorage.size()) == kStorage) {
      choose_storage(features, word.substr(kStorage.size()));
    } else if (word.starts_with(kSubmit)) {
      set_submit(features, word.substr(kSubmit.size()));
    } else if (tighten(features, word)) {
      continue;
    } else if (word.front() == '-') {
      features.bits &= ~bit_of(trim(word.substr(1)));
    } else if (word.front() == '+') {
      features.bits |= bit_of(trim(word.substr(1))) & has;
    } else {
      bit_of(word);  // a known name without a sign would be a guess at what was meant
      fail(Code::InvalidArgument, Stage::device, "features", "feature '%s' needs a sign: '-%s' or '+%s'",
           printable(word).c_str(), printable(word).c_str(), printable(word).c_str());
    }
  }
  return features;
}

}  // namespace pumice::engine
