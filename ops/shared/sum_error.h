// SPDX-License-Identifier: Apache-2.0
// How far a sum of products in fp32 may be off from the exact one: in the worst case, and by chance.
//
// An addition rounds its result p, a partial sum, by u |p| at most, u = 2^-24. Adding 0 is exact, so only terms that
// are not 0 count.
//
// Worst case: |p| <= S = sum|t| for every partial sum, so |error| <= u * steps * S, `steps` the roundings on the way of
// a term. At K = 14336 this is a tenth of a percent of S, and S is about 100 times as large as a sum of random signs:
// a whole column may be left out below it.
//
// By chance: a rounding to nearest is as often up as down, and says nothing of the next, so that variances add up. A
// rounding is spread evenly over [-u|p|, u|p|]: its variance is u^2 p^2 / 3 at most. Where the signs of terms are
// random, partial sums walk from 0 to y, and the mean of p^2 over the walk is at most y^2 / 3 + q^2 / 6, where
// q^2 = sum t^2 is the variance of the whole walk (that of a walk whose end is known is a parabola). So the standard
// deviation of the error is below
//   u sqrt(steps / 3) sqrt(y^2 / 3 + q^2 / 6)  <=  u sqrt(steps) (|y| + q) / 3,
// and 6 u sqrt(steps) (|y| + q) is 18 standard deviations: room for a walk that strays three times as far as the mean
// one, and for drivers that sum in any order. The roundings of terms before the sum, relative by `of_terms`, have a
// standard deviation of of_terms q / sqrt(3) together; 6 of these are allowed.
//
// A unit that cuts off where others round is always off towards 0: half an ulp (2^-23) of p on average, which does not
// average out. It adds at least 8 products before it cuts, so steps / 16 of these are added.
//
// By chance is only where signs are random. Terms of one sign, or of alternating signs, of which a lane may get all of
// one sign, have partial sums far above q, or roundings that are all alike: there the worst case is the bound.
#pragma once

#include <algorithm>
#include <cmath>

namespace pumice::engine {

// What the terms of a sum say of its error.
struct TermSums {
  double sum = 0, size = 0, squares = 0, terms = 0;  // of t, |t| and t^2; those that are not 0
  void add(double term) {
    sum += term;
    size += std::fabs(term);
    squares += term * term;
    terms += term != 0 ? 1 : 0;
  }
  double usual() const { return std::fabs(sum) + std::sqrt(squares); }  // |y| + q
};

// The roundings of an algorithm that sums.
struct SumRoundings {
  double per_term = 1, fixed = 0;  // on the way of a term: for each term of the sum, and besides
  double unit = 0x1p-24;           // of each, relative
  double of_terms = 0;             // of each term before it is added, relative
  bool cuts = false;               // towards 0, unit 2^-23

  double steps(double terms) const { return per_term * terms + fixed; }
  // The factor of S, and that of |y| + q.
  double worst(double terms) const { return unit * steps(terms) + of_terms; }
  double by_chance(double terms) const {
    const double at = steps(terms);
    return unit * (6 * std::sqrt(at) + (cuts ? at / 16 : 0)) + 6 / std::sqrt(3.0) * of_terms;
  }
};

// The smaller of the two bounds, for terms of random signs.
inline double sum_error(const SumRoundings& roundings, const TermSums& all) {
  return std::min(roundings.worst(all.terms) * all.size, roundings.by_chance(all.terms) * all.usual());
}

}  // namespace pumice::engine
