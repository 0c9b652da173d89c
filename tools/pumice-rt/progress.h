// SPDX-License-Identifier: Apache-2.0
// Progress of commands that go through many rows.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tool {

// Shows progress on stderr when that is a terminal.
class Progress {
 public:
  ~Progress() { clear(); }
  void total(uint64_t rows) { total_ = rows; }
  void step(const std::string& what) {
    ++done_;
    show(what);
  }
  void show(const std::string& what) const {
    if (!shown_) return;
    std::fprintf(stderr, "\r\033[K%llu of %llu  %s", static_cast<unsigned long long>(done_),
                 static_cast<unsigned long long>(total_), what.substr(0, 90).c_str());
    std::fflush(stderr);
  }
  void clear() const {
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }

 private:
  const bool shown_ = isatty(STDERR_FILENO) != 0;
  uint64_t done_ = 0, total_ = 0;
};

// The first event of a command: the device, in a line.
void print_device(const nlohmann::json& event);

}  // namespace tool
