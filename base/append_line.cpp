// SPDX-License-Identifier: Apache-2.0
#include "base/append_line.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/log.h"

namespace pumice::engine {

void append_line(const char* variable, const std::string& text) {
  const char* path = std::getenv(variable);
  if (path == nullptr || *path == 0) return;
  const std::string line = text + '\n';
  const int file = ::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ::write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    log(LogLevel::error, "%s: cannot write %s", variable, path);
  if (file >= 0) ::close(file);
}

}  // namespace pumice::engine
