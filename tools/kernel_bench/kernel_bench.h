// SPDX-License-Identifier: Apache-2.0
// kernel_bench: lists, tests and times single operators and their kernels. Standard types only, so that front ends
// (pumice-rt, the Python extension) may include the public interface beside it.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace pumice::engine::kernel_bench {

struct Options {
  std::string device, features, cache_dir;  // as in pumice.h
  std::vector<std::string> ops, kernels;    // "pick" is one of the kernels; empty: all; bench: all meant for the case
  std::vector<std::string> cases;           // text as in case.h, over the defaults; empty: those of the table
  std::string dtype, storage;               // only these of the table's cases
  bool full = false;                        // the table's long list instead of the short one
  uint64_t seed = 1;
  // test
  uint32_t replays = 0;  // of every case, bit for bit; 0: 100, on a CPU driver fewer of large ones
  std::string mistake;   // planted, to see that it is found: value, unwritten, guard, replay
  // bench
  double seconds = 0.5;       // of warm-up, and at most of timing a row
  uint64_t rotate_bytes = 0;  // of weights to go through; 0: past the device's cache
  bool barrier = true;        // between two replays
  bool ceilings = true;       // measure the device first, and say how near each row comes
  bool regret = false;        // every kernel over a grid of shapes, and how far the pick is from the best
};

// What goes wrong; `code` is a number of base/error.h.
struct Failure : std::runtime_error {
  Failure(uint32_t number, const std::string& code_name, const std::string& where, const std::string& what)
      : std::runtime_error(what), code(number), name(code_name), path(where) {}
  uint32_t code;
  std::string name, path;
};

// Facts as JSON text, as they come, on the caller's thread. Each has an "event": "device" first (with "rows", the
// number of rows to come), "ceiling" where the device is measured, "row" for each case and kernel, "regret", at last
// "end". What is thrown here ends the command.
using Report = std::function<void(const std::string& json)>;

// One JSON text: operators, shader variants and what they need, kernels that can be forced, why they cannot run here,
// and why they are not meant to.
std::string list(const Options& options);
// Each case with each kernel against fp64, every output. Returns how many failed.
uint32_t test(const Options& options, const Report& report);
// Times. Returns how many had wrong results (they are not timed).
uint32_t bench(const Options& options, const Report& report);
// The cases of the table, as text.
std::vector<std::string> cases(const Options& options);

}  // namespace pumice::engine::kernel_bench
