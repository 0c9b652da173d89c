// SPDX-License-Identifier: Apache-2.0
// How many sums the registers of a GPU hold, by what compilers spill (docs/fleet.md). Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "ops/linear/kernels.h"

namespace pumice::engine {

// Whether it is a GPU of those that hold the least of all: kernels take less at a time there.
bool has_fewest_registers(const Features& features);
// Numbers that an invocation may sum in its registers before compilers spill.
uint32_t most_sums(const Features& features);
// Whether it holds so few that tiles are of 2 x 4 outputs an invocation or less wherever it holds as much beside the
// sums.
bool takes_least_tiles(const Features& features);
// Whether an invocation holds its part of a subgroup's matrices of sums, `sums` numbers for an output.
bool holds_sums(const Tile& tile, const Features& features, uint32_t sums = 1);
// Likewise of a kernel that has tiles of both factors in registers, too.
bool holds_matrices(const Tile& tile, const Features& features, uint32_t sums = 1);
// Whether a lane of a GEMV holds its sums of so many rows of x, times panels of weight rows.
bool holds_pass(uint32_t rows, DType dtype, const Features& features);
// Likewise of two panels.
bool holds_two_panels(uint32_t rows, const LinearShape& s, const Features& features);
// Whether besides the sums of so many rows it holds two tiles of the weight that are on their way; `whole`: all vectors
// of a tile are.
bool holds_two_ahead(uint32_t rows, bool whole, const Features& features);
// Whether it holds all vectors of two tiles of floats that are on their way, where a workgroup has so many lanes.
bool holds_whole_tiles(uint32_t lanes, WeightType weight, const Features& features);
// Whether a lane of cached_attention*.glsl holds a key and a value of the caches, of so many bytes, and its part of the
// sums of so many rows.
bool holds_key_and_value(int64_t bytes, int64_t rows, const Features& features);
// Invocations among which the registers of a GEMV's workgroup may be divided.
uint32_t most_pass_lanes(const Features& features);
// Why registers hold so few of them that a compiler takes seconds to spill the others, as the end of "it ...".
std::string sums_unsupported_reason(const Tile& tile, const Features& features, uint32_t sums = 1);

}  // namespace pumice::engine
