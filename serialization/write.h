// SPDX-License-Identifier: Apache-2.0
// A writer of .pumice files for kernel_bench and for tests. Nothing is checked: that is what `read` is for. Models
// are written by python/pumice/format/writer.py.
#pragma once

#include "serialization/gates.h"

namespace pumice::engine {

using Bytes = std::vector<std::byte>;

struct Draft {
  Program program;  // OpCall::op is an index in op_names; `data` is not used
  std::vector<OpName> op_names;
  Bytes constants;  // the section
};

// Appends a constant of these bytes and returns its index.
uint32_t add_constant(Draft& draft, const std::string& key, std::span<const std::byte> bytes);

// The program section, and whole files: a header in front, the constants behind.
Bytes write_program(const Draft& draft);
Bytes write_file(std::span<const std::byte> program, std::span<const std::byte> constants);
Bytes write_file(const Draft& draft);
// Makes the header's two hashes right again, as far as the header points inside of the file.
void reseal(Bytes& file);

}  // namespace pumice::engine
