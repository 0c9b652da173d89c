// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/tool/tool.h"

namespace tool {
namespace {

using nlohmann::json;

std::string number(const json& row, const char* key, const char* form) {
  if (!row.contains(key)) return "-";
  char text[32];
  std::snprintf(text, sizeof(text), form, row.at(key).get<double>());
  return text;
}

}  // namespace

int kernel_list(const Arguments& arguments) {
  std::printf("%s\n", pumice::lab::list(arguments.lab).c_str());
  return 0;
}

int kernel_test(const Arguments& arguments) {
  json all = {{"schema", 1}, {"rows", json::array()}};
  uint64_t done = 0, rows = 0, skipped = 0;
  const uint32_t failed = pumice::lab::test(arguments.lab, [&](const std::string& text) {
    json row = json::parse(text);
    if (row.at("event") == "device") {
      rows = row.at("rows");
      all["device"] = row.at("device");
      all["seed"] = row.at("seed");
      if (!arguments.json)
        std::printf("%s, seed %s\n", row.at("device").at("name").get<std::string>().c_str(),
                    row.at("seed").dump().c_str());
    }
    if (row.at("event") != "row") return;
    ++done;
    skipped += row.at("status") == "skipped";
    if (!arguments.json) {
      if (row.at("status") == "failed")
        std::printf("FAILED %s\n  %s\n  %s\n", row.at("kernel").get<std::string>().c_str(),
                    row.at("why").get<std::string>().c_str(), row.at("repro").get<std::string>().c_str());
      if (isatty(STDERR_FILENO))
        std::fprintf(stderr, "\r%llu/%llu", static_cast<unsigned long long>(done),
                     static_cast<unsigned long long>(rows));
    }
    all["rows"].push_back(std::move(row));
  });
  if (arguments.json)
    std::printf("%s\n", all.dump().c_str());
  else
    std::printf("\n%llu run, %llu skipped, %u failed\n", static_cast<unsigned long long>(done - skipped),
                static_cast<unsigned long long>(skipped), failed);
  return failed == 0 ? 0 : 1;
}

int kernel_bench(const Arguments& arguments) {
  json all = {{"schema", 1}, {"rows", json::array()}};
  std::string last;
  const uint32_t failed = pumice::lab::bench(arguments.lab, [&](const std::string& text) {
    json row = json::parse(text);
    if (row.at("event") == "device") {
      all["device"] = row.at("device");
      if (!arguments.json) std::printf("%s\n", row.at("device").at("name").get<std::string>().c_str());
    }
    if (row.at("event") != "row") return;
    if (!arguments.json) {
      const std::string c = row.at("case"), kernel = row.at("kernel");
      if (c != last)
        std::printf("%s\n  %-16s %11s %9s %9s %9s %9s %9s\n", c.c_str(), "kernel", "median us", "p10", "p90", "cpu us",
                    "GB/s", "TFLOP/s");
      last = c;
      if (row.at("status") == "ok")
        std::printf("  %-16s %11s %9s %9s %9s %9s %9s\n", kernel.c_str(), number(row, "median_us", "%.2f").c_str(),
                    number(row, "p10_us", "%.2f").c_str(), number(row, "p90_us", "%.2f").c_str(),
                    number(row, "cpu_us", "%.1f").c_str(), number(row, "gb_s", "%.1f").c_str(),
                    number(row, "tflop_s", "%.3f").c_str());
      else
        std::printf("  %-16s %s: %s\n", kernel.c_str(), row.at("status").get<std::string>().c_str(),
                    row.at("why").get<std::string>().c_str());
      std::fflush(stdout);
    }
    all["rows"].push_back(std::move(row));
  });
  if (arguments.json) std::printf("%s\n", all.dump().c_str());
  return failed == 0 ? 0 : 1;
}

}  // namespace tool
