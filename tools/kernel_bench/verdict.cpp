// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/verdict.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace pumice::engine::kernel_bench {
namespace {

std::string text(const HostReport& report) {
  return format("value %d at position %u (limit %d)", report.value, report.position, report.limit);
}

// A kernel keeps one report of a run, any one.
std::string wrong_report(const std::optional<HostReport>& got, std::span<const HostReport> all) {
  if (!got) return all.empty() ? "" : "nothing was reported; " + text(all[0]) + " should be";
  const auto is_same = [&](const HostReport& each) {
    return each.position == got->position && each.value == got->value && each.limit == got->limit;
  };
  if (std::any_of(all.begin(), all.end(), is_same)) return "";
  return "reported: " + text(*got) + (all.empty() ? "; nothing should be" : "; " + text(all[0]) + " should be");
}

}  // namespace

std::vector<ExpectedOutput> expected_outputs(const CaseData& case_data, std::span<const int64_t> rows, uint64_t seed) {
  std::vector<ExpectedOutput> all;
  for (size_t i = 0; i < case_data.outputs().size(); ++i) all.emplace_back(case_data, i, rows, seed);
  return all;
}

std::string wrong(Harness& harness, const CaseData& case_data, std::span<const ExpectedOutput> expected, int64_t m,
                  const Bound& bound, nlohmann::json& row) {
  const std::vector<HostReport> reports = case_data.reports();
  if (case_data.has_reference()) {
    const std::string reported = wrong_report(harness.report(), reports);
    if (!reported.empty()) return reported;
  }
  std::vector<Bytes> outputs;
  for (size_t i = 0; i < expected.size() && reports.empty(); ++i)  // outputs of a run that fails are undefined
    outputs.push_back(harness.read_output(i));
  const std::string why = wrong(outputs, expected, m, bound_of(harness, bound), row);
  if (!reports.empty()) row["checked"] = 1;
  return why;
}

void run_once(const std::shared_ptr<Device>& device, Harness& harness, std::span<const Data> inputs) {
  harness.reset(0xffffffffu, inputs);
  Commands commands(device);
  commands.begin();
  harness.dispatch(commands, 0);
  commands.end();
  harness.run(commands);
}

Bound bound_of(const Harness& harness, Bound bound) {
  bound.matrices = harness.uses(Feature::coopmat);
  bound.any_order = !harness.repeats();
  return bound;
}

std::string wrong(std::span<const Bytes> outputs, std::span<const ExpectedOutput> expected, int64_t m,
                  const Bound& bound, nlohmann::json& row) {
  uint64_t count = 0;
  double worst = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Checked checked = expected[i].compare(outputs[i], m, bound);
    count += checked.checked;
    worst = std::max(worst, checked.worst);
    if (!checked.first) continue;
    const Wrong& w = *checked.first;
    const std::string of = expected.size() == 1 ? "outputs" : "elements of output " + std::to_string(i);
    return format("%llu of %llu %s are wrong, the first at %s: got %.9g, want %.9g, allowed +-%.3g",
                  static_cast<unsigned long long>(checked.wrong), static_cast<unsigned long long>(checked.checked),
                  of.c_str(), w.where.c_str(), w.got, w.want, w.allowed);
  }
  row["checked"] = count;
  row["worst"] = worst;
  return "";
}

}  // namespace pumice::engine::kernel_bench
