// SPDX-License-Identifier: Apache-2.0
// `kernel test`: compares every case with every kernel with an fp64 reference. Memory is filled with a pattern and has
// guards around each tensor. Replays must give equal bits. At last a session runs it as users do.
#include "tools/kernel_bench/test.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "graph/execute.h"
#include "graph/graph_impl.h"
#include "graph/infer.h"
#include "graph/limits.h"
#include "tools/kernel_bench/device.h"
#include "tools/kernel_bench/harness.h"
#include "tools/kernel_bench/kernels.h"
#include "tools/kernel_bench/operators.h"
#include "tools/kernel_bench/plant.h"
#include "tools/kernel_bench/table.h"
#include "tools/kernel_bench/values.h"
#include "tools/kernel_bench/variants.h"
#include "tools/kernel_bench/verdict.h"
#include "tools/kernel_bench/workers.h"

namespace pumice::engine::kernel_bench {
namespace {

using nlohmann::json;

// Two patterns: one is NaN as a float and -1 as an integer, the other an ordinary number.
constexpr uint32_t kPoison[] = {0xffffffffu, 0x45454545u};
constexpr uint64_t kGuard = 64 << 10;

struct Group {  // cases that differ only in m, and so share the file, the packed weight and the reference
  Case widest;
  std::vector<int64_t> rows;
  std::vector<std::string> kernels;  // all of the group's rows have them, or none
};

std::vector<Group> group(const std::vector<Case>& cases) {
  std::vector<Group> groups;
  std::map<std::string, size_t> known;
  for (const Case& c : cases) {
    Case key = c;
    key.m = 1;
    const auto [found, is_new] = known.emplace(text(key), groups.size());
    if (is_new) groups.push_back({c, {}, {}});
    Group& group = groups[found->second];
    group.widest.m = std::max(group.widest.m, c.m);
    group.rows.push_back(c.m);
  }
  return groups;
}

// The kernels that test the group, by Options::one_of.
std::vector<std::string> drawn_kernels(const Group& group, const Options& options) {
  std::vector<std::string> drawn = kernels(bench_op(group.widest.op), options);
  if (options.one_of > 1) {
    std::erase_if(drawn, [&](const std::string& kernel) {
      return Random(options.seed, text(group.widest) + " " + kernel).below(options.one_of) != 0;
    });
  }
  return drawn;
}

// What is tested. Of variants that are asked for, `nowhere` gets those that nothing launches.
std::vector<Group> chosen_groups(const Options& options, const Features& features, std::vector<std::string>& nowhere) {
  if (options.variants.empty()) {
    std::vector<Group> groups = group(choose(options, Purpose::test, features.cpu));
    for (Group& each : groups) each.kernels = drawn_kernels(each, options);
    return groups;
  }
  Found found = launching(options, features);
  std::vector<Group> groups;
  for (const Launching& each : found.pairs) groups.push_back({each.c, {each.c.m}, {each.kernel}});
  nowhere = std::move(found.nowhere);
  return groups;
}

Case with_rows(Case c, int64_t m) {
  c.m = m;
  return c;
}

class Test {
 public:
  Test(const Options& options, const Report& report, std::shared_ptr<Device> device, Transfers& transfers)
      : options_(options), report_(report), device_(std::move(device)), transfers_(transfers) {}

