// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/event.h"

#include <nlohmann/json.hpp>

namespace pumice::engine::kernel_bench {

using nlohmann::json;

json event(const std::string& kind) {
  json row = json::object();
  put(row, "event", kind);
  return row;
}

void put(json& row, const char* key, const std::string& value) {
  row[key] = value;
}
void put(json& row, const char* key, double value) {
  row[key] = value;
}
void put(json& row, const char* key, size_t value) {
  row[key] = value;
}

}  // namespace pumice::engine::kernel_bench
