// SPDX-License-Identifier: Apache-2.0
// One case of the kernel lab: an operator, sizes and data. As text, and back: "op=linear,m=1,n=4096,k=4096".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "serialization/program.h"

namespace pumice::lab {

// What the tensors hold. `equal`: weights equal to their zero points, which must add exactly nothing. `huge`: one
// column of x is huge and its weights are 0. `special`: NaN in the first row of x, +Inf in the second, -Inf in the
// third.
enum class Values : uint8_t { random, low, high, equal, huge, alternate, special };
// Zero points: not given, given and all 0, any.
enum class Zeros : uint8_t { none, zero, random };

struct Case {
  std::string op = "linear_q4gsw";
  int64_t m = 1, n = 4096, k = 4096;
  int64_t group = 32;              // columns with one scale; 0: the whole row
  DType dtype = DType::f32;        // of activations and output
  DType scale = DType::f32;        // of a weight's scales
  std::string storage = "buffer";  // kStorages of subject.h
  bool bias = false;
  Zeros zeros = Zeros::none;
  uint32_t act = 0;  // ACT_* of glsl/include/activation.glslh
  Values values = Values::random;
  bool in_textures() const { return storage == "texture3d" || storage == "textures"; }  // x and the output
  bool weight_in_texture() const { return storage == "texture2d" || storage == "textures"; }
  uint64_t macs() const { return static_cast<uint64_t>(m) * static_cast<uint64_t>(n) * static_cast<uint64_t>(k); }
  bool operator==(const Case&) const = default;
};

// The whole case; parse() of it gives the case back.
std::string text(const Case& c);
// For people: "linear_q4gsw m=1 n=4096 k=4096 g=32 f32", and what is not as usual.
std::string title(const Case& c);
// "m=1|16|128,dtype=f16" over `base`: '|' separates alternatives, and every combination is made. Throws InvalidArgument
// with the nearest key or value.
std::vector<Case> parse(std::string_view text, const Case& base = {});
// An operator the lab can make cases of, by name; throws InvalidArgument with the nearest one.
void must_be_known(std::string_view op);

}  // namespace pumice::lab
