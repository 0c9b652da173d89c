// SPDX-License-Identifier: Apache-2.0
// The shared memory that a pipeline takes, from its SPIR-V and its specialization constants.
#pragma once

#include <cstdint>
#include <span>

namespace pumice::engine::test {

// Bytes of all variables of the storage class Workgroup, as VUID-RuntimeSpirv-Workgroup-06530 counts them. Throws
// std::runtime_error for an operation in an array's length that no kernel has used so far.
uint64_t workgroup_bytes(std::span<const uint32_t> module, std::span<const uint32_t> spec);

}  // namespace pumice::engine::test
