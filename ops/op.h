// SPDX-License-Identifier: Apache-2.0
// What an operator file sees: its arguments, and the table row it ends with. See docs/adding_an_op.md.
#pragma once

#include <span>

#include "ops/shared/args.h"
#include "serialization/signature.h"

namespace pumice::engine {

struct Op {
  Signature signature;                  // name, version, parameters
  void (*build)(Graph&, Args);          // checks once, adds nodes
  std::span<const Axis> variants = {};  // of its main shader: the dtypes and storages the partitioner may accept
};

// The operators of every file in ops/, in a fixed order; written by CMake.
std::span<const Op> op_table();
std::span<const Signature> op_signatures();

}  // namespace pumice::engine
