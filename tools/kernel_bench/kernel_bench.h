// SPDX-License-Identifier: Apache-2.0
// kernel_bench lists, tests and times single operators and their kernels. This header has standard types only, so that
// pumice-rt and the Python extension can include it together with the public interface.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace pumice::engine::kernel_bench {

struct Options {
  std::string device, features, cache_dir;  // as in pumice.h
  std::string profile;  // of list and inspect: in place of a device, a file or a name (tools/kernel_bench/profile.h)
  std::vector<std::string> ops,
      kernels;       // empty: all (bench: all that are recommended for the case); "pick" is the picked kernel
  std::string grid;  // of linear layers, in place of the table's cases: fitted or unseen
  std::vector<std::string> cases;  // as in case.h, over the defaults; empty: those of the table
  std::string dtype, storage;      // only the table's cases with these
  bool full = false;               // the table's long list instead of the short one
  uint64_t seed = 1;
  // test
  uint32_t jobs = 1;                  // threads
  uint32_t one_of = 1;                // of as many pairs of a kernel and a case, which the seed draws
  std::vector<std::string> variants;  // of shaders, in place of pairs: a small case of a kernel for each
  uint32_t replays =
      0;                // runs of each case that must give equal bits; 0: 100, or fewer for large cases on a CPU driver
  std::string mistake;  // a mistake to plant, which must be found: value, unwritten, guard, replay, or those of plant.h
  // bench
  double seconds = 0.5;       // of warm-up for a row, and the most for its timing
  uint64_t rotate_bytes = 0;  // of all copies of the weights; 0: more than the device's cache
  bool barrier = true;        // between two replays
  bool ceilings = true;       // measure the device first and compare each row with it
  bool regret = false;        // time every kernel at a grid of shapes and compare the pick with the best
  // list
  bool compile = false;  // how long the driver takes for each kernel's pipelines
  // compile
  std::string pipelines;  // a file with lines as PUMICE_PIPELINE_LOG's, in place of operators and cases
  // tune
  std::string model;               // a .pumice file, in place of operators and cases
  std::vector<std::string> sizes;  // of the model, NAME=N
  double budget = 60;              // seconds in all
};

// An error of the engine; `code` is a Code of base/error.h.
struct Failure : std::runtime_error {
  Failure(uint32_t number, const std::string& code_name, const std::string& where, const std::string& what)
      : std::runtime_error(what), code(number), name(code_name), path(where) {}
  uint32_t code;
  std::string name, path;
};

// Called with JSON text for each result, on the caller's thread. Each has an "event": "device" first (with "rows", the
// number of rows to come), "ceiling" where the device is measured and then "rate" for each arithmetic, "row" for each
// case and kernel, "regret", and "end" last. An exception of this function ends the command.
using Report = std::function<void(const std::string& json)>;

// JSON: the device as a file that `list` takes in its place.
std::string profile(const Options& options);
// JSON: a .pumice file as `pumice inspect` describes it, on the device of Options::profile.
std::string inspect(const std::string& model, const Options& options);
// JSON: the operators, the shader variants with the features they need, and the kernels that can be forced, with the
// reason where one cannot run here or is not recommended; and what the picked ones dispatch at a case.
std::string list(const Options& options);
// Tests each case with each kernel, every output against fp64. Returns the number of failures.
uint32_t test(const Options& options, const Report& report);
// Times each case with each kernel. Returns the number with wrong results, which are not timed.
uint32_t bench(const Options& options, const Report& report);
// Times the kernels that can run a product, for those of a model or for cases, and keeps the fastest in the cache,
// where devices find it that are opened from then on. Each product is kept when it is measured. The events: "candidate"
// for each kernel that is timed, "row" for each product, and "kept" last.
void tune(const Options& options, const Report& report);
// Makes the pipelines of each case with each kernel, or those of a file, and runs none. Returns the number that the
// driver refuses.
uint32_t compile(const Options& options, const Report& report);
// The cases of the table, as text.
std::vector<std::string> cases(const Options& options);

}  // namespace pumice::engine::kernel_bench
