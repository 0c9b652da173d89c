// SPDX-License-Identifier: Apache-2.0
// Every shader of the product, for lists; CMake writes the table.
#pragma once

#include <span>
#include <string_view>

#include "glsl/shader.h"

namespace pumice::engine::kernel_bench {

struct ShaderFile {
  std::string_view stem;
  std::span<const Axis> axes;
  std::span<const Shader> variants;
};
std::span<const ShaderFile> shader_files();

}  // namespace pumice::engine::kernel_bench
