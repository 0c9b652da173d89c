// SPDX-License-Identifier: Apache-2.0
// One case of kernel_bench: an operator, sizes and data. As text, and back: "op=linear,m=1,n=4096,k=4096".
// Convolutions have other keys: "op=conv2d,b=1,c=64,o=64,h=56,w=56,k=3,s=1,p=1,d=1,g=1". Other operators are calls:
// "op=softmax T=f16 x=T[3,37] dim=-1" (file call.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "serialization/program.h"

namespace pumice::engine::kernel_bench {

// What the tensors hold. `equal`: weights equal to their zero points, which must add exactly nothing. `huge`: one
// column of x is huge and its weights are 0. `special`: NaN in the first row of x, +Inf in the second, -Inf in the
// third.
enum class Values : uint8_t { random, low, high, equal, huge, alternate, special };
// Zero points: not given, given and all 0, any.
enum class Zeros : uint8_t { none, zero, random };

struct Case {
  std::string op = "linear_q4gsw";
  int64_t m = 1, n = 4096, k = 4096;  // of a convolution: images, output channels, window
  int64_t group = 32;                 // columns with one scale; 0: the whole row. Of a convolution: groups
  int64_t c = 0, h = 0, w = 0;        // of a convolution's x; 0: this is none
  int64_t stride = 1, pad = 1, dilation = 1;
  DType dtype = DType::f32;        // of activations and output
  DType scale = DType::f32;        // of a weight's scales
  std::string storage = "buffer";  // kStorages of bench_op.h
  bool bias = false;
  Zeros zeros = Zeros::none;
  uint32_t act = 0;  // ACT_* of glsl/include/math/activation.glslh
  Values values = Values::random;
  std::string call =
      {};  // of operators that are neither products nor convolutions: their arguments, without alternatives
  bool in_textures() const { return storage == "texture3d" || storage == "textures"; }  // x and the output
  bool weight_in_texture() const { return storage == "texture2d" || storage == "textures"; }
  bool is_conv() const { return c != 0; }
  int64_t out_size(int64_t size) const { return (size + 2 * pad - dilation * (k - 1) - 1 + stride) / stride; }
  int64_t terms() const { return is_conv() ? c / group * k * k : k; }  // of an output's sum
  int64_t outputs() const { return is_conv() ? m * n * out_size(h) * out_size(w) : m * n; }
  uint64_t macs() const { return static_cast<uint64_t>(outputs()) * static_cast<uint64_t>(terms()); }
  bool operator==(const Case&) const = default;
};

// The usual sizes for an operator; of one whose cases are calls, its first case.
Case usual(std::string_view op);
// The whole case; parse() of it gives the case back.
std::string text(const Case& c);
// For people: "linear_q4gsw m=1 n=4096 k=4096 g=32 f32", and what is not as usual.
std::string title(const Case& c);
// "m=1|16|128,dtype=f16" over `base`: '|' separates alternatives, and every combination is made; the
// operator comes first, wherever it stands. Throws InvalidArgument with the nearest key or value.
std::vector<Case> parse(std::string_view text, const Case& base = {});

}  // namespace pumice::engine::kernel_bench
