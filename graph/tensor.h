// SPDX-License-Identifier: Apache-2.0
// A value as an operator sees it. On the device every tensor is contiguous, row-major, starts on
// Features::storage_alignment and is readable and writable up to the next multiple of 16 bytes; i64 is stored as i32,
// bool as one byte. A value may also be a texture of quads (Graph::texture): docs/format.md.
#pragma once

#include <cstdint>

#include "serialization/program.h"

namespace pumice::engine {

class Graph;

// A handle: copy it freely. Shapes are *live*: during build they are those at the symbols' hints, during a launch those
// of the call at hand. Only dtype and rank may be relied on outside of a launch when a dimension is symbolic.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Graph* graph, uint32_t id) : graph_(graph), id_(id) {}
  explicit operator bool() const { return graph_ != nullptr; }
  uint32_t id() const { return id_; }
  Graph* graph() const { return graph_; }
  DType dtype() const;
  StorageClass storage() const;
  uint32_t rank() const;
  const Shape& shape() const;
  int64_t dim(int64_t axis) const;  // axis may be negative; throws BadShape outside the rank
  int64_t numel() const;
  uint64_t bytes() const;                                      // on the device, at the live shape
  int64_t numel(int64_t first_axis, int64_t last_axis) const;  // product over [first, last)
  bool is_constant() const;
  // Sets the live shape. For an output that the file declares, it must equal the declared one (BadShape otherwise).
  void resize(const Shape& shape) const;

 private:
  Graph* graph_ = nullptr;
  uint32_t id_ = 0;
};

// Bytes one element takes on the device: f32 4, f16 2, i32 and i64 4, bool, u8 and i8 1.
uint32_t device_bytes(DType dtype);

}  // namespace pumice::engine
