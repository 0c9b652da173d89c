// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/kernel_bench.h"

#include "base/error.h"
#include "runtime/describe.h"
#include "tools/kernel_bench/bench.h"
#include "tools/kernel_bench/compile.h"
#include "tools/kernel_bench/device.h"
#include "tools/kernel_bench/list.h"
#include "tools/kernel_bench/profile.h"
#include "tools/kernel_bench/table.h"
#include "tools/kernel_bench/test.h"
#include "tools/kernel_bench/tune.h"

namespace pumice::engine::kernel_bench {
namespace {

// Turns the engine's errors into kernel_bench::Error: front ends cannot include the engine's headers together with the
// public ones.
template <class Body>
auto translated(const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    throw Failure(static_cast<uint32_t>(error.code()), name(error.code()), error.path(), error.what());
  }
}

}  // namespace

std::string profile(const Options& options) {
  return translated([&] { return profile_text(*open(options)); });
}
std::string inspect(const std::string& model, const Options& options) {
  return translated([&] { return inspect_file(model, features_of(read_profile(options.profile), options.features)); });
}
std::string list(const Options& options) {
  return translated([&] { return run_list(options); });
}
uint32_t test(const Options& options, const Report& report) {
  return translated([&] { return run_test(options, report); });
}
uint32_t bench(const Options& options, const Report& report) {
  return translated([&] { return run_bench(options, report); });
}
void tune(const Options& options, const Report& report) {
  translated([&] { run_tune(options, report); });
}
uint32_t compile(const Options& options, const Report& report) {
  return translated([&] { return run_compile(options, report); });
}

std::vector<std::string> cases(const Options& options) {
  return translated([&] {
    std::vector<std::string> texts;
    for (const Case& c : choose(options, Purpose::test, true)) texts.push_back(text(c));
    return texts;
  });
}

}  // namespace pumice::engine::kernel_bench
