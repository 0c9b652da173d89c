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

// What the recordings of a session say about new ones: a device is seldom as slow as the first plan takes it to be.
class MeasuredPace {
 public:
  // After a run of `parts`, planned by `factors`.
  void note(std::span<const Part> parts, std::span<const double> factors, uint64_t runs);
  // For every step of a new recording: four times that of the slowest one, at most 1.
  double factor() const { return factor_ > 0 ? factor_ : 1; }

 private:
  double factor_ = 0;  // 0: none was measured
};

// Whether other parts would fit better: some took much longer than a submit may, or all together much shorter. The
// first run does not count as long: a CPU driver compiles kernels in it. To record takes longer than some submits too
// many, so that a few runs go on with these.
bool fit_badly(std::span<const Part> parts, uint64_t runs, uint64_t submit_ns);

}  // namespace pumice::engine
