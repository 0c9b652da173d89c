// SPDX-License-Identifier: Apache-2.0
// An operator as kernel_bench sees it, read from its table row: its cases, their data and the expected results.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/conv/kernels.h"
#include "ops/linear/kernels.h"
#include "ops/op.h"
#include "ops/shared/host_call.h"
#include "ops/shared/sum_error.h"
#include "serialization/write.h"
#include "tools/kernel_bench/case.h"

namespace pumice::engine::kernel_bench {

// Which tensors of a case are textures: none, x and the output, the packed weight, or all of these.
inline constexpr std::string_view kStorages[] = {"buffer", "texture3d", "texture2d", "textures"};

// A tensor as the file stores it; each row of i4 begins at a byte.
struct Data {
  DType dtype = DType::f32;
  Shape shape = {};
  Bytes bytes = {};
};

// An argument of the call, by the parameter's name in the operator's signature. Absent ones are `none`.
struct Argument {
  enum class Role : uint8_t { input, inputs, constant, integer, integers, boolean, real, dtype };
  std::string name;
  Role role;
  Data data = {};  // if it is an input or a constant
  int64_t number = 0;
  double real = 0;
  std::vector<int64_t> numbers = {};
  std::vector<Data> list = {};  // if it is a list of inputs
};

// The expected value of an output element, and what its error bound is made of (ops/shared/sum_error.h): the number of
// terms that are not 0, S = sum|t|, |y| + q, infinite where errors are not by chance, and `exact`, |sum| + |bias|, what
// kernels round that sum whole numbers exactly. `slack`: an error that is allowed in addition, `by_matrices` to kernels
// of cooperative matrices, and `in_any_order` to those whose sums have another order in every run. `reach`: of a
// linear, max|x| * sum|w|, and of real weights sum|x| * max|w|.
struct Expected {
  double want = 0, terms = 0, size = 0, usual = INFINITY, exact = 0, slack = 0, by_matrices = 0, in_any_order = 0,
         reach = 0;
};

// What a kernel may be off: the roundings of its sums, how much of `reach`, whether it has cooperative matrices, and
// whether it adds in any order.
struct Bound {
  SumRoundings sum = {.per_term = 0};
  double reach = 0;
  bool matrices = false, any_order = false;
};

struct Output {
  DType dtype;
  Shape shape;
};

// A case with its data.
class CaseData {
 public:
  explicit CaseData(const Case& c) : c_(c) {}
  virtual ~CaseData() = default;
  const Case& shape() const { return c_; }
  virtual std::vector<Argument> arguments() const = 0;
  virtual std::vector<Output> outputs() const = 0;
  // Whether the first dimension of inputs and outputs is a symbol, 1..c.m.
  virtual bool has_rows() const { return true; }
  // The expected values of some elements of an output; `indices` are flat, in PyTorch order.
  virtual std::vector<Expected> expect(size_t output, std::span<const uint64_t> indices) const = 0;
  // Whether expect() gives values; without them a test checks guards, poison and replays alone.
  virtual bool has_reference() const { return true; }
  // What a run must report: one of these, nothing if there are none. Its outputs are then undefined.
  virtual std::vector<HostReport> reports() const { return {}; }
  // The cost of expecting every element, in multiplications.
  virtual uint64_t macs() const { return c_.macs(); }
  // The bytes that a run at `m` rows must read and write at least, and its operations, for GB/s and TFLOP/s. 0: use the
  // numbers of the operator's launch.
  virtual double bytes(int64_t) const { return 0; }
  virtual double flops(int64_t) const { return 0; }

 protected:
  Case c_;
};

// What the results of an operator's cases are compared with, for people. "guards only": with nothing.
inline std::string compared(bool has_reference) {
  return has_reference ? "fp64 reference" : "guards only";
}

// The inputs of the call, in the order of the file.
std::vector<Data> inputs_of(const CaseData& case_data);

struct BenchOp {
  std::string_view op;
  const Op* row;
  bool is_linear() const { return row->cases.linear != nullptr; }
  bool is_conv() const { return row->cases.conv != nullptr; }
  bool is_call() const { return !is_linear() && !is_conv(); }  // its cases are calls, as text
  // The sizes by which its kernel is chosen; for linear and conv operators only.
  LinearShape linear(const Case& c) const;
  ConvFacts conv(const Case& c) const;
  std::unique_ptr<CaseData> make(const Case& c, uint64_t seed) const;
  // Why the case makes no sense for the operator; empty when it does.
  std::string refuse(const Case& c) const;
};

// All operators of the product.
std::span<const BenchOp> bench_ops();
const BenchOp& bench_op(std::string_view op);  // throws InvalidArgument

// A .pumice file with one call of the operator `op`: that of the case, or the baseline that is compared with it.
Bytes make_file(const CaseData& case_data, std::string_view op);

}  // namespace pumice::engine::kernel_bench
