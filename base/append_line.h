// SPDX-License-Identifier: Apache-2.0
// For tests of several processes: what happened in each of them, in one file that a variable of the environment names.
#pragma once

#include <string>

namespace pumice::engine {

// Adds a line in one write to the file that `variable` names; does nothing where it is not set. Safe from every thread.
void append_line(const char* variable, const std::string& text);

}  // namespace pumice::engine
