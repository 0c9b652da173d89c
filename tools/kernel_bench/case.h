// SPDX-License-Identifier: Apache-2.0
// One case of kernel_bench: an operator, its sizes and its data. A case has a form as text, which can be read back:
//   linear layers   "op=linear,m=1,n=4096,k=4096"
//   convolutions    "op=conv2d,b=1,c=64,o=64,h=56,w=56,k=3,s=1,p=1,d=1,g=1"
//   other operators "op=softmax T=f16 x=T[3,37] dim=-1", a call (call.h)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "serialization/program.h"

namespace pumice::engine::kernel_bench {

// The numbers in the tensors.
//   equal      weights equal to their zero points, which must add exactly nothing
//   huge       one column of x is huge, and its weights are 0
//   wide       likewise, but not so huge that nothing of the others need be left beside it where x is split
//   special    NaN in the first row of x, +Inf in the second, -Inf in the third
//   low, high  the smallest or the largest numbers of the range
//   alternate  weights are the largest and the smallest number in turn, x is above 0
//   one        each row of x has one column that is not 0: an output is one product, and has no room for errors
//   group      each row of x has one group of columns that is not 0
enum class Values : uint8_t { random, low, high, equal, huge, wide, alternate, special, one, group };
// Zero points: absent, all 0, or random.
enum class Zeros : uint8_t { none, zero, random };

struct Case {
  std::string op = "linear_q4gsw";
  int64_t m = 1, n = 4096, k = 4096;  // convolutions: images, output channels, kernel size
  int64_t group = 32;                 // columns with one scale; 0: the whole row. Convolutions: groups
  int64_t c = 0, h = 0, w = 0;        // sizes of a convolution's x; 0 in other cases
  int64_t stride = 1, pad = 1, dilation = 1;
  DType dtype = DType::f32;               // activations and output
  DType scale = DType::f32;               // scales of the weight
  DType in = DType::i8, out = DType::i8;  // activations and output where these are 8-bit integers
  std::string storage = "buffer";         // one of kStorages in bench_op.h
  bool bias = false;
  Zeros zeros = Zeros::none;
  uint32_t act = 0;  // ACT_* of glsl/include/math/activation.glslh
  Values values = Values::random;
  // The call, without alternatives, where the operator is neither a linear layer nor a convolution.
  std::string call = {};
  bool in_textures() const { return storage == "texture3d" || storage == "textures"; }  // x and the output
  bool weight_in_texture() const { return storage == "texture2d" || storage == "textures"; }
  bool is_conv() const { return c != 0; }
  int64_t out_size(int64_t size) const { return (size + 2 * pad - dilation * (k - 1) - 1 + stride) / stride; }
  int64_t terms() const { return is_conv() ? c / group * k * k : k; }  // products in one output
  int64_t outputs() const { return is_conv() ? m * n * out_size(h) * out_size(w) : m * n; }
  uint64_t macs() const { return static_cast<uint64_t>(outputs()) * static_cast<uint64_t>(terms()); }
  bool operator==(const Case&) const = default;
};

// The default sizes of an operator; for calls, its first case.
Case usual(std::string_view op);
// The case as text; parse() makes the same case of it.
std::string text(const Case& c);
// A short title, "linear_q4gsw m=1 n=4096 k=4096 g=32 f32", followed by what differs from the defaults.
std::string title(const Case& c);
// Cases from text like "m=1|16|128,dtype=f16", one for each combination of the alternatives that '|' separates. Keys
// that are not in the text keep the value of `base`. Throws InvalidArgument with the nearest key or value.
std::vector<Case> parse(std::string_view text, const Case& base = {});

}  // namespace pumice::engine::kernel_bench
