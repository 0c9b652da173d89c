// SPDX-License-Identifier: Apache-2.0
#include "graph/parts.h"

#include <algorithm>
#include <cmath>

#include "graph/encode.h"

namespace pumice::engine {
namespace {

constexpr uint64_t kSubmitNs = 100'000'000;
constexpr double kMostPieces = 1024;  // of a dispatch

class Cutter {
 public:
  Cutter(std::vector<Part>& parts, double submit_ns) : parts_(parts), submit_ns_(submit_ns) { parts_.emplace_back(); }

  void add(const Piece& piece) {
    if (!parts_.back().pieces.empty() && parts_.back().ns + piece.ns > submit_ns_) parts_.emplace_back();
    parts_.back().pieces.push_back(piece);
    parts_.back().ns += piece.ns;
  }

  void add_whole(Piece piece, const Dispatch& dispatch) {
    piece.groups = dispatch.groups;
    add(piece);
  }

  // Kernels number their workgroups by x and y, and by how many there are along x (core/launch.glslh). So the axis to
  // cut is x only where there is no other.
  void add(Piece piece, const Dispatch& dispatch) {
    const size_t axis = dispatch.groups[2] > 1 ? 2 : dispatch.groups[1] > 1 ? 1 : 0;
    const uint32_t all = dispatch.groups[axis];
    const double most = std::min<double>(kMostPieces, all);
    const auto pieces = static_cast<uint32_t>(std::clamp(std::ceil(piece.ns / submit_ns_), 1.0, most));
    piece.groups = dispatch.groups;
    piece.is_cut = pieces > 1;
    const double ns = piece.ns;
    for (uint32_t p = 0; p < pieces; ++p) {
      piece.first[axis] = static_cast<uint32_t>(uint64_t{all} * p / pieces);
      piece.groups[axis] = static_cast<uint32_t>(uint64_t{all} * (p + 1) / pieces) - piece.first[axis];
      piece.ns = ns * piece.groups[axis] / all;
      add(piece);
    }
  }

 private:
  std::vector<Part>& parts_;
  const double submit_ns_;
};

}  // namespace

uint64_t submit_ns(const Features& features) {
  return features.submit_us != 0 ? uint64_t{features.submit_us} * 1000 : kSubmitNs;
}

std::vector<Part> parts(const Graph::Impl& graph, std::span<const Step> steps, const Pace& pace, uint64_t submit_ns,
                        std::span<const double> factors) {
  std::vector<Part> result;
  Cutter cutter(result, static_cast<double>(submit_ns));
  for (uint32_t s = 0; s < steps.size(); ++s) {
    const double factor = factors.empty() ? 1 : factors[s];
    if (steps[s].kind == StepKind::copy)
      cutter.add({.step = s, .ns = factor * estimate_ns(graph, steps[s], nullptr, pace)});
    if (steps[s].kind != StepKind::dispatch) continue;
    const std::span<const Dispatch> all = dispatches(graph, steps[s]);
    for (uint32_t d = 0; d < all.size(); ++d) {
      const Piece piece{.step = s, .dispatch = d, .ns = factor * estimate_ns(graph, steps[s], &all[d], pace)};
      if (steps[s].merged)
        cutter.add_whole(piece, all[d]);
      else
        cutter.add(piece, all[d]);
    }
  }
  return result;
}

std::vector<double> measured_factors(std::span<const Part> parts, std::span<const double> factors, size_t num_steps) {
  std::vector<double> planned(num_steps, 0), measured(num_steps, 0), result(factors.begin(), factors.end());
  result.resize(num_steps, 1);
  for (const Part& part : parts) {
    const double share = part.ns > 0 ? static_cast<double>(part.measured_ns) / part.ns : 1;
    for (const Piece& piece : part.pieces) {
      planned[piece.step] += piece.ns;
      measured[piece.step] += piece.ns * share;
    }
  }
  for (size_t s = 0; s < num_steps; ++s) {
    if (planned[s] > 0) result[s] *= measured[s] / planned[s];
  }
  return result;
}

void MeasuredPace::note(std::span<const Part> parts, std::span<const double> factors, uint64_t runs) {
  constexpr double kLeastNs = 1e6, kMargin = 4;  // of shorter ones the host is a large part
  if (runs < 2) return;                          // kernels are compiled in the first run
  double reckoned = 0, measured = 0;
  for (const Part& part : parts) {
    measured += static_cast<double>(part.measured_ns);
    for (const Piece& piece : part.pieces) reckoned += piece.ns / (factors.empty() ? 1 : factors[piece.step]);
  }
  if (reckoned >= kLeastNs) factor_ = std::clamp(kMargin * measured / reckoned, factor_, 1.0);
}

bool fit_badly(std::span<const Part> parts, uint64_t runs, uint64_t submit_ns) {
  constexpr uint64_t kFewRuns = 4;
  double total = 0, longest = 0;
  for (const Part& part : parts) {
    total += static_cast<double>(part.measured_ns);
    longest = std::max(longest, static_cast<double>(part.measured_ns));
  }
  const double wanted = static_cast<double>(submit_ns);
  return (runs > 1 && longest > 2 * wanted) ||
         (parts.size() > 1 && runs >= kFewRuns && total < static_cast<double>(parts.size()) * wanted / 8);
}

}  // namespace pumice::engine
