// SPDX-License-Identifier: Apache-2.0
// What the operators take, from the axes of their rows: one table for the exporter, the partitioner, `kernel list` and
// docs/ops.md. test/ops/test_closure.py runs all of it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ops/op.h"

namespace pumice::engine {

// By what is accepted, each in the order of the file's dtypes or of the storages:
//   tensors         dtypes of the first tensor that it reads; absent: as follows from the results
//   results         dtypes of its first result; absent: as follows from the first tensor
//   storage         of its first tensor: buffer, texture3d
//   result_storage  of its results
//   weight_storage  of its packed weight: buffer, texture2d; absent: it has none
//   scheme          what is quantized, of linear layers and convolutions; absent: nothing
using Accepted = std::map<std::string, std::vector<std::string>>;
Accepted accepted(const Op& op);

}  // namespace pumice::engine