  uint32_t run(const Group& group) {
    const BenchOp& bench_op = kernel_bench::bench_op(group.widest.op);
    if (group.kernels.empty()) return 0;
    const std::unique_ptr<CaseData> case_data = bench_op.make(group.widest, options_.seed);
    const std::vector<ExpectedOutput> expected = expected_outputs(*case_data, group.rows, options_.seed);
    const std::unique_ptr<CaseData> wrong_data = planted(*case_data, options_.mistake);
    const CaseData& given = wrong_data != nullptr ? *wrong_data : *case_data;
    is_planted_ = wrong_data != nullptr || !is_of_data(options_.mistake);
    inputs_ = inputs_of(given);
    is_call_ = bench_op.is_call();
    // Kernels by the operator in their file; a baseline is an operator of its own.
    std::map<std::string, std::vector<Wanted>> files;
    for (const std::string& kernel : group.kernels) {
      Wanted wanted{kernel, {}};
      for (const int64_t m : group.rows) {
        const std::string reason =
            unsupported_reason(bench_op, kernel, with_rows(group.widest, m), device_->features());
        if (reason.empty())
          wanted.rows.push_back(m);
        else
          say(group, m, kernel, {{"status", "skipped"}, {"why", "it " + reason}});
      }
      if (!wanted.rows.empty()) files[op_for(bench_op, kernel)].push_back(std::move(wanted));
    }
    uint32_t failed = 0;
    for (const auto& [op, wanted] : files) failed += run(group, op, wanted, bench_op, given, *case_data, expected);
    return failed;
  }

 private:
  // A case at a number of rows, with what must come out within `bound`.
  struct Run {
    const CaseData& data;
    int64_t m;
    uint64_t macs;
    Bound bound;
    std::span<const ExpectedOutput> expected;
  };
  struct Wanted {
    std::string kernel;
    std::vector<int64_t> rows;
  };

  // `given`: what the device gets, of which `case_data` has the reference.
  uint32_t run(const Group& group, const std::string& op, std::span<const Wanted> all, const BenchOp& bench_op,
               const CaseData& given, const CaseData& case_data, std::span<const ExpectedOutput> expected) {
    std::vector<Forced> kernels;
    for (const Wanted& each : all) kernels.push_back(forced(each.kernel, each.rows[0]));
    const Loaded loaded = load(device_, make_file(given, op), kernels, device_->features());
    uint32_t failed = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      std::vector<std::unique_ptr<Graph>> graphs;
      graphs.push_back(build_with(loaded, device_->features(), kernels[i]));
      Session session(device_, loaded.program, {loaded.weights, std::move(graphs)});
      for (const int64_t m : all[i].rows) {
        json row = {
            {"status", "ok"}, {"sampled", expected[0].sampled()}, {"compared", compared(case_data.has_reference())}};
        std::string why;
        try {
          const size_t num_symbols = loaded.program->methods[0].symbols.size();
          infer(*loaded.graphs[i], std::span(&m, num_symbols));
          check_bindings(*loaded.graphs[i]);
          if (!is_planted_ || (options_.mistake == kRounding && plant_rounding(*loaded.graphs[i]) == 0)) {
            say(group, m, all[i].kernel, {{"status", "skipped"}, {"why", "there is nothing in which to plant it"}});
            continue;
          }
          const Bound limit = bound(bench_op, all[i].kernel, with_rows(group.widest, m), device_->features());
          const uint64_t macs = case_data.macs() / static_cast<uint64_t>(group.widest.m) * static_cast<uint64_t>(m);
          why = run(loaded, *loaded.graphs[i], session, {case_data, m, macs, limit, expected}, row);
        } catch (const Error& error) {
          why = std::string(name(error.code())) + ": " + error.what();
          if (device_->is_lost()) throw;
        }
        if (!why.empty()) {
          ++failed;
          row["status"] = "failed";
          row["why"] = why;
          row["repro"] = repro(group, m, all[i].kernel);
        }
        say(group, m, all[i].kernel, std::move(row));
      }
    }
    return failed;
  }

  // Why one case is wrong; empty when it is right.
  std::string run(const Loaded& loaded, const Graph& graph, Session& session, const Run& run, json& row) {
    Harness harness(loaded, graph, transfers_, {.guard_bytes = kGuard});
    row["shader"] = harness.shaders();
    Commands commands(device_);
    commands.begin();
    harness.dispatch(commands, 0);
    commands.end();
    Bytes first;
    bool is_first = true;
    row["repeats"] = harness.repeats();
    for (const uint32_t poison : kPoison) {
      harness.reset(poison, inputs_);
      harness.run(commands);
      plant(harness, poison, is_first);
      const std::string damage = harness.damage(poison);
      if (!damage.empty()) return damage;
      if (is_first) {
        is_first = false;
        first = outputs(harness, run.expected.size());
        const std::string wrong = kernel_bench::wrong(harness, run.data, run.expected, run.m, run.bound, row);
        if (!wrong.empty()) return wrong;
      } else if (const std::string why = other(harness, run, first); !why.empty()) {
        return "memory that held other bytes before gave " + why;
      }
    }
    const uint32_t replays = num_replays(run.macs);
    const std::string why = replay(harness, commands, run, first, replays);
    if (!why.empty()) return why;
    row["replays"] = replays;
    const std::optional<Bound> bound = harness.repeats() ? std::nullopt : std::optional(bound_of(harness, run.bound));
    return through_session(session, run, !loaded.program->methods[0].symbols.empty(), first, bound);
  }

