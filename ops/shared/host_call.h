// SPDX-License-Identifier: Apache-2.0
// A call as plain numbers on the host: what OpCases::reference gets. The kernel bench fills it from a case.
#pragma once

#include <vector>

#include "base/error.h"
#include "serialization/program.h"

namespace pumice::engine {

// The numbers that the tensor's stored elements stand for.
struct HostTensor {
  Shape shape = {};
  std::vector<double> values = {};
  int64_t dim(int64_t axis) const { return shape.at(axis < 0 ? shape.size() + axis : axis); }
};

// An argument: a tensor, or a number, or a list of integers; none of them where it is absent.
struct HostArgument {
  bool given = false, is_tensor = false;
  HostTensor tensor = {};
  double number = 0;  // int, float, bool, operand
  std::vector<int64_t> list = {};
};

// An output element in fp64, and the error that a kernel may have in addition to one rounding to the output's dtype.
struct HostResult {
  double value = 0, error = 0;
};

struct HostCall {
  std::vector<HostArgument> args;  // by the index in the signature
  bool is_half = false;            // tensors of the case's dtype are fp16
  Shape shape;                     // of output 0
  std::vector<HostResult> out;     // of output 0: one for each element; the reference fills it

  const HostTensor& tensor(size_t index) const { return args.at(index).tensor; }
  bool has(size_t index) const { return args.at(index).given; }
  double real(size_t index) const { return args.at(index).number; }
  int64_t integer(size_t index) const { return static_cast<int64_t>(args.at(index).number); }
  const std::vector<int64_t>& ints(size_t index) const { return args.at(index).list; }
};

}  // namespace pumice::engine
