// SPDX-License-Identifier: Apache-2.0
// What kernel_bench knows of an operator, from its table row: how to make cases of it, with data and what must come
// out.
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

// An argument of the call, by the parameter's name in the operator's signature. Absent ones are `none`.
struct Argument {
  enum class Role : uint8_t { input, inputs, constant, integer, integers, boolean, real, dtype };
  std::string name;
  Role role;
  Data data = {};  // of an input or constant
  int64_t number = 0;
  double real = 0;
  std::vector<int64_t> numbers = {};
  std::vector<Data> list = {};  // of inputs
};

// The value of an output element as it must be, and the sum of the absolute values of its terms. `slack`: what it may
// be off beside.
struct Expected {
  double want = 0, size = 0, slack = 0;
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
  // Of elements `indices` of an output, which count through its shape.
  virtual std::vector<Expected> expect(size_t output, std::span<const uint64_t> indices) const = 0;
  // Whether expect() says anything; without it a test looks at guards, poison and replays alone.
  virtual bool has_reference() const { return true; }
  // What a run must report: one of these, nothing if there are none. Its outputs are then undefined.
  virtual std::vector<HostReport> reports() const { return {}; }
  // What expect() of everything costs, in multiplications.
  virtual uint64_t macs() const { return c_.macs(); }
  // What a run at `m` rows must move at least, and its arithmetic; for figures. 0: as the operator's launch says.
  virtual double bytes(int64_t) const { return 0; }
  virtual double flops(int64_t) const { return 0; }
  virtual Arithmetic arithmetic() const { return Arithmetic::f32; }

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
  // What its kernels are chosen by; empty for operators without those of ops/linear/kernels.h, conv_choice.h.
  bool is_linear() const { return row->cases.linear != nullptr; }
  bool is_conv() const { return row->cases.conv != nullptr; }
  bool is_call() const { return !is_linear() && !is_conv(); }  // cases are calls in text
  LinearShape linear(const Case& c) const;
  ConvFacts conv(const Case& c) const;
  std::unique_ptr<CaseData> make(const Case& c, uint64_t seed) const;
  // Why the case makes no sense for the operator; empty when it does.
  std::string refuse(const Case& c) const;
};

// All operators of the product.
std::span<const BenchOp> bench_ops();
const BenchOp& bench_op(std::string_view op);  // throws InvalidArgument

// A file with the one operator, called by `op` (for a linear's baseline: another name than the case has).
Bytes make_file(const CaseData& case_data, std::string_view op);

}  // namespace pumice::engine::kernel_bench
