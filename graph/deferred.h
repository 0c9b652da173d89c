// SPDX-License-Identifier: Apache-2.0
// The layout of a value between two operators, where it depends on the device.
//
// Some kernels write their output in a layout that only kernels of the same kind read: a convolution by cooperative
// matrices writes channels-last groups of 16 bytes, which the next such convolution reads, while every other operator
// reads NCHW. Whether that kernel runs depends on the device, so the file cannot have the layout: the choice is made
// while the graph is built. A value is deferred when its operator adds no node yet. The first operator that reads it
// decides:
//   - an operator that reads tensors as usual: the value is written in the usual layout, by `write` of defer();
//   - an operator of the same kind: it calls write_deferred() and gets the other layout. A later reader of the usual
//     layout gets a copy, by `later`;
//   - an operator that makes the value a part of its own result (the residual sum after a convolution, or a convolution
//     after a product with factors of channels, where it is the only reader): nothing is written for the
//     value itself.
// Fusions that do not depend on the device are patterns of the lowering in Python.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace pumice::engine {

// Defers `out`, an output of the call being built. `write` adds the nodes that write it in the usual layout; it is
// called before the first read, and never where nothing reads the value.
void defer(Graph& graph, Tensor out, std::function<void()> write);
bool is_deferred(const Graph& graph, Tensor value);
// Runs `write`, which adds nodes that write `out` in another layout, as nodes of the call that deferred it. The usual
// layout stays deferred, and is written by `later`.
void write_deferred(Graph& graph, Tensor out, const std::function<void()>& write, std::function<void()> later);

// An argument of an operator call; without a call, an output of the method or a new value of a state.
struct Use {
  uint32_t call = ~0U, argument = 0;
};
// The arguments of calls, outputs of the method and new values of states that are this value; found once for all
// values.
const std::vector<Use>& uses_of(const Graph& graph, Tensor value);
// The operator of a use that is an argument, else "".
std::string reader(const Graph& graph, const Use& use);
// Whether a value of the file has one shape for inputs of any size.
bool has_fixed_shape(const Graph& graph, Tensor value);
// Whether a dimension of a value of the file has one size at every shape of a call; and whether that is 1.
bool is_fixed(const Graph& graph, Tensor value, uint32_t axis);
bool is_always_one(const Graph& graph, Tensor value, uint32_t axis);
// Whether two values of the file have the same shape for inputs of any size.
bool same_shape(const Graph& graph, Tensor a, Tensor b);
// Whether `factors` is [N, C, 1, 1] for an `image` [N, C, H, W], likewise.
bool is_of_channels(const Graph& graph, Tensor factors, Tensor image);

// For the engine: adds the nodes of a deferred tensor; does nothing for others.
void finish_deferred(Graph::Impl& graph, Tensor tensor);

}  // namespace pumice::engine
