// SPDX-License-Identifier: Apache-2.0
// An operator call of a model as a program of its own, with made-up inputs: what the self test runs.
#pragma once

#include <memory>
#include <optional>
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
  // Whether the self test knows the operator: a linear layer, a 2D convolution or attention.
  static bool is_known(const OpCall& call);

  // Attention over states, which keep what was written to them.
  static bool has_caches(const OpCall& call);

  // At the live shapes of the graph; with `most`, at smaller ones: so many rows at most, of a convolution one image of
  // so many rows and columns, of attention so many queries of one head. `graph` and the constants must outlive it.
  // Empty where the call has inputs that cannot be made up.
  static std::optional<OneCall> of(const Graph& graph, uint32_t call, std::optional<int64_t> most,
                                   const ExternalData& external);
  // Makes up the inputs, which all below may read.
  void fill();

  const std::shared_ptr<Program>& program() const { return program_; }
  const OpCall& call() const { return program_->methods[0].ops[0]; }
  // Of new rows, from the first place of the caches to the last, where a call runs so that there is something to read.
  // None of a call without caches.
  std::vector<int64_t> positions() const;
  void set_position(int64_t position);
  // `other`: of other values. Both by turns show a run that wrote nothing.
  std::vector<InputView> inputs(bool other = false) const;

  // Of the operator's signature.
  bool has(std::string_view param) const;
  bool knows(std::string_view param) const;  // whether the signature has it
  const Arg* arg(std::string_view param) const;
  bool is_channels_last() const;  // [batch, height, width, channels]
  bool has_caches() const { return has_caches(call()); }
  int64_t integer(std::string_view param, int64_t otherwise = 0) const;
  double real(std::string_view param, double otherwise = 0) const;
  CallTensor tensor(std::string_view param) const;
  const Shape& out_shape() const { return out_shape_; }
  DType out_dtype() const { return program_->methods[0].values[call().outputs[0]].dtype; }

 private:
  OneCall() = default;
  bool add_value(const Graph::Impl& graph, uint32_t id, const Shape& shape, std::string_view name);
  void add_update(uint32_t state);
  void make_small(std::vector<Shape>& shapes, const std::vector<size_t>& params, int64_t most) const;
  void quantizable(std::vector<std::byte>& bytes, DType dtype) const;
  void crop(Shape& x, Shape& out, int64_t most) const;

  std::shared_ptr<Program> program_;
  Parameters parameters_;
  const ExternalData* external_ = nullptr;
  std::vector<Shape> shapes_;                          // of the values
  std::vector<std::vector<std::byte>> data_, others_;  // of the inputs, by value
  std::optional<uint32_t> first_;                      // the input that is the position of new rows
  Shape out_shape_;
};

}  // namespace pumice::engine
