// SPDX-License-Identifier: Apache-2.0
#include "vulkan/kernel_verdicts.h"

#include <algorithm>

#include "base/error.h"
#include "base/siphash.h"
#include "base/text.h"
#include "vulkan/kernel_family.h"

namespace pumice::engine {
namespace {

constexpr size_t kMostKernel = 128, kMostWrong = 256;

bool is_printable(std::string_view text, size_t most, char from) {
  return text.size() <= most && std::all_of(text.begin(), text.end(), [&](char c) { return c >= from && c <= '~'; });
}

}  // namespace

// What a planted lie makes of kernels says nothing of the device, and has a file of its own.
KernelVerdicts::KernelVerdicts(const Physical& physical, const Features& features, const std::string& cache_dir)
    : salt_(features.subgroup_size),
      file_(kVerdictCache, physical, cache_dir, features.lie ? std::string("-lie-") + name(*features.lie) : "") {
  load();
}

void KernelVerdicts::load() noexcept try {
  const std::vector<uint8_t> body = file_.load();
  if (!parse({reinterpret_cast<const char*>(body.data()), body.size()}))
    file_.warn(printable(file_.path()) + " has lines that are no self tests");
} catch (...) {
  file_.warn("out of memory");
}

uint64_t KernelVerdicts::code_of(const Shader& shader) const {
  const auto [known, fresh] = codes_.try_emplace(shader.block);
  if (fresh) known->second = SipHash({salt_, 0}).add(shader.block->bytes()).finish();
  return known->second;
}

std::optional<std::string> KernelVerdicts::find(const Shader& shader) const {
  std::lock_guard lock(mutex_);
  const auto found = verdicts_.find(shader.name);
  if (found == verdicts_.end() || found->second.code != code_of(shader)) return std::nullopt;
  return found->second.wrong;
}

void KernelVerdicts::set(const Shader& shader, const std::string& wrong) {
  std::lock_guard lock(mutex_);
  verdicts_[shader.name] = {code_of(shader), wrong.substr(0, kMostWrong)};
}

void KernelVerdicts::save() noexcept try {
  const std::string all = text();
  file_.save(std::vector<uint8_t>(all.begin(), all.end()));
} catch (...) {
  file_.warn("out of memory");
}

std::string KernelVerdicts::text() const {
  std::lock_guard lock(mutex_);
  std::string all;
  for (const auto& [kernel, verdict] : verdicts_) {
    all += kernel + format(" %016llx", static_cast<unsigned long long>(verdict.code));
    all += (verdict.wrong.empty() ? "" : " " + verdict.wrong) + "\n";
  }
  return all;
}

bool KernelVerdicts::parse(std::string_view text) {
  std::map<std::string, Verdict, std::less<>> read;
  while (!text.empty()) {
    std::string_view line = cut(text, '\n');
    const std::string_view kernel = cut(line, ' '), code = cut(line, ' ');
    uint64_t number = 0;
    if (kernel.empty() || !is_printable(kernel, kMostKernel, '!') || !is_printable(line, kMostWrong, ' ') ||
        !read_hex(code, number))
      return false;
    read[std::string(kernel)] = {number, std::string(line)};
  }
  std::lock_guard lock(mutex_);
  verdicts_ = std::move(read);
  return true;
}

}  // namespace pumice::engine
