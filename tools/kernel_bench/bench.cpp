// SPDX-License-Identifier: Apache-2.0
// `kernel bench`: checks the results of each row, then times it. Each replay reads another copy of the weights, so that
// they are not in a cache.
#include "tools/kernel_bench/bench.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/kernel_bench/ceilings.h"
#include "tools/kernel_bench/contest.h"
#include "tools/kernel_bench/device.h"
#include "tools/kernel_bench/event.h"
#include "tools/kernel_bench/harness.h"
#include "tools/kernel_bench/kernels.h"
#include "tools/kernel_bench/operators.h"
#include "tools/kernel_bench/table.h"
#include "tools/kernel_bench/timer.h"
#include "tools/kernel_bench/verdict.h"

namespace pumice::engine::kernel_bench {
namespace {

using nlohmann::json;

Arithmetic most(const Operations& operations) {
  return static_cast<Arithmetic>(std::ranges::max_element(operations) - operations.begin());
}

class Bench {
 public:
  Bench(const Options& options, const Report& report, std::shared_ptr<Device> device)
      : options_(options), report_(report), device_(std::move(device)), cpu_(device_->info().kind == "cpu") {}

  void measure_ceilings() {
    ceilings_.measure(device_, cpu_ ? 0.02 : options_.seconds, [&](const Ceiling& c) {
      json said = event("ceiling");
      put(said, "name", c.name);
      put(said, "per_second", c.value);
      put(said, "how", c.configuration);
      put(said, "why", c.why);
      report_(said.dump());
    });
    for (size_t i = 0; i < std::size(kArithmetics); ++i) {
      json said = event("rate");
      put(said, "name", kArithmetics[i]);
      put(said, "per_second", ceilings_.rate(static_cast<Arithmetic>(i)));
      report_(said.dump());
    }
  }

  uint32_t run(const Case& c) {
    const BenchOp& bench_op = kernel_bench::bench_op(c.op);
    const std::unique_ptr<CaseData> case_data = bench_op.make(c, options_.seed);
    const std::vector<Data> inputs = inputs_of(*case_data);
    const std::vector<ExpectedOutput> expected = expected_outputs(*case_data, {}, options_.seed);
    uint32_t failed = 0;
    std::map<std::string, double> times;
    const ChosenKernels chosen = choose_kernels(bench_op, c, options_, device_->features());
    for (const auto& [kernel, why] : chosen.left_out) say(c, kernel, {{"status", "skipped"}, {"why", why}});
    warm_ = false;
    for (const auto& [op, names] : chosen.files) {
      std::vector<Forced> all;
      for (const std::string& kernel : names) all.push_back(forced(kernel, c.m));
      const Loaded loaded = load(device_, make_file(*case_data, op), all, device_->features());
      if (options_.regret) prepare_pipelines(loaded);
      for (size_t i = 0; i < names.size(); ++i) {
        const Bound error = bound(bench_op, names[i], c, device_->features());
        json row = measure(loaded, *loaded.graphs[i], *case_data, inputs, expected, error);
        row["is"] = resolved(bench_op, names[i], c, device_->features());
        failed += row.at("status") == "failed";
        if (row.at("status") == "ok") times[names[i]] = row.at(cpu_ ? "cpu_us" : "median_us");
        say(c, names[i], std::move(row));
      }
      if (options_.regret && op == c.op) judge(c, loaded, names, times, inputs);
    }
    return failed;
  }

  // Regret: the time of the picked kernel over the time of the best one. CPU drivers: processor time, because other
  // programs disturb the time on the clock.
  void say_regret() const {
    if (regrets_.empty()) return;
    json said = event("regret");
    put(said, "shapes", regrets_.size());
    summarize(said, &Regret::pick);
    if (device_->features().tuned != nullptr) summarize(said["table"], &Regret::table);
    for (const Regret& each : regrets_) {
      json& row = said["cases"].emplace_back(json::object());
      put(row, "title", each.where);
      put(row, "best", each.best);
      put(row, "us", each.us);
      put(row, "pick", each.pick);
      put(row, "table", each.table);
    }
    report_(said.dump());
  }

 private:
  struct Regret {
    double pick, table;
    std::string where, best;
    double us;  // of the best
  };

  // The choices against all that came near the best: timed again in turns, as the times of the rows are apart.
  void judge(const Case& c, const Loaded& loaded, const std::vector<std::string>& names,
             const std::map<std::string, double>& times, std::span<const Data> inputs) {
    const BenchOp& op = bench_op(c.op);
    const std::string pick = resolved(op, std::string(kPick), c, device_->features()),
                      table = resolved(op, std::string(kTable), c, device_->features());
    std::vector<Contender> all, contenders;
    std::vector<double> us;
    double least = INFINITY;
    const auto has = [](const std::vector<Contender>& some, const std::string& name) {
      return std::ranges::find(some, name, &Contender::kernel) != some.end();
    };
    for (size_t i = 0; i < names.size(); ++i) {
      const auto time = times.find(names[i]);
      const std::string kernel = resolved(op, names[i], c, device_->features());
      if (time == times.end() || has(all, kernel)) continue;
      least = std::min(least, time->second);
      us.push_back(kernel == pick || kernel == table ? 0 : time->second);  // a choice is always in the contest
      all.push_back({kernel, loaded.graphs[i].get()});
    }
    for (const size_t i : shortest(us, kContender * least))
      if (contenders.size() < kMostContenders) contenders.push_back(all[i]);
    if (all.size() < 2 || !has(all, pick) || !has(all, table)) return;
    contest(loaded, transfers_, contenders, inputs, options_, options_.seconds);
    const Contender& best = fastest(contenders);
    const auto regret = [&](const std::string& name) {
      return std::ranges::find(contenders, name, &Contender::kernel)->us.median / best.us.median;
    };
    regrets_.push_back({regret(pick), regret(table), title(c), best.kernel, best.us.median});
  }

