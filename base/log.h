// SPDX-License-Identifier: Apache-2.0
// Messages beside errors: warnings go to stderr unless a caller takes them. PUMICE_LOG=debug|info|warning|error|off.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"

namespace pumice::engine {

enum class LogLevel : uint8_t { debug, info, warning, error, off };

const char* name(LogLevel level);

using LogFunction = std::function<void(LogLevel, const std::string&)>;

// Takes every message from `threshold` on; an empty function brings stderr and PUMICE_LOG back. A message that the
// function throws on is dropped. Safe from every thread.
void set_log(LogFunction function, LogLevel threshold = LogLevel::warning);

bool log_enabled(LogLevel level);
void log(LogLevel level, const char* text, ...) noexcept PUMICE_PRINTF(2, 3);

}  // namespace pumice::engine
