// SPDX-License-Identifier: Apache-2.0
// Cases of the linear family: out[m, n] = act(sum_k x[m, k] * w[n, k] + bias[n]).
#pragma once

#include "tools/kernel_bench/bench_op.h"

namespace pumice::engine::kernel_bench {

enum class Scales : uint8_t { none, row, group };

// How x becomes 8-bit integers: not at all, by parameters chosen for each row, by numbers; or x and the result are i8,
// with numbers, or with parameters given for each row.
enum class Rows : uint8_t { floats, chosen, numbers, bytes, given };

struct LinearScheme {
  std::string_view op;
  Storage weight;  // f32: as x
  Scales scales;
  Rows rows = Rows::floats;
};

std::unique_ptr<Problem> make_linear(const LinearScheme& scheme, const Case& c, uint64_t seed);
std::string refuse_linear(const LinearScheme& scheme, const Case& c);
LinearShape linear_shape(const LinearScheme& scheme, const Case& c);

}  // namespace pumice::engine::kernel_bench
