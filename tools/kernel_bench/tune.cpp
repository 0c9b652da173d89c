// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/tune.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "ops/linear/pick.h"
#include "ops/linear/tuned.h"
#include "tools/kernel_bench/contest.h"
#include "tools/kernel_bench/device.h"
#include "tools/kernel_bench/event.h"
#include "tools/kernel_bench/kernels.h"
#include "tools/kernel_bench/products.h"
#include "tools/kernel_bench/table.h"
#include "tools/kernel_bench/verdict.h"

namespace pumice::engine::kernel_bench {
namespace {

using nlohmann::json;

// A kernel whose first replay takes so many times the best one's median drops out without more.
constexpr double kHopeless = 8;

std::vector<Product> products(const Device& device, const Options& options) {
  if (!options.model.empty()) return products_of(device, options);
  std::vector<Product> all;
  for (const Case& c : choose(options, Purpose::bench, device.features().cpu)) {
    if (!bench_op(c.op).is_linear())
      fail(Code::InvalidArgument, Stage::api, "op", "%s has no choice that is tuned: it is no matrix product",
           printable(c.op).c_str());
    all.push_back({c});
  }
  return heaviest_first(all);
}

class Tuner {
 public:
  Tuner(const Options& options, const Report& report, std::shared_ptr<Device> device)
      : options_(options), report_(report), device_(std::move(device)), features_(device_->features()) {
    if (features_.tuned != nullptr && features_.tuned->version() == linear_kernels_version()) kept_ = *features_.tuned;
    features_.tuned = nullptr;
    features_.kernel.clear();
  }

  // Measures a product and keeps its fastest kernel. False: the time was over before.
  bool tune(const Product& product) {
    const Case& c = product.c;
    const BenchOp& op = bench_op(c.op);
    const std::string table(pick_linear(op.linear(c), features_).name);
    const std::unique_ptr<CaseData> case_data = op.make(c, options_.seed);
    const std::vector<Data> inputs = inputs_of(*case_data);
    const std::vector<std::string> names = candidates(op, c, table);
    std::vector<Forced> all;
    for (const std::string& kernel : names) all.push_back({kernel, c.m});
    const Loaded loaded = load(device_, make_file(*case_data, op.op), all, features_);
    prepare_pipelines(loaded);
    std::vector<Contender> contenders = shortlist(loaded, c, names, inputs);
    if (is_over()) return false;
    const json wrong = drop_wrong(loaded, *case_data, inputs, contenders);
    if (contenders.empty() || contenders[0].kernel != table) {
      say(product, "failed", event("row"), wrong);
      return true;
    }
    contest(loaded, transfers_, contenders, inputs, options_, options_.seconds);
    const Contender &by_table = contenders[0], &best = fastest(contenders);
    const Contender& taken = is_faster(best, by_table) ? best : by_table;
    kept_.set(product_text(op.linear(c)), c.m, taken.kernel);
    if (!device_->keep(kept_))
      fail(Code::IoError, Stage::cache, device_->tuned_path(), "cannot be written; the log says why");
    json row = event("row");
    put(row, "table", table);
    put(row, "best", best.kernel);
    put(row, "tuned", taken.kernel);
    put(row, "table_us", by_table.us.median);
    put(row, "best_us", best.us.median);
    put(row, "spread_us", std::max(by_table.us.p90 - by_table.us.p10, best.us.p90 - best.us.p10) / 2);
    put(row, "gain", by_table.us.median / taken.us.median);
    put(row, "candidates", names.size());
    say(product, "ok", std::move(row), wrong);
    return true;
  }

  bool is_over() const { return std::chrono::duration<double>(Clock::now() - begin_).count() >= options_.budget; }
  size_t entries() const { return kept_.size(); }

 private:
  using Clock = std::chrono::steady_clock;

