// SPDX-License-Identifier: Apache-2.0
// A call as plain numbers on the host: what OpCases::reference gets. The kernel bench fills it from a case. References
// are in ops/reference/ and in operator files: the operator's definition written plainly in fp64, not its kernel's
// steps.
#pragma once

#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "serialization/program.h"

namespace pumice::engine {

// The numbers that the tensor's stored elements stand for. A double holds every 32-bit integer.
struct HostTensor {
  DType dtype = DType::f32;
  Shape shape = {};
  std::vector<double> values = {};
  int64_t dim(int64_t axis) const { return shape.at(axis < 0 ? shape.size() + axis : axis); }
};

// An argument: tensors, or a number, or a list of integers; none of them where it is absent.
struct HostArgument {
  bool given = false;
  std::vector<HostTensor> tensors = {};  // one, but for a list of tensors
  double number = 0;                     // int, float, bool, operand
  std::vector<int64_t> list = {};
  bool is_tensor() const { return !tensors.empty(); }
};

// An output element in fp64, and the error that a kernel may have in addition to one rounding to the output's dtype;
// kernels of cooperative matrices may have `by_matrices` more, those that add in any order (atomics) `in_any_order`.
struct HostResult {
  double value = 0, error = 0, by_matrices = 0, in_any_order = 0;
};

struct HostOutput {
  DType dtype = DType::f32;
  Shape shape = {};
  std::vector<HostResult> elements = {};  // in order; the reference fills them
  void push(double value, double error = 0) { elements.push_back({value, error}); }
  size_t count() const;  // elements that it must have
};

// What a run must report (Graph::status): one of all the reports that a reference gives. Its outputs are then
// undefined.
struct HostReport {
  uint32_t position;
  int32_t value, limit;  // limit: of an index, or STATUS_*
};

struct HostCall {
  std::vector<HostArgument> args;  // by the index in the signature
  std::vector<HostOutput> outputs;
  std::vector<HostReport> reports = {};

  const HostTensor& tensor(size_t index) const { return args.at(index).tensors.at(0); }
  HostOutput& out(size_t index = 0) { return outputs.at(index); }
  bool has(size_t index) const { return args.at(index).given; }
  double real(size_t index) const { return args.at(index).number; }
  int64_t integer(size_t index) const { return static_cast<int64_t>(args.at(index).number); }
  const std::vector<int64_t>& ints(size_t index) const { return args.at(index).list; }
};

// Results of i64 that 32 bits cannot hold become reports.
void check_i64(HostCall& call);

// Elements of a shape, an element's coordinates, and back.
size_t count_of(const Shape& shape);
Shape coordinates(size_t index, const Shape& shape);
size_t index_at(const Shape& coordinates, const Shape& shape);
// The element of a tensor or number that broadcasting puts at `at`; counted from the last dimension.
double broadcast_to(const HostArgument& side, const Shape& at);
// A dimension as the argument says it, from -rank on.
size_t axis_of(int64_t dim, const Shape& shape);

// As the dtype stores it: floats are rounded, integers keep their low bits, bool is 0 or 1.
double stored(double value, DType dtype);
double wrapped(int64_t value, DType dtype);
// The nearest fp32 number. Sums, products, quotients and roots of fp32 numbers, computed in fp64, are so rounded
// correctly.
inline double in_f32(double value) {
  return static_cast<double>(static_cast<float>(value));
}
double in_f16(double value);

// fp32 errors: a sum of `terms` whose sizes add up to `size`, each added in at most `steps` roundings.
inline double sum_error(double steps, double size) {
  return 0x1p-24 * steps * size;
}
// Sums of random signs stay far below the worst case: no error may be above 2^-18 of the largest result, 32 ulp.
void limit_errors(HostOutput& out);

}  // namespace pumice::engine
