// SPDX-License-Identifier: Apache-2.0
// Mistakes of a kernel, planted so that its test must find them. The device is given other data, or another shader,
// than the reference sees: what a kernel would compute that leaves something out.
//   column, group  a column of x that is not small, or the last group of columns, is nothing; of a convolution the last
//                  channel
//   scale, zero    the scales, or the zero points, of the last group of every row are 0; of the last row, where rows
//                  have one. A zero point that is 0 becomes 1
//   bias, act      the bias of the last four columns, or the activation, is left out
//   input:NAME     every fifth element of that tensor, counted from the last, is another one
//   rounding       what is rounded to the nearest whole number is cut off instead
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "tools/kernel_bench/bench_op.h"

namespace pumice::engine::kernel_bench {

inline constexpr std::string_view kInput = "input:", kRounding = "rounding";
inline constexpr std::string_view kDataMistakes[] = {"column", "group", "scale", "zero", "bias", "act"};

// Whether a mistake is one of the data.
bool is_of_data(std::string_view mistake);
// The case with a mistake in its arguments; null where it has nothing in which to plant that one.
std::unique_ptr<CaseData> planted(const CaseData& right, std::string_view mistake);
// Gives the graph's dispatches shaders that cut off; returns how many of them round.
uint32_t plant_rounding(Graph& graph);

// SPIR-V whose roundings to the nearest whole number are cut off towards 0, and how many there were.
struct CutOff {
  std::vector<uint32_t> spirv;
  uint32_t found = 0;
};
CutOff cut_off(std::span<const uint32_t> spirv);

}  // namespace pumice::engine::kernel_bench