  // The table's choice first, then those that it may choose, then all others that can run.
  std::vector<std::string> candidates(const BenchOp& op, const Case& c, const std::string& table) const {
    std::vector<std::string> meant = {table}, others;
    const std::vector<std::string> asked = kernels(op, options_);
    for (const LinearKernel& kernel : linear_kernels()) {
      const std::string name(kernel.name);
      const bool is_asked = std::find(asked.begin(), asked.end(), name) != asked.end();
      if (name == table || !is_asked || !can_tune(kernel, op.linear(c), features_)) continue;
      (not_recommended_reason(op, name, c, features_).empty() ? meant : others).push_back(name);
    }
    meant.insert(meant.end(), others.begin(), others.end());
    return meant;
  }

  // Those that a short time leaves in the race: the table's choice first.
  std::vector<Contender> shortlist(const Loaded& loaded, const Case& c, const std::vector<std::string>& names,
                                   std::span<const Data> inputs) {
    std::vector<double> times;
    double best = INFINITY;
    for (size_t i = 0; i < names.size() && !is_over(); ++i) {
      json candidate = event("candidate");
      put(candidate, "title", title(c));
      put(candidate, "kernel", names[i]);
      report_(candidate.dump());
      times.push_back(short_us(loaded, *loaded.graphs[i], transfers_, inputs, options_, kHopeless * best));
      best = std::min(best, times.back());
    }
    if (!times.empty()) times[0] = 0;
    std::vector<Contender> contenders;
    for (const size_t i : shortest(times, kContender * best))
      if (contenders.size() < kMostContenders) contenders.push_back({names[i], loaded.graphs[i].get()});
    return contenders;
  }

  // A kernel that this driver computes wrongly is not taken, however fast it is.
  json drop_wrong(const Loaded& loaded, const CaseData& case_data, std::span<const Data> inputs,
                  std::vector<Contender>& contenders) {
    json found = json::array();
    const std::vector<ExpectedOutput> expected = expected_outputs(case_data, {}, options_.seed);
    const Case& c = case_data.shape();
    std::erase_if(contenders, [&](const Contender& each) {
      Harness harness(loaded, *each.graph, transfers_, {});
      run_once(device_, harness, inputs);
      json unused;
      const Bound error = bound(bench_op(c.op), each.kernel, c, features_);
      const std::string why = wrong(harness, case_data, expected, c.m, error, unused);
      if (why.empty()) return false;
      json& mistake = found.emplace_back(json::object());
      put(mistake, "kernel", each.kernel);
      put(mistake, "why", why);
      return true;
    });
    return found;
  }

  void say(const Product& product, const char* status, json row, const json& wrong) const {
    put(row, "status", status);
    put(row, "case", text(product.c));
    put(row, "title", title(product.c));
    put(row, "kernel", row.value("tuned", ""));
    if (!wrong.empty()) row["wrong"] = wrong;
    report_(row.dump());
  }

  const Options& options_;
  const Report& report_;
  std::shared_ptr<Device> device_;
  Transfers transfers_{device_};
  Features features_;  // without what was tuned before
  TunedKernels kept_{linear_kernels_version()};
  const Clock::time_point begin_ = Clock::now();
};

}  // namespace

void run_tune(const Options& options, const Report& report) {
  if (options.model.empty() && options.ops.empty() && options.cases.empty() && options.grid.empty())
    fail(Code::InvalidArgument, Stage::api, "model", "nothing to tune: give a model, an operator or a case");
  const auto device = open(options);
  if (device->features().untuned)
    fail(Code::InvalidArgument, Stage::api, "features", "'untuned' leaves aside what tune is to add to");
  if (device->tuned_path().empty())
    fail(Code::InvalidArgument, Stage::cache, "cache_dir",
         "the cache is off: there is no folder to keep the result in");
  const std::vector<Product> all = products(*device, options);
  report(device_event(*device, all.size(), options.seed));
  Tuner tuner(options, report, device);
  size_t measured = 0;
  while (measured < all.size() && !tuner.is_over() && tuner.tune(all[measured])) ++measured;
  json kept = event("kept");
  put(kept, "path", device->tuned_path());
  put(kept, "entries", tuner.entries());
  put(kept, "products", all.size());
  put(kept, "measured", measured);
  report(kept.dump());
}

}  // namespace pumice::engine::kernel_bench
