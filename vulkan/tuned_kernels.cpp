// SPDX-License-Identifier: Apache-2.0
#include "vulkan/tuned_kernels.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/error.h"
#include "base/siphash.h"
#include "base/text.h"

namespace pumice::engine {
namespace {

constexpr std::string_view kVersion = "version ";
constexpr size_t kMostKernel = 64, kMostProduct = 512;

bool is_word(std::string_view text, size_t most) {
  return !text.empty() && text.size() <= most &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

// What is switched on or off, and the limits, by which kernels are chosen and run: times of other ones say nothing.
std::string id(const Features& f) {
  std::vector<uint64_t> words = {f.bits,
                                 f.subgroup_size,
                                 f.min_subgroup_size,
                                 f.max_subgroup_size,
                                 f.max_invocations,
                                 f.max_shared_bytes,
                                 f.max_groups[0],
                                 f.max_storage_bytes,
                                 f.storage_alignment,
                                 f.units(),
                                 f.cpu};
  for (const MatrixShapes& shapes : {f.matrix_f16, f.matrix_s8})
    for (const MatrixShape& each : shapes) words.insert(words.end(), {each.m, each.n, each.k});
  const std::span bytes(reinterpret_cast<const uint8_t*>(words.data()), words.size() * sizeof(uint64_t));
  return format("-%08x", static_cast<uint32_t>(SipHash({0, 0}).add(bytes).finish()));
}

}  // namespace

std::string_view TunedKernels::find(std::string_view product, int64_t rows) const {
  if (rows < 1) return "";
  const auto power = [](int64_t n) { return std::bit_ceil(static_cast<uint64_t>(n)); };
  std::string_view nearest;
  int64_t distance = INT64_MAX;
  for (auto at = kernels_.lower_bound({std::string(product), 0}); at != kernels_.end(); ++at) {
    const auto& [of, measured] = at->first;
    if (of != product) break;
    const int64_t away = std::max(measured, rows) - std::min(measured, rows);
    if (power(measured) != power(rows) || away > distance) continue;
    nearest = at->second;  // of two as near as each other, that of more rows
    distance = away;
  }
  return nearest;
}

void TunedKernels::set(const std::string& product, int64_t rows, const std::string& kernel) {
  kernels_[{product, rows}] = kernel;
}

std::string TunedKernels::text() const {
  std::string all = std::string(kVersion) + format("%016llx\n", static_cast<unsigned long long>(version_));
  for (const auto& [of, kernel] : kernels_)
    all += of.first + format(" %lld ", static_cast<long long>(of.second)) + kernel + "\n";
  return all;
}

std::shared_ptr<const TunedKernels> TunedKernels::parse(std::string_view text) {
  std::string_view first = cut(text, '\n');
  if (!first.starts_with(kVersion)) return nullptr;
  first.remove_prefix(kVersion.size());
  uint64_t version = 0;
  if (!read_hex(first, version)) return nullptr;
  auto kernels = std::make_shared<TunedKernels>(version);
  while (!text.empty()) {
    std::string_view line = cut(text, '\n');
    const std::string_view product = cut(line, ' '), number = cut(line, ' ');
    int64_t rows = 0;
    if (!is_word(product, kMostProduct) || !is_word(line, kMostKernel) || !read_number(number, rows) || rows < 1 ||
        rows > INT32_MAX)
      return nullptr;
    kernels->set(std::string(product), rows, std::string(line));
  }
  return kernels;
}

TunedFile::TunedFile(const Physical& physical, const Features& features, const std::string& cache_dir)
    : file_(kTunedCache, physical, cache_dir, id(features)) {}

std::shared_ptr<const TunedKernels> TunedFile::load() noexcept try {
  const std::vector<uint8_t> body = file_.load();
  if (body.empty()) return nullptr;
  auto kernels = TunedKernels::parse({reinterpret_cast<const char*>(body.data()), body.size()});
  if (kernels == nullptr) file_.warn(printable(path()) + " has lines that are no tuned kernels");
  return kernels;
} catch (...) {
  file_.warn("out of memory");
  return nullptr;
}

bool TunedFile::save(const TunedKernels& kernels) noexcept try {
  const std::string text = kernels.text();
  return file_.save(std::vector<uint8_t>(text.begin(), text.end()));
} catch (...) {
  file_.warn("out of memory");
  return false;
}

}  // namespace pumice::engine
