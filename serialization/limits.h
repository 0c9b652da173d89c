// SPDX-License-Identifier: Apache-2.0
// Every limit on what a file may ask for; errors quote them by name.
#pragma once

#include <cstdint>

namespace pumice::engine {

struct Limits {
  uint64_t max_program_bytes = uint64_t{64} << 20;
  uint32_t max_depth = 16;
  uint32_t max_tables = 1u << 20;
  uint32_t max_values = 1u << 18, max_ops = 1u << 17, max_constants = 1u << 17, max_methods = 64, max_symbols = 256;
  uint32_t max_exprs = 1u << 18, max_args = 64, max_list = 4096, max_name_bytes = 4096, max_spec_bytes = 1u << 20;
  uint32_t max_rank = 8;
  uint64_t max_elements = uint64_t{1} << 40;  // of one value; a device's own limits are checked later
  uint64_t max_dim = uint64_t{1} << 31;       // exclusive
};

}  // namespace pumice::engine
