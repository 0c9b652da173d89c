// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
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

std::string join(const json& list, const char* separator) {
  std::string result;
  for (const json& item : list) result += (result.empty() ? "" : separator) + text(item);
  return result;
}

void show_method(const json& method) {
  std::printf("\nmethod %s\n", text(method.at("name")).c_str());
  for (const json& symbol : method.at("symbols"))
    std::printf("  %s in %s..%s (at export %s)\n", text(symbol.at("name")).c_str(), text(symbol.at("min")).c_str(),
                text(symbol.at("max")).c_str(), text(symbol.at("hint")).c_str());
  for (const char* role : {"inputs", "outputs", "states"})
    for (const json& value : method.at(role))
      std::printf("  %-7s %s: %s[%s]\n", role, text(value.at("name")).c_str(), text(value.at("dtype")).c_str(),
                  join(value.at("dims"), ", ").c_str());
  for (const json& argument : method.at("fixed"))
    std::printf("  fixed   %s = %s\n", text(argument.at("name")).c_str(), text(argument.at("value")).c_str());
  std::map<std::string, int> counts;
  for (const json& op : method.at("ops")) counts[text(op.at("name"))] += 1;
  for (const auto& [op, count] : counts) std::printf("  %5d %s\n", count, op.c_str());
  const json &plan = method.at("plan"), &run = method.at("run");
  std::printf("  %s dispatches at the exported sizes, %s of which wait for others\n",
              text(run.at("dispatches")).c_str(), text(run.at("waits")).c_str());
  std::printf("  memory plan at the exported sizes: arena %s bytes (without reuse %s, lower bound %s)\n",
              text(plan.at("arena_bytes")).c_str(), text(plan.at("naive_bytes")).c_str(),
              text(plan.at("lower_bound_bytes")).c_str());
}

}  // namespace

int check(const Arguments& arguments) {
  pumice::check_file(arguments.model);
  std::printf("%s: ok\n", arguments.model.c_str());
  return 0;
}

int inspect(const Arguments& arguments) {
  using pumice::engine::kernel_bench::inspect;
  const bool here = arguments.kernel.profile.empty();
  const json facts =
      json::parse(here ? pumice::inspect_file(arguments.model) : inspect(arguments.model, arguments.kernel));
  if (arguments.json) {
    std::printf("%s\n", facts.dump(1).c_str());
    return 0;
  }
  const json& header = facts.at("header");
  std::printf("%s: format %s, %s bytes (%s of constants), written by %s, precision %s\n", arguments.model.c_str(),
              text(header.at("version")).c_str(), text(header.at("file_bytes")).c_str(),
              text(header.at("constant_bytes")).c_str(), text(header.at("producer")).c_str(),
              text(header.at("precision")).c_str());
  for (const json& method : facts.at("methods")) show_method(method);
  std::vector<json> constants = facts.at("constants");
  std::sort(constants.begin(), constants.end(),
            [](const json& a, const json& b) { return a.at("bytes") > b.at("bytes"); });
  std::printf("\n%zu constants, the largest\n", constants.size());
  for (size_t i = 0; i < std::min<size_t>(constants.size(), 10); ++i)
    std::printf("%12s  %s\n", text(constants[i].at("bytes")).c_str(), text(constants[i].at("key")).c_str());
  return 0;
}

int devices(const Arguments& arguments) {
  if (arguments.as_profile) {
    std::printf("%s\n", pumice::engine::kernel_bench::profile(arguments.kernel).c_str());
    return 0;
  }
  const json facts = json::parse(pumice::devices());
  if (arguments.json) {
    std::printf("%s\n", facts.dump(1).c_str());
  } else {
    for (const json& device : facts.at("devices")) {
      std::printf("%s  %s (%s), driver %s %s, Vulkan %s\n   features: %s\n", text(device.at("index")).c_str(),
                  text(device.at("name")).c_str(), text(device.at("kind")).c_str(), text(device.at("driver")).c_str(),
                  text(device.at("driver_version")).c_str(), text(device.at("api_version")).c_str(),
                  join(device.at("features"), " ").c_str());
      for (const json& bug : device.at("driver_bugs"))
        std::printf("   driver bug: %s: %s, %s\n", text(bug.at("off")).c_str(), text(bug.at("why")).c_str(),
                    text(bug.at("link")).c_str());
    }
  }
  if (!facts.at("devices").empty()) return 0;
  std::fprintf(stderr, "no Vulkan device: %s\n", text(facts.at("why")).c_str());
  return 4;
}

}  // namespace tool
