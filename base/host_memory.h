// SPDX-License-Identifier: Apache-2.0
// How much memory this process may use, by the machine and by its control group.
#pragma once

#include <cstdint>
#include <string>

namespace pumice::engine {

// The smaller one of the machine's memory and the limits of the process's control groups (Linux, versions 1 and 2).
uint64_t host_memory_bytes();

// The least limit that the control groups of a process set; UINT64_MAX: none. `membership` is the text of
// /proc/self/cgroup, `root` the folder at which the groups are mounted, "/sys/fs/cgroup".
uint64_t cgroup_limit(const std::string& membership, const std::string& root);

}  // namespace pumice::engine
