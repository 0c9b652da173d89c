// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace pumice::engine {
namespace {

constexpr const char* kNames[] = {"debug", "info", "warning", "error", "off"};

LogLevel level_from_environment() {
  const char* text = std::getenv("PUMICE_LOG");
  if (text == nullptr || *text == 0) return LogLevel::warning;
  for (uint8_t i = 0; i < 5; ++i) {
    if (std::string_view(text) == kNames[i]) return static_cast<LogLevel>(i);
  }
  std::fprintf(stderr, "pumice: warning: PUMICE_LOG is none of debug, info, warning, error, off; warnings are shown\n");
  return LogLevel::warning;
}

struct Log {
  std::atomic<LogLevel> threshold{level_from_environment()};
  std::mutex mutex;
  std::shared_ptr<const LogFunction> function;
};

// Never destroyed: drivers may still speak through the validation callback while the process ends.
Log& the_log() {
  static Log* log = new Log;
  return *log;
}

}  // namespace

const char* name(LogLevel level) {
  const auto index = static_cast<size_t>(level);
  return index < 5 ? kNames[index] : "?";
}

void set_log(LogFunction function, LogLevel threshold) {
  Log& log = the_log();
  std::lock_guard lock(log.mutex);
  log.threshold = function ? threshold : level_from_environment();
  log.function = function ? std::make_shared<const LogFunction>(std::move(function)) : nullptr;
}

bool log_enabled(LogLevel level) {
  return level >= the_log().threshold.load(std::memory_order_relaxed);
}

void log(LogLevel level, const char* text, ...) noexcept {
  if (!log_enabled(level)) return;
  va_list arguments;
  va_start(arguments, text);
  try {
    va_list copy;
    va_copy(copy, arguments);
    const int length = std::vsnprintf(nullptr, 0, text, copy);
    va_end(copy);
    std::vector<char> line(length > 0 ? static_cast<size_t>(length) + 1 : 1);
    if (length > 0) std::vsnprintf(line.data(), line.size(), text, arguments);
    std::shared_ptr<const LogFunction> function;
    {
      std::lock_guard lock(the_log().mutex);
      function = the_log().function;  // called outside of the lock, so it may log or set the log itself
    }
    if (function) {
      (*function)(level, std::string(line.data()));
    } else {
      std::fprintf(stderr, "pumice: %s: %s\n", name(level), line.data());
    }
  } catch (...) {  // a message is not worth a failure
  }
  va_end(arguments);
}

}  // namespace pumice::engine
