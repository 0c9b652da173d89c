// SPDX-License-Identifier: Apache-2.0
// Kernels by what they need of a driver. One that gives wrong results is avoided by switching that off.
#pragma once

#include <cstdint>

#include "glsl/shader.h"

namespace pumice::engine {

enum class KernelFamily : uint8_t { portable, subgroups, dot, matrix, fragments };
inline constexpr uint32_t kKernelFamilies = 5;

const char* name(KernelFamily family);
// Bits of Feature: those of its capabilities, and `fragments` or `fragments_int8` of a kernel that knows the places of
// matrix elements in registers. No capability of SPIR-V says so; such a kernel has the word in its name.
uint64_t needs(const Shader& shader);
KernelFamily family_of(const Shader& shader);
// Made for CPU drivers: it reads values by their address, which nothing checks.
bool is_for_cpu(const Shader& shader);
uint64_t needs(KernelFamily family);  // bits of Feature without which no kernel of the family runs; portable: 0

}  // namespace pumice::engine
