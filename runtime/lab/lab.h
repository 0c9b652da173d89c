// SPDX-License-Identifier: Apache-2.0
// The kernel lab: lists, tests and times single operators and their kernels. Standard types only, so that front ends
// (pumice-rt, the Python extension) may include the public interface beside it.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace pumice::lab {

struct Options {
  std::string device, features, cache_dir;  // as in pumice.h
  std::vector<std::string> ops, kernels;    // "" in kernels: what is picked; both empty: all
  std::vector<std::string> cases;           // text as in case.h, on top of the defaults; empty: the table's
  std::string dtype, storage;               // only these of the table's cases
  bool full = false;                        // the table's long list instead of the short one
  uint64_t seed = 1;
  uint32_t replays = 0;       // test: of every case, bit for bit; 0: 100, on a CPU driver fewer of large ones
  std::string mistake;        // test: planted, to see that it is found: value, unwritten, guard, replay
  double seconds = 0.5;       // bench: of warm-up, and at most of timing a row
  uint64_t rotate_bytes = 0;  // bench: of weights to go through; 0: past the device's cache
  bool barrier = true;        // bench: between two replays
  bool regret = false;        // bench: the pick against every kernel
};

// What goes wrong; `code` is a number of runtime/error.h.
struct Failure : std::runtime_error {
  Failure(uint32_t number, const std::string& code_name, const std::string& where, const std::string& what)
      : std::runtime_error(what), code(number), name(code_name), path(where) {}
  uint32_t code;
  std::string name, path;
};

// Rows as JSON text, as they come, on the caller's thread. Every row has "event": "device" first, then for each case
// "begin" and "row", at last "end"; "ceiling" in between when the device is measured. An exception thrown here ends the
// command.
using Report = std::function<void(const std::string& json)>;

// One JSON text: operators, shader variants and what they need, kernels that can be forced and why they cannot run
// here.
std::string list(const Options& options);
// Each case with each kernel against fp64. Returns how many failed.
uint32_t test(const Options& options, const Report& report);
// Times. Returns how many had wrong results (they are not timed).
uint32_t bench(const Options& options, const Report& report);
// The cases of the table, as text.
std::vector<std::string> cases(const Options& options);

}  // namespace pumice::lab
