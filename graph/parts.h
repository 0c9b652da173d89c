// SPDX-License-Identifier: Apache-2.0
// Where a recording is cut, so that no submit takes the device for long: other sessions come between, a run can be
// cancelled, and the driver's watchdog stays calm.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "graph/cost.h"

namespace pumice::engine {

// What is planned for one submit.
uint64_t submit_ns(const Features& features);

// A dispatch, a range of its workgroups, or a copy.
struct Piece {
  uint32_t step, dispatch = 0;  // dispatch: index in the node's
  std::array<uint32_t, 3> first = {0, 0, 0}, groups = {0, 0, 0};
  double ns = 0;  // planned
  bool is_cut = false;
};

struct Part {
  std::vector<Piece> pieces;
  double ns = 0;
  uint64_t measured_ns = ~uint64_t{0};  // the shortest of all runs
};

// `factors`: for each step, how much longer it takes than estimate_ns() says; empty: as long.
std::vector<Part> parts(const Graph::Impl& graph, std::span<const Step> steps, const Pace& pace, uint64_t submit_ns,
                        std::span<const double> factors);

// What the measured parts say about the factors by which they were planned.
std::vector<double> measured_factors(std::span<const Part> parts, std::span<const double> factors, size_t num_steps);

// Whether other parts would fit better: some took much longer than a submit may, or all together much shorter. The
// first run does not count as long: a CPU driver compiles kernels in it.
bool fit_badly(std::span<const Part> parts, uint64_t runs, uint64_t submit_ns);

}  // namespace pumice::engine
