// SPDX-License-Identifier: Apache-2.0
// Linear layers with x quantized to 8-bit integers at run time, by parameters chosen from x itself. Shared by the
// operators linear_dq8ca_*: as linear_q4gsw, linear_q8gsw and linear_q8csw, but for x.
//
// per_token 1: a scale and a zero point for each row of x, in the dtype of x as torchao does; 2: for each row, in fp32
// from the scale on (torchao with a scale_dtype of fp32); 0: for all of x, likewise, as quantized_decomposed does.
// mapping: torchao's MappingType (0 asymmetric, 1 symmetric, 2 symmetric without clipping error); eps: the least scale.
//
// The integers and parameters of x are PyTorch's, bit for bit. Error, against fp64 of the same integers and scales:
// that of ops/linear.cpp with K + 28 (the scales of groups and rows round, too). A row of x with an infinity or NaN
// gives NaN, as in PyTorch.
#pragma once

#include "ops/op.h"

namespace pumice::engine {

// Adds the nodes of one such operator. `weight`: its dtype; `group` columns share a scale; `act`: the index of that
// argument, which the others follow. Throws BadGraph where an argument is out of range.
void linear_dynamic_int8(Graph& graph, const Args& args, const char* op, DType weight, int64_t group, uint32_t act);

}  // namespace pumice::engine
