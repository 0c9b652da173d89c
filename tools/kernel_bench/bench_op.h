// SPDX-License-Identifier: Apache-2.0
// What kernel_bench knows of an operator beyond its table row: data for its parameters, and what comes out. To add one,
// see the rows of subject.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/conv/conv_choice.h"
#include "ops/linear/linear_kernel.h"
#include "serialization/write.h"
#include "tools/kernel_bench/case.h"
#include "tools/kernel_bench/ceilings.h"

namespace pumice::engine::kernel_bench {

// Of x and the output, of the packed weight, of both.
inline constexpr std::string_view kStorages[] = {"buffer", "texture3d", "texture2d", "textures"};

// A tensor as a file holds it; i4 rows end on a byte.
struct Data {
  DType dtype = DType::f32;
  Shape shape = {};
  Bytes bytes = {};
};

// What is given for a parameter of the operator's signature, by the parameter's name. Absent ones are `none`.
struct Given {
  enum class Role : uint8_t { input, constant, integer, integers, boolean, real };
  std::string name;
  Role role;
  Data data = {};  // of an input or constant; the first dimension of an input is m
  int64_t number = 0;
  double real = 0;
  std::vector<int64_t> numbers = {};
};

// The exact value of an output element, computed in fp64 from the numbers that the file holds, and the sum of the
// absolute values of its terms. `slack`: what its activation function may add to the error.
struct Expected {
  double want = 0, size = 0, slack = 0;
};

// A case with its data.
class Problem {
 public:
  explicit Problem(const Case& c) : c_(c) {}
  virtual ~Problem() = default;
  const Case& shape() const { return c_; }
  virtual std::vector<Given> given() const = 0;
  virtual DType out_dtype() const = 0;
  virtual Shape out_shape() const = 0;
  // Of the output elements `indices`, which count through out_shape().
  virtual std::vector<Expected> expect(std::span<const uint64_t> indices) const = 0;
  // What a run at `m` rows must move at least, and its arithmetic; for figures.
  virtual double bytes(int64_t m) const = 0;
  virtual double flops(int64_t m) const = 0;
  virtual Arithmetic arithmetic() const = 0;

 protected:
  Case c_;
};

struct Subject {
  std::string_view op;
  std::unique_ptr<Problem> (*make)(const Case&, uint64_t seed);
  // Why the case makes no sense for the operator; empty when it does.
  std::string (*refuse)(const Case&);
  // What its kernels are chosen by; null for operators without those of ops/linear/linear_kernel.h, conv_choice.h.
  LinearShape (*linear)(const Case&) = nullptr;
  ConvFacts (*conv)(const Case&) = nullptr;
};

std::span<const Subject> subjects();
const Subject& subject(std::string_view op);  // throws InvalidArgument

// A file with the one operator, called by `op` (for a linear's baseline: another name than the case has); m is a symbol
// in 1..c.m.
Bytes make_file(const Problem& problem, std::string_view op);

}  // namespace pumice::engine::kernel_bench
