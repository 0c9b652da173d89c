// SPDX-License-Identifier: Apache-2.0
// kernel list | test | bench, and tune: prints the results of tools/kernel_bench as text or as one JSON document.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/pumice-rt/tool.h"

namespace tool {
namespace {

using nlohmann::json;

std::string text(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string number(const json& row, const char* key, const char* form, double scale = 1) {
  if (!row.contains(key)) return "-";
  char out[32];
  std::snprintf(out, sizeof(out), form, scale * row.at(key).get<double>());
  return out;
}

std::string join(const json& list, const char* separator) {
  std::string all;
  for (const json& item : list) all += (all.empty() ? "" : separator) + text(item);
  return all;
}

// Shows progress on stderr when that is a terminal; says there how far it came when Ctrl-C stops it.
class Progress {
 public:
  ~Progress() { clear(); }
  void total(uint64_t rows) { total_ = rows; }
  void fail() { ++failed_; }
  void step(const std::string& what) {
    ++done_;
    show(what);
  }
  void show(const std::string& what) const {
    if (!shown_) return;
    std::fprintf(stderr, "\r\033[K%llu of %llu  %s", static_cast<unsigned long long>(done_),
                 static_cast<unsigned long long>(total_), what.substr(0, 90).c_str());
    std::fflush(stderr);
  }
  void clear() const {
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }

 private:
  void stopped() const {
    clear();
    std::fprintf(stderr, "stopped after %llu of %llu rows, %llu failed\n", static_cast<unsigned long long>(done_),
                 static_cast<unsigned long long>(total_), static_cast<unsigned long long>(failed_));
  }

  const bool shown_ = isatty(STDERR_FILENO) != 0;
  std::atomic<uint64_t> done_ = 0, total_ = 0, failed_ = 0;
  const AtInterrupt at_interrupt_{[this] { stopped(); }};
};

void print_device(const json& event) {
  const json& device = event.at("device");
  std::printf("%s, driver %s, subgroups of %s\n", text(device.at("name")).c_str(), text(device.at("driver")).c_str(),
              text(device.at("subgroup_size")).c_str());
  std::fflush(stdout);
}

// Collects the results for --json.
void keep(json& all, const json& event) {
  const std::string kind = event.at("event");
  if (kind == "device") {
    all["device"] = event.at("device");
    all["seed"] = event.at("seed");
  } else if (kind == "regret") {
    all["regret"] = event;
  } else if (kind == "kept") {
    all["kept"] = event;
  } else if (kind != "end") {
    all[kind + "s"].push_back(event);
  }
}

// A table for each case; kernels that were skipped come after it, in one line for each reason.
class BenchTable {
 public:
  void add(const json& row) {
    const std::string c = row.at("case"), is = row.value("is", ""), name = row.at("kernel"),
                      kernel = is.empty() || is == name ? name : name + ": " + is;
    if (c != case_) {
      end();
      case_ = c;
      std::printf("\n%s\n", text(row.at("title")).c_str());
    }
    if (row.at("status") == "skipped") {
      std::string& names = skipped_[row.at("why")];
      names += (names.empty() ? "" : ", ") + kernel;
    } else if (row.at("status") == "ok") {
      print(kernel, row);
    } else {
      std::printf("  %-20s %s: %s\n", kernel.c_str(), text(row.at("status")).c_str(), text(row.at("why")).c_str());
    }
    std::fflush(stdout);
  }
  void end() {
    for (const auto& [why, names] : skipped_) std::printf("  skipped: %s: %s\n", names.c_str(), why.c_str());
    skipped_.clear();
    has_header_ = false;
  }

 private:
  void print(const std::string& kernel, const json& row) {
    const bool cpu = row.contains("cpu_us");
    if (!has_header_)
      std::printf("  %-20s %10s %9s %9s %9s %9s %9s %7s  %s\n", "kernel", "median us", "p10", "p90",
                  cpu ? "cpu us" : "", "GB/s", "TFLOP/s", "% roof", "shader");
    has_header_ = true;
    std::printf("  %-20s %10s %9s %9s %9s %9s %9s %7s  %s\n", kernel.c_str(), number(row, "median_us", "%.2f").c_str(),
                number(row, "p10_us", "%.2f").c_str(), number(row, "p90_us", "%.2f").c_str(),
                cpu ? number(row, "cpu_us", "%.1f").c_str() : "", number(row, "gb_s", "%.1f").c_str(),
                number(row, "tflop_s", "%.4g").c_str(), number(row, "of_roof", "%.1f", 100).c_str(),
                text(row.at("shader")).c_str());
  }

  std::string case_;
  std::map<std::string, std::string> skipped_;
  bool has_header_ = false;
};

void print_regret(const json& event) {
  const auto print = [&](const char* whose, const json& of) {
    std::printf("regret of %s over %s shapes: median %.3f, worst %.3f (%s; %s is best)\n", whose,
                text(event.at("shapes")).c_str(), of.at("median").get<double>(), of.at("worst").get<double>(),
                text(of.at("worst_case")).c_str(), text(of.at("worst_best")).c_str());
  };
  std::printf("\n");
  if (event.contains("table")) print("the table", event.at("table"));
  print(event.contains("table") ? "what was tuned" : "the pick", event);
}

void print_ceiling(const json& event) {
  const double value = event.at("per_second");
  const std::string name = event.at("name");
  if (value == 0) {
    std::printf("  ceiling %-11s %s\n", name.c_str(), text(event.at("why")).c_str());
  } else if (name == "read" || name == "copy") {
    std::printf("  ceiling %-11s %9.1f GB/s    (%s)\n", name.c_str(), value / 1e9, text(event.at("how")).c_str());
  } else {
    std::printf("  ceiling %-11s %9.3f T%s/s (%s)\n", name.c_str(), value / 1e12,
                name == "dot" || name == "s8 matrix" ? "OP" : "FLOP", text(event.at("how")).c_str());
  }
}

void print_shaders(const json& facts) {
  size_t variants = 0, plain = 0;
  for (const json& file : facts.at("shaders")) {
    for (const json& variant : file.at("variants")) ++variants, plain += variant.at("needs").empty();
  }
  std::printf("\n%zu shaders in %zu variants; %zu need nothing optional. The others:\n", facts.at("shaders").size(),
              variants, plain);
  for (const json& file : facts.at("shaders")) {
    for (const json& variant : file.at("variants")) {
      if (variant.at("needs").empty()) continue;
      std::printf("  %-34s needs %s%s\n", text(variant.at("variant")).c_str(), join(variant.at("needs"), ", ").c_str(),
                  variant.at("runs") ? "" : ": not on this device");
    }
  }
}

constexpr const char* kTuneColumns = "%-52s %-20s %9s  %-20s %9s %7s %6s  %s\n";

void print_tuned(const json& row) {
  for (const json& each : row.value("wrong", json::array()))
    std::printf("%s: %s is wrong here: %s\n", text(row.at("title")).c_str(), text(each.at("kernel")).c_str(),
                text(each.at("why")).c_str());
  if (row.at("status") == "ok")
    std::printf(kTuneColumns, text(row.at("title")).c_str(), text(row.at("table")).c_str(),
                number(row, "table_us", "%.2f").c_str(), text(row.at("best")).c_str(),
                number(row, "best_us", "%.2f").c_str(), number(row, "spread_us", "%.2f").c_str(),
                number(row, "gain", "%.2f").c_str(), text(row.at("tuned")).c_str());
  std::fflush(stdout);
}

}  // namespace

int kernel_list(const Arguments& arguments) {
  const json facts = json::parse(pumice::engine::kernel_bench::list(arguments.kernel));
  if (arguments.json) {
    std::printf("%s\n", facts.dump(1).c_str());
    return 0;
  }
  print_device(facts);
  const json& selection = facts.at("selection");
  std::printf("features: %s\ncompute units: %s (%s); kernels by: %s\n",
              join(facts.at("device").at("features"), " ").c_str(), text(selection.at("compute_units")).c_str(),
              text(selection.at("compute_units_from")).c_str(), text(selection.at("kernels_from")).c_str());
  for (const json& op : facts.at("operators")) {
    std::printf("\n%s(%s)\n  %s\n", text(op.at("op")).c_str(), text(op.at("parameters")).c_str(),
                text(op.at("case")).c_str());
    for (const json& each : op.at("dispatches"))  // of operators that were named
      std::printf("    %s, %s workgroups of %s\n", text(each.at("shader")).c_str(),
                  join(each.at("workgroups"), " x ").c_str(), text(each.at("invocations")).c_str());
    if (op.at("kernels").size() == 1) {
      std::printf("  %zu cases, compared: %s; %s\n", op.at("cases").size(), text(op.at("compared")).c_str(),
                  text(op.at("cases").at(0)).c_str());
      continue;
    }
    for (const json& kernel : op.at("kernels")) {
      const std::string why = kernel.at("unsupported_reason"), not_recommended = kernel.at("not_recommended_reason");
      const std::string name = kernel.at("kernel"), is = kernel.at("is");
      if (kernel.contains("compile_error")) {
        std::printf("  %-14s the driver refuses it: %s\n", name.c_str(), text(kernel.at("compile_error")).c_str());
        continue;
      }
      std::string took = arguments.kernel.compile ? number(kernel, "compile_ms", "%7.0f ms") : "";
      if (!took.empty()) took.resize(12, ' ');
      std::printf("  %-14s %s%s\n", name.c_str(), took.c_str(),
                  !why.empty()               ? ("it " + why).c_str()
                  : is != name               ? ("is " + is).c_str()
                  : !not_recommended.empty() ? ("runs when forced: it " + not_recommended).c_str()
                                             : "runs here");
    }
  }
  if (arguments.kernel.ops.empty()) print_shaders(facts);
  return 0;
}

int kernel_test(const Arguments& arguments) {
  json all = {{"schema", 1}, {"rows", json::array()}};
  Progress progress;
  size_t run = 0, skipped = 0;
  double worst = 0;
  const uint32_t failed = pumice::engine::kernel_bench::test(arguments.kernel, [&](const std::string& said) {
    const json event = json::parse(said);
    keep(all, event);
    if (event.at("event") == "device") {
      progress.total(event.at("rows"));
      if (!arguments.json) print_device(event);
    }
    if (event.at("event") != "row") return;
    progress.step(text(event.at("kernel")) + "  " + text(event.at("title")));
    const std::string status = event.at("status");
    ++(status == "skipped" ? skipped : run);
    if (status == "failed") progress.fail();
    worst = std::max(worst, event.value("worst", 0.0));
    if (!arguments.json && event.value("compared", "") == "guards only")
      std::printf("guards only  %s: no reference to compare with\n", text(event.at("title")).c_str());
    if (arguments.json || status == "ok") return;
    if (status == "skipped" && arguments.kernel.kernels.empty())
      return;  // skipped kernels are shown only when they were asked for by name
    progress.clear();
    std::printf("%s %s  %s\n  %s\n", status.c_str(), text(event.at("kernel")).c_str(), text(event.at("title")).c_str(),
                text(event.at("why")).c_str());
    if (status == "failed") std::printf("  again: %s\n", text(event.at("repro")).c_str());
  });
  progress.clear();
  if (arguments.json)
    std::printf("%s\n", all.dump().c_str());
  else
    std::printf("%zu run, %zu skipped, %u failed; the largest error is %.2f of what is allowed (seed %llu)\n", run,
                skipped, failed, worst, static_cast<unsigned long long>(arguments.kernel.seed));
  if (failed == 0 && run == 0 && skipped > 0) return 4;  // none of the wanted kernels can run on this device
  return failed == 0 ? 0 : 1;
}

int kernel_compile(const Arguments& arguments) {
  json all = {{"schema", 1}, {"rows", json::array()}};
  Progress progress;
  size_t run = 0, skipped = 0;
  const uint32_t failed = pumice::engine::kernel_bench::compile(arguments.kernel, [&](const std::string& said) {
    const json event = json::parse(said);
    keep(all, event);
    if (event.at("event") == "device") progress.total(event.at("rows"));
    if (event.at("event") != "row") return;
    progress.step(text(event.at("kernel")) + "  " + text(event.at("title")));
    const std::string status = event.at("status");
    ++(status == "skipped" ? skipped : run);
    if (status == "failed") progress.fail();
    if (arguments.json || status != "failed") return;
    progress.clear();
    std::printf("failed %s  %s\n  %s\n", text(event.at("kernel")).c_str(), text(event.at("title")).c_str(),
                text(event.at("why")).c_str());
  });
  progress.clear();
  if (arguments.json)
    std::printf("%s\n", all.dump().c_str());
  else
    std::printf("%zu compiled, %zu skipped, %u failed\n", run - failed, skipped, failed);
  if (failed == 0 && run == 0 && skipped > 0) return 4;
  return failed == 0 ? 0 : 1;
}

int kernel_bench(const Arguments& arguments) {
  json all = {{"schema", 1}, {"rows", json::array()}, {"ceilings", json::array()}, {"rates", json::array()}};
  Progress progress;
  BenchTable table;
  size_t run = 0, skipped = 0;
  const uint32_t failed = pumice::engine::kernel_bench::bench(arguments.kernel, [&](const std::string& said) {
    const json event = json::parse(said);
    keep(all, event);
    const std::string kind = event.at("event");
    if (kind == "device") progress.total(event.at("rows"));
    if (kind == "row") {
      ++(event.at("status") == "skipped" ? skipped : run);
      if (event.at("status") == "failed") progress.fail();
      progress.step(text(event.at("kernel")) + "  " + text(event.at("title")));
    }
    if (arguments.json) return;
    progress.clear();
    if (kind == "device") print_device(event);
    if (kind == "ceiling") print_ceiling(event);
    if (kind == "row") table.add(event);
    if (kind == "regret") {
      table.end();
      print_regret(event);
    }
  });
  progress.clear();
  table.end();
  if (arguments.json) std::printf("%s\n", all.dump().c_str());
  if (failed == 0 && run == 0 && skipped > 0) return 4;
  return failed == 0 ? 0 : 1;
}

int tune(const Arguments& arguments) {
  json all = {{"schema", 1}, {"rows", json::array()}};
  Progress progress;
  bool failed = false;
  pumice::engine::kernel_bench::tune(arguments.kernel, [&](const std::string& said) {
    const json event = json::parse(said);
    const std::string kind = event.at("event");
    if (kind == "candidate") return progress.show(text(event.at("kernel")) + "  " + text(event.at("title")));
    keep(all, event);
    progress.clear();
    if (kind == "device") {
      progress.total(event.at("rows"));
      if (arguments.json) return;
      print_device(event);
      std::printf(kTuneColumns, "product", "table's kernel", "us", "best kernel", "us", "spread", "gain", "kept");
    }
    if (kind == "row") {
      progress.step("");
      failed |= event.at("status") != "ok";
      if (!arguments.json) print_tuned(event);
    }
    if (kind == "kept" && !arguments.json)
      std::printf("%s of %s products measured; %s kept in %s\n", text(event.at("measured")).c_str(),
                  text(event.at("products")).c_str(), text(event.at("entries")).c_str(),
                  text(event.at("path")).c_str());
  });
  progress.clear();
  if (arguments.json) std::printf("%s\n", all.dump().c_str());
  return failed ? 1 : 0;
}

}  // namespace tool