  // Which of `replays` runs gave other bits than `first`; empty when none. Many share a submit, and are compared on the
  // device; the last one comes to the host, as all do that write over their inputs.
  std::string replay(Harness& harness, const Commands& commands, const Run& run, const Bytes& first, uint32_t replays) {
    const uint64_t work = device_->info().kind == "cpu" ? 300'000'000 : 100'000'000'000;
    const auto room = static_cast<uint32_t>(std::clamp<uint64_t>(work / std::max<uint64_t>(run.macs, 1), 1, 100));
    const uint32_t together = harness.is_repeatable() ? replays - 1 : 0;
    if (options_.mistake == "replay") harness.overwrite(0, 0x40490fdbu);
    for (uint32_t done = 0; done < together; done += room) {
      const std::optional<uint32_t> other = harness.first_other(std::min(room, together - done));
      if (other) return format("replay %u gave other bits", done + *other + 1);
    }
    for (uint32_t done = together; done < replays; ++done) {
      if (harness.overwrites_inputs()) harness.put_inputs(kPoison[1], inputs_);
      harness.clear_report();
      harness.run(commands);
      if (options_.mistake == "replay" && done + 1 == replays) harness.overwrite(0, 0x40490fdbu);
      const std::string why = other(harness, run, first);
      if (!why.empty()) return format("replay %u gave ", done + 1) + why;
    }
    return "";
  }

  // What is wrong with a later run; empty when nothing is. It must have the bits of the first; where a kernel adds in
  // any order, it must be within the bound.
  static std::string other(Harness& harness, const Run& run, const Bytes& first) {
    if (harness.repeats()) {
      const Bytes output = outputs(harness, run.expected.size());
      return output == first ? "" : "other bits: " + difference(first, output);
    }
    json again;
    return kernel_bench::wrong(harness, run.data, run.expected, run.m, run.bound, again);
  }

