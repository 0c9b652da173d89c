// SPDX-License-Identifier: Apache-2.0
#include "base/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace pumice::engine {
namespace {

// The number in a file; UINT64_MAX where there is none, or the word "max".
uint64_t number_in(const std::string& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? value : UINT64_MAX;
}

// The least limit of a group and the groups around it. In a container, the group's own path may not be mounted.
uint64_t limit_of(const std::string& mount, std::string group, const char* name) {
  uint64_t limit = number_in(mount + "/" + name);
  while (group.size() > 1) {
    limit = std::min(limit, number_in(mount + group + "/" + name));
    group.erase(group.rfind('/'));
  }
  return limit;
}

std::string contents(const char* path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

uint64_t cgroup_limit(const std::string& membership, const std::string& root) {
  uint64_t limit = UINT64_MAX;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // "0::/a/b" (version 2), "5:memory:/a/b" (version 1)
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos || line[second + 1] != '/') continue;
    const std::string kinds = "," + line.substr(first + 1, second - first - 1) + ",", group = line.substr(second + 1);
    if (kinds == ",,") limit = std::min(limit, limit_of(root, group, "memory.max"));
    if (kinds.find(",memory,") != std::string::npos)
      limit = std::min(limit, limit_of(root + "/memory", group, "memory.limit_in_bytes"));
  }
  return limit;
}

uint64_t host_memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  const uint64_t machine =
      pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : UINT64_MAX;
  return std::min(machine, cgroup_limit(contents("/proc/self/cgroup"), "/sys/fs/cgroup"));
}

}  // namespace pumice::engine
