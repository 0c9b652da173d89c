// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/pumice-rt/tool.h"

namespace tool {
namespace {

using Clock = std::chrono::steady_clock;
double ms(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

double percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const size_t low = static_cast<size_t>(at), high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

}  // namespace

int bench(const Arguments& arguments) {
  const auto begin = Clock::now();
  const pumice::Model model = pumice::Model::load_file(arguments.model, arguments.options);
  pumice::Session session(model);
  const Interruptible interruptible(session);
  const auto loaded = Clock::now();
  const std::vector<Array> inputs = bench_inputs(model, arguments);
  const std::vector<pumice_tensor> tensors = views(inputs);
  const auto ready = Clock::now();
  session.run(tensors);
  const auto first = Clock::now();
  while (ms(first, Clock::now()) < 1e3 * arguments.warmup) session.run(tensors);
  std::vector<double> times;
  for (unsigned i = 0; i < arguments.runs; ++i) {
    const auto start = Clock::now();
    session.run(tensors);
    times.push_back(ms(start, Clock::now()));
  }
  const auto device = nlohmann::json::parse(model.describe()).at("device");
  const std::string name = device.at("name"), driver = device.at("driver"), version = device.at("driver_version");
  const double p10 = percentile(times, 0.1), median = percentile(times, 0.5), p90 = percentile(times, 0.9);
  const std::string shape = shape_text(model, inputs);
  if (arguments.json) {
    const nlohmann::json row = {{"schema", 1},
                                {"model", arguments.model},
                                {"device", name},
                                {"driver", driver + " " + version},
                                {"shape", shape},
                                {"runs", arguments.runs},
                                {"median_ms", median},
                                {"p10_ms", p10},
                                {"p90_ms", p90},
                                {"first_run_ms", ms(ready, first)},
                                {"load_ms", ms(begin, loaded)}};
    std::printf("%s\n", row.dump().c_str());
    return 0;
  }
  std::printf("%s on %s, driver %s %s\n", arguments.model.c_str(), name.c_str(), driver.c_str(), version.c_str());
  std::printf("%-32s %6s %10s %8s %8s %13s %8s\n", "shape", "runs", "median ms", "p10", "p90", "first run ms",
              "load ms");
  std::printf("%-32s %6u %10.3f %8.3f %8.3f %13.1f %8.1f\n", shape.c_str(), arguments.runs, median, p10, p90,
              ms(ready, first), ms(begin, loaded));
  return 0;
}

void print_profile(const nlohmann::json& rows, const std::string& by) {
  double total = 0;
  struct Group {
    std::string op, kernel, shape;
    size_t calls = 0;
    double us = 0, bytes = 0, flops = 0;
  };
  std::vector<Group> groups;
  std::map<std::string, size_t> index;
  for (const auto& row : rows) {
    total += row.at("us").get<double>();
    const std::string op = row.at("op"), kernel = row.at("kernel");
    const std::string key = by == "call" ? std::to_string(groups.size()) : op + "/" + kernel;
    const auto [found, is_new] = index.emplace(key, groups.size());
    if (is_new) groups.push_back({op, kernel, row.at("shapes"), 0, 0, 0, 0});
    Group& group = groups[found->second];
    group.calls += 1;
    group.us += row.at("us").get<double>();
    group.bytes += row.at("bytes").get<double>();
    group.flops += row.at("flops").get<double>();
  }
  if (by == "kernel")
    std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.us > b.us; });
  std::printf("%.1f us in %zu dispatches\n%-22s %-34s %-24s %9s %6s %9s %9s\n", total, rows.size(), "operator",
              "kernel", by == "call" ? "shape" : "calls", "us", "%", "GB/s", "GFLOP/s");
  for (const Group& g : groups) {
    const std::string what = by == "call" ? g.shape : std::to_string(g.calls);
    std::printf("%-22s %-34s %-24s %9.1f %6.1f %9.1f %9.1f\n", g.op.c_str(), g.kernel.c_str(), what.c_str(), g.us,
                100 * g.us / total, g.us > 0 ? g.bytes / g.us / 1e3 : 0, g.us > 0 ? g.flops / g.us / 1e3 : 0);
  }
}

int profile(const Arguments& arguments) {
  const pumice::Model model = pumice::Model::load_file(arguments.model, arguments.options);
  pumice::Session session(model);
  const Interruptible interruptible(session);
  const std::vector<Array> inputs = bench_inputs(model, arguments);
  const std::vector<pumice_tensor> tensors = views(inputs);
  session.run(tensors);
  nlohmann::json last;
  std::vector<std::vector<double>> samples;
  for (unsigned i = 0; i < arguments.runs; ++i) {
    last = nlohmann::json::parse(session.profile(tensors)).at("rows");
    samples.resize(last.size());
    for (size_t r = 0; r < last.size(); ++r) samples[r].push_back(last[r].at("us").get<double>());
  }
  for (size_t r = 0; r < last.size(); ++r) last[r]["us"] = percentile(samples[r], 0.5);
  if (arguments.json) {
    std::printf("%s\n", nlohmann::json({{"schema", 1}, {"rows", last}}).dump().c_str());
    return 0;
  }
  print_profile(last, arguments.by);
  return 0;
}

}  // namespace tool
