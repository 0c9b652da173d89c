// SPDX-License-Identifier: Apache-2.0
#include "runtime/executorch/trace.h"

#include <executorch/runtime/platform/platform.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

namespace pumice::et {

using nlohmann::json;

namespace {

// Of the kernel call or copy; the Inspector takes an identifier once a run.
std::string identifier(const json& row, std::map<std::string, uint32_t>& seen) {
  const auto call = row.at("call").get<int64_t>();
  const std::string op = row.at("op"), name = call < 0 ? op : "#" + std::to_string(call) + " " + op;
  const uint32_t count = ++seen[name];
  return count == 1 ? name : name + " (" + std::to_string(count) + ")";
}

}  // namespace

pumice_status run_traced(pumice_session session, const std::vector<pumice_tensor>& inputs,
                         executorch::runtime::EventTracer& tracer) {
  const et_timestamp_t begin = executorch::runtime::pal_current_ticks();
  char* text = nullptr;
  if (const auto status =
          pumice_session_profile(session, 0, inputs.data(), static_cast<uint32_t>(inputs.size()), &text)) {
    return status;
  }
  const std::unique_ptr<char, void (*)(char*)> owned(text, pumice_text_free);
  const et_tick_ratio_t ns = executorch::runtime::pal_ticks_to_ns_multiplier();
  const auto ticks = [&](double us) {
    const double since = us * 1e3 * static_cast<double>(ns.denominator) / static_cast<double>(ns.numerator);
    return begin + static_cast<et_timestamp_t>(since);
  };
  std::map<std::string, uint32_t> seen;
  const json profile = json::parse(text);
  for (const json& row : profile.at("rows")) {
    const std::string name = identifier(row, seen);
    const double start = row.at("start_us"), end = start + row.at("us").get<double>();
    const std::string more = json{
        {"kernel", row.at("kernel")},
        {"shapes", row.at("shapes")},
        {"bytes", row.at("bytes")},
        {"flops",
         row.at("flops")}}.dump();
    tracer.log_profiling_delegate(name.c_str(), executorch::runtime::kUnsetDelegateDebugIntId, ticks(start), ticks(end),
                                  more.data(), more.size());
  }
  return PUMICE_OK;
}

}  // namespace pumice::et
