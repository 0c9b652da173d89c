// SPDX-License-Identifier: Apache-2.0
// Elements between the host's form and the device's: i64 is i32 there, bool is 0 or 1. All else has one form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace pumice::engine {

inline constexpr uint64_t kNoPosition = ~uint64_t{0};

// Both return the position of the first element that has no form on the device, else kNoPosition. Any alignment.
uint64_t narrow_i64(std::byte* out, const std::byte* in, uint64_t count);
uint64_t copy_bool(std::byte* out, const std::byte* in, uint64_t count);
void widen_i32(std::byte* out, const std::byte* in, uint64_t count);
int64_t read_i64(const std::byte* in, uint64_t position);

}  // namespace pumice::engine
