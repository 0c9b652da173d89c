// SPDX-License-Identifier: Apache-2.0
// Kernels by what they need of a driver. One that gives wrong results is avoided by switching that off.
#pragma once

#include <cstdint>

#include "glsl/shader.h"

namespace pumice::engine {

struct Features;  // vulkan/features.h, which includes this

enum class KernelFamily : uint8_t { portable, subgroups, dot, matrix, fragments };
inline constexpr uint32_t kKernelFamilies = 5;

const char* name(KernelFamily family);
// Bits of Feature: those of its capabilities; `fragments` or `fragments_int8` of a kernel that knows the places of
// matrix elements in registers, which has the word in its name; `persistent` of the kernel whose workgroups wait for
// each other. No capability of SPIR-V says these.
uint64_t needs(const Shader& shader);
KernelFamily family_of(const Shader& shader);
// Made for CPU drivers: it reads values by their address, which nothing checks, or has all layers of a decoder without
// matrices, which is slower on GPUs than the kernels of single products.
bool is_for_cpu(const Shader& shader);
// Whether a device of these features has all that the kernel needs.
bool may_run(const Shader& shader, const Features& features);
uint64_t needs(KernelFamily family);  // bits of Feature without which no kernel of the family runs; portable: 0

}  // namespace pumice::engine
