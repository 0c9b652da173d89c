// SPDX-License-Identifier: Apache-2.0
// The commands of pumice-rt; each returns the exit code.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "pumice/pumice.hpp"
#include "tools/kernel_bench/kernel_bench.h"
#include "tools/pumice-rt/interrupt.h"
#include "tools/pumice-rt/npy.h"
#include "tools/pumice-rt/sampling.h"

namespace CLI {
class App;
}

namespace tool {

struct Arguments {
  std::string model, outputs;
  std::vector<std::string> inputs, shapes, sizes;
  pumice::Options options;
  bool json = false;
  unsigned runs = 50;
  double warmup = 1.0;
  std::string by = "kernel";
  std::vector<int64_t> tokens;  // of generate: the prompt
  unsigned prompt_length = 0;   // of a random prompt in its place
  unsigned count = 128;         // tokens to generate
  std::vector<int64_t> stops;
  Sampling sampling;
  bool profiled = false, as_profile = false;
  pumice::engine::kernel_bench::Options kernel;
};

// A wrong command line; the exit code is 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

int run(const Arguments& arguments);
int bench(const Arguments& arguments);
int profile(const Arguments& arguments);
int warm(const Arguments& arguments);
int generate(const Arguments& arguments);
int inspect(const Arguments& arguments);
int check(const Arguments& arguments);
int devices(const Arguments& arguments);
// Adds kernel list | test | bench to the command line; `chosen` becomes the command that the user gives.
void kernel_commands(CLI::App& app, Arguments& arguments, int (*&chosen)(const Arguments&));
// Adds tune, likewise.
void tune_command(CLI::App& app, Arguments& arguments, int (*&chosen)(const Arguments&));
int tune(const Arguments& arguments);
int kernel_list(const Arguments& arguments);
int kernel_test(const Arguments& arguments);
int kernel_compile(const Arguments& arguments);
int kernel_bench(const Arguments& arguments);

// A random array for each input, of the shape in --shape NAME=AxB, or by --size NAME=N and what the others' --shape
// says of sizes by name, or else of the shape at export; floats N(0, 1), integers 0 or 1.
std::vector<Array> random_inputs(const pumice::Model& model, const Arguments& arguments);
// The same, or the .npy files of --inputs.
std::vector<Array> bench_inputs(const pumice::Model& model, const Arguments& arguments);
std::vector<pumice_tensor> views(const std::vector<Array>& arrays);
// The rows of Session::profile as a table: a row for each "kernel", or for each "call".
void print_profile(const nlohmann::json& rows, const std::string& by);
// "ids=1x128,mask=1x128"
std::string shape_text(const pumice::Model& model, const std::vector<Array>& arrays);

}  // namespace tool