  // All outputs, one after the other.
  static Bytes outputs(Harness& harness, size_t count) {
    Bytes all;
    for (size_t i = 0; i < count; ++i) {
      const Bytes one = harness.read_output(i);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  // As a user's call goes: inputs staged or in place, the plan's shared arena, the recorded command buffer. `bound`:
  // where the bits need not be those of `first`.
  std::string through_session(Session& session, const Run& run, bool has_rows, const Bytes& first,
                              const std::optional<Bound>& bound) {
    std::vector<InputView> views;
    std::vector<Shape> shapes;
    for (const Data& input : inputs_) shapes.push_back(input.shape);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      uint64_t bytes = inputs_[i].bytes.size();
      if (has_rows) {
        bytes = bytes / static_cast<uint64_t>(shapes[i][0]) * static_cast<uint64_t>(run.m);
        shapes[i][0] = run.m;
      }
      views.push_back({inputs_[i].dtype, shapes[i], inputs_[i].bytes.data(), bytes});
    }
    const bool fails = !run.data.reports().empty();
    try {
      session.run(0, views);
    } catch (const Error& error) {
      if (fails && error.code() == Code::InvalidArgument) return "";
      throw;
    }
    if (fails) return "a session said nothing of what the kernel reported";
    Bytes all;
    std::vector<Bytes> each;
    for (uint32_t i = 0; i < run.expected.size(); ++i) {
      Bytes output(session.output(i).bytes);
      session.read(i, output.data(), output.size());
      each.push_back(on_device(session.output(i).dtype, output));
      all.insert(all.end(), each.back().begin(), each.back().end());
    }
    json again;
    const std::string why = bound          ? kernel_bench::wrong(each, run.expected, run.m, *bound, again)
                            : all != first ? "other bits: " + difference(first, all)
                                           : "";
    return why.empty() ? "" : "a session gave " + why;
  }

  static std::string difference(const Bytes& a, const Bytes& b) {
    const size_t size = std::min(a.size(), b.size());
    size_t at = 0;
    while (at < size && a[at] == b[at]) ++at;
    return format("first at byte %zu of %zu", at, a.size());
  }

  void plant(Harness& harness, uint32_t poison, bool is_first) {
    if (options_.mistake == "value") harness.overwrite(0, is_first ? 0x40490fdbu : 0);
    if (options_.mistake == "unwritten") harness.overwrite(0, poison);
    if (options_.mistake == "guard") harness.overwrite_guard(~poison);
  }
  // Replays on a CPU driver, which does about 10^9 multiplications a second.
  uint32_t num_replays(uint64_t macs) const {
    if (options_.replays != 0) return options_.replays;
    if (device_->info().kind != "cpu") return 100;
    constexpr uint64_t kOfCalls = 10;  // fewer for calls, since there are many operators
    return static_cast<uint32_t>(std::clamp<uint64_t>(300'000'000 / macs, 3, is_call_ ? kOfCalls : 100));
  }

  void say(const Group& group, int64_t m, const std::string& kernel, json row) {
    row["event"] = "row";
    row["case"] = text(with_rows(group.widest, m));
    row["title"] = title(with_rows(group.widest, m));
    row["kernel"] = kernel;
    report_(row.dump());
  }

  std::string repro(const Group& group, int64_t m, const std::string& kernel) {
    std::string line = "pumice-rt kernel test --kernel " + kernel + " --case '" + text(with_rows(group.widest, m)) +
                       "' --seed " + std::to_string(options_.seed);
    if (options_.replays != 0) line += " --replays " + std::to_string(options_.replays);
    if (!options_.device.empty()) line += " --device '" + options_.device + "'";
    if (!options_.features.empty()) line += " --features='" + options_.features + "'";
    return line;
  }

  const Options& options_;
  const Report& report_;
  std::shared_ptr<Device> device_;
  Transfers& transfers_;
  std::vector<Data> inputs_;
  bool is_call_ = false, is_planted_ = false;
};

}  // namespace

uint32_t run_test(const Options& options, const Report& report) {
  if (!options.mistake.empty() && !options.mistake.starts_with(kInput)) {
    std::vector<std::string_view> mistakes = {"value", "unwritten", "guard", "replay", kRounding, kInput};
    mistakes.insert(mistakes.end(), std::begin(kDataMistakes), std::end(kDataMistakes));
    must_be_one_of("mistake", options.mistake, mistakes);
  }
  const auto device = open(options);
  std::vector<std::string> nowhere;
  const std::vector<Group> groups = chosen_groups(options, device->features(), nowhere);
  uint64_t rows = nowhere.size();
  for (const Group& each : groups) rows += each.rows.size() * each.kernels.size();
  report(device_event(*device, rows, options.seed));
  for (const std::string& name : nowhere)
    report(json{{"event", "row"},
                {"status", "skipped"},
                {"why", "no case of an operator launches it here"},
                {"case", ""},
                {"title", name},
                {"kernel", ""}}
               .dump());
  std::atomic<uint32_t> failed = 0;
  std::vector<std::unique_ptr<Transfers>> transfers;
  for (uint32_t i = 0; i < options.jobs; ++i) transfers.push_back(std::make_unique<Transfers>(device));
  in_threads(
      options.jobs, groups.size(),
      [&](uint32_t worker, size_t i, const Report& say) {
        failed += Test(options, say, device, *transfers[worker]).run(groups[i]);
      },
      report);
  report(json{{"event", "end"}, {"failed", failed.load()}}.dump());
  return failed;
}

}  // namespace pumice::engine::kernel_bench