  void summarize(json& row, double Regret::* of) const {
    std::vector<double> values;
    for (const Regret& each : regrets_) values.push_back(each.*of);
    const Regret& worst = *std::ranges::max_element(regrets_, {}, of);
    put(row, "median", percentile(values, 0.5));
    put(row, "worst", worst.*of);
    put(row, "worst_case", worst.where);
    put(row, "worst_best", worst.best);
  }

  json measure(const Loaded& loaded, const Graph& graph, const CaseData& case_data, std::span<const Data> inputs,
               std::span<const ExpectedOutput> expected, const Bound& error) {
    const int64_t m = case_data.shape().m;
    json row = {{"status", "ok"}, {"compared", compared(case_data.has_reference())}};
    uint64_t slot_bytes = 0;
    {
      Harness harness(loaded, graph, transfers_, {});
      slot_bytes = harness.slot_bytes();
      row["shader"] = harness.shaders();
      run_once(device_, harness, inputs);
      const std::string why = wrong(harness, case_data, expected, m, error, row);
      if (!why.empty()) {
        row["status"] = "failed";
        row["why"] = why + "; see kernel test";
        return row;
      }
    }
    const uint32_t slots = kernel_bench::slots(slot_bytes, options_, cpu_);
    Harness harness(loaded, graph, transfers_, {.slots = slots});
    harness.reset(0, inputs);
    // For the regret, a short time finds those that are timed in turns.
    const double warm = options_.regret ? 0.01 : cpu_ || warm_ ? 0.05 : options_.seconds;
    warm_ = true;
    const Timing timing = time(device_, [&](Commands& commands, uint32_t i) { harness.dispatch(commands, i % slots); },
                               {warm, options_.regret ? 0 : options_.seconds, slots, options_.barrier});
    const double us = timing.us.median;
    row["median_us"] = us;
    row["p10_us"] = timing.us.p10;
    row["p90_us"] = timing.us.p90;
    if (cpu_) row["cpu_us"] = timing.cpu_us.median;
    const bool is_call = case_data.bytes(m) == 0;
    const Operations operations = harness.launch_operations();
    const Arithmetic arithmetic = most(operations);
    const double bytes = is_call ? static_cast<double>(harness.launch_bytes()) : case_data.bytes(m);
    const double flops = is_call ? static_cast<double>(total_of(operations)) : case_data.flops(m);
    row["bytes"] = bytes;
    row["flops"] = flops;
    row["arithmetic"] = kArithmetics[static_cast<size_t>(arithmetic)];
    row["gb_s"] = bytes / us / 1e3;
    row["tflop_s"] = flops / us / 1e6;
    if (ceilings_.measured()) {
      bool memory = false;
      row["roof_us"] = ceilings_.roof_us(bytes, flops, arithmetic, memory);
      row["of_roof"] = row.at("roof_us").get<double>() / (cpu_ ? timing.cpu_us.median : us);
      row["bound"] = memory ? "memory" : "arithmetic";
    }
    row["slots"] = slots;
    row["submits"] = timing.submits;
    row["replays"] = timing.replays;
    row["barrier"] = options_.barrier;
    return row;
  }

  void say(const Case& c, const std::string& kernel, json row) {
    row["event"] = "row";
    row["case"] = text(c);
    row["title"] = title(c);
    row["kernel"] = kernel;
    report_(row.dump());
  }

  const Options& options_;
  const Report& report_;
  std::shared_ptr<Device> device_;
  Transfers transfers_{device_};
  const bool cpu_;
  bool warm_ = false;
  Ceilings ceilings_;
  std::vector<Regret> regrets_;
};

}  // namespace

uint32_t run_bench(const Options& options, const Report& report) {
  const auto device = open(options);
  const std::vector<Case> cases = choose(options, Purpose::bench, device->features().cpu);
  uint64_t rows = 0;
  for (const Case& c : cases) rows += kernels(bench_op(c.op), options).size();
  report(device_event(*device, rows, options.seed));
  Bench bench(options, report, device);
  if (options.ceilings) bench.measure_ceilings();
  uint32_t failed = 0;
  for (const Case& c : cases) failed += bench.run(c);
  bench.say_regret();
  report(json{{"event", "end"}, {"failed", failed}}.dump());
  return failed;
}

}  // namespace pumice::engine::kernel_bench
