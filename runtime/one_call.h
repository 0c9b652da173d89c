// SPDX-License-Identifier: Apache-2.0
// An operator call of a model as a program of its own, or several that one kernel computes, with made-up inputs: what
// the self test runs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/execute.h"
#include "graph/graph_impl.h"
#include "serialization/constants.h"
#include "serialization/signature.h"

namespace pumice::engine {

// A tensor of the call as a file has it.
struct CallTensor {
  DType dtype = DType::f32;
  Shape shape = {};
  std::span<const std::byte> bytes = {};
  int64_t dim(int64_t axis) const { return shape.at(axis < 0 ? shape.size() + axis : axis); }
  double at(int64_t index) const;  // of i4: of a matrix [rows, columns]
  std::vector<float> values() const;
};

class OneCall {
 public:
  // Whether the self test knows the operator: a matrix product, a 2D convolution or attention.
  static bool is_known(const OpCall& call);

  // Attention over states, which keep what was written to them.
  static bool has_caches(const OpCall& call);

  // `calls`: of the graph's method, in their order. At the live shapes of the graph; with `most`, which is for one
  // call, at smaller ones: so many rows at most, of a convolution one image of so many rows and columns, of attention
  // so many queries of one head. `graph` and the constants must outlive it. Empty where there are inputs that cannot be
  // made up.
  static std::optional<OneCall> of(const Graph& graph, std::span<const uint32_t> calls, std::optional<int64_t> most,
                                   const ExternalData& external);
  // Copies the constants, which are then not used any more; none of them may be external.
  void keep_constants();
  // Makes up the inputs, which all below may read.
  void fill();

  const std::shared_ptr<Program>& program() const { return program_; }
  // The first one, which all below is of.
  const OpCall& call() const { return program_->methods[0].ops[0]; }
  size_t calls() const { return program_->methods[0].ops.size(); }
  std::string_view op(size_t index) const;  // the name of the operator
  // Of new rows, from the first place of the caches to the last, where a call runs so that there is something to read.
  // None of a call without caches.
  std::vector<int64_t> positions() const;
  void set_position(int64_t position);
  // `other`: of other values. Both by turns show a run that wrote nothing.
  std::vector<InputView> inputs(bool other = false) const;

  // Of the operator's signature; `of`: which call.
  bool has(std::string_view param) const;
  bool knows(std::string_view param) const;  // whether the signature has it
  const Arg* arg(std::string_view param, size_t of = 0) const;
  bool is_channels_last() const;  // [batch, height, width, channels]
  bool has_caches() const { return has_caches(call()); }
  int64_t integer(std::string_view param, int64_t otherwise = 0) const;
  double real(std::string_view param, double otherwise = 0, size_t of = 0) const;
  CallTensor tensor(std::string_view param, size_t of = 0) const;
  const Shape& result_shape(size_t of) const { return shapes_[program_->methods[0].ops[of].outputs[0]]; }
  // Of the last call, then of those before it that others read, too.
  size_t outputs() const { return program_->methods[0].outputs.size(); }
  const Shape& out_shape(size_t output = 0) const { return shapes_[program_->methods[0].outputs[output]]; }
  DType out_dtype(size_t output = 0) const;

 private:
  using Made = std::map<uint32_t, uint32_t>;  // results of calls that were added: of the graph, and here
  OneCall() = default;
  bool add_call(const Graph::Impl& graph, uint32_t index, std::optional<int64_t> most, Made& made);
  bool add_value(const Graph::Impl& graph, uint32_t id, const Shape& shape, std::string_view name);
  void add_result(const Graph::Impl& graph, uint32_t id, const Shape& shape);
  void add_outputs(const Graph::Impl& graph, std::span<const uint32_t> calls, const Made& made);
  void add_update(uint32_t state);
  void quantizable(std::vector<std::byte>& bytes, DType dtype) const;

  std::shared_ptr<Program> program_;
  std::vector<Parameters> parameters_;  // of each call
  const ExternalData* external_ = nullptr;
  std::shared_ptr<std::vector<std::byte>> constants_;  // if they were copied
  std::vector<Shape> shapes_;                          // of the values
  std::vector<std::vector<std::byte>> data_, others_;  // of the inputs, by value
  std::optional<uint32_t> first_;                      // the input that is the position of new rows
};

}  // namespace pumice::engine
