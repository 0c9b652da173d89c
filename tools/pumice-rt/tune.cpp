// SPDX-License-Identifier: Apache-2.0
// tune: prints what tools/kernel_bench measured as text or as one JSON document.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/pumice-rt/progress.h"
#include "tools/pumice-rt/tool.h"

namespace tool {
namespace {

using nlohmann::json;

void print_row(const json& row) {
  const std::string title = row.at("title");
  if (row.at("status") != "ok") {
    std::printf("%-52s %s\n", title.c_str(), row.at("wrong").dump().c_str());
    return;
  }
  const std::string table = row.at("table"), best = row.at("best"), tuned = row.at("tuned");
  std::printf("%-52s %-20s %9.2f  %-20s %9.2f %7.2f %6.2f  %s\n", title.c_str(), table.c_str(),
              row.at("table_us").get<double>(), best.c_str(), row.at("best_us").get<double>(),
              row.at("spread_us").get<double>(), row.at("gain").get<double>(), tuned.c_str());
  std::fflush(stdout);
}

}  // namespace

int tune(const Arguments& arguments) {
  json all = {{"schema", 1}, {"rows", json::array()}};
  Progress progress;
  size_t failed = 0;
  pumice::engine::kernel_bench::tune(arguments.kernel, [&](const std::string& said) {
    const json event = json::parse(said);
    const std::string kind = event.at("event");
    if (kind == "candidate") {
      progress.show(event.at("kernel").get<std::string>() + "  " + event.at("title").get<std::string>());
      return;
    }
    if (kind == "device") {
      all["device"] = event.at("device");
      progress.total(event.at("rows"));
    } else if (kind == "row") {
      all["rows"].push_back(event);
      failed += event.at("status") != "ok";
      progress.step("");
    } else {
      all["kept"] = event;
    }
    if (arguments.json) return;
    progress.clear();
    if (kind == "device") {
      print_device(event);
      std::printf("%-52s %-20s %9s  %-20s %9s %7s %6s  %s\n", "product", "table's kernel", "us", "best kernel", "us",
                  "spread", "gain", "kept");
    } else if (kind == "row") {
      print_row(event);
    } else {
      std::printf("%zu of %zu products measured; %zu kept in %s\n", event.at("measured").get<size_t>(),
                  event.at("products").get<size_t>(), event.at("entries").get<size_t>(),
                  event.at("path").get<std::string>().c_str());
    }
  });
  progress.clear();
  if (arguments.json) std::printf("%s\n", all.dump().c_str());
  return failed == 0 ? 0 : 1;
}

}  // namespace tool
