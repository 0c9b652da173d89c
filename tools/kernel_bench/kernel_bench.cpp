// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/kernel_bench.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "ops/op.h"
#include "ops/shared/storage.h"
#include "tools/kernel_bench/baseline.h"
#include "tools/kernel_bench/device.h"
#include "tools/kernel_bench/harness.h"
#include "tools/kernel_bench/table.h"

namespace pumice::engine::kernel_bench {
namespace {

// The engine's errors under a name that front ends may see: its own headers and the public ones do not mix.
template <class Body>
auto translated(const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    throw Failure(static_cast<uint32_t>(error.code()), name(error.code()), error.path(), error.what());
  }
}

}  // namespace

std::string list(const Options& options) {
  return translated([&] { return run_list(options); });
}
uint32_t test(const Options& options, const Report& report) {
  return translated([&] { return run_test(options, report); });
}
uint32_t bench(const Options& options, const Report& report) {
  return translated([&] { return run_bench(options, report); });
}

std::vector<std::string> cases(const Options& options) {
  return translated([&] {
    std::vector<std::string> texts;
    for (const Case& c : choose(options, Purpose::test, true)) texts.push_back(text(c));
    return texts;
  });
}

std::span<const Signature> signatures() {
  static const std::vector<Signature> kAll = [] {
    std::vector<Signature> all(op_signatures().begin(), op_signatures().end());
    for (const Op& op : baselines()) all.push_back(op.signature);
    return all;
  }();
  return kAll;
}

const Builder& builder() {
  static constexpr auto kOp = [](uint32_t op) -> const Op& {
    const size_t count = op_table().size();
    return op < count ? op_table()[op] : baselines()[op - count];
  };
  static const Builder kBuilder{
      .add_nodes = [](Graph& graph, const Method& method,
                      const OpCall& call) { kOp(call.op).build(graph, Args(graph, method, call)); },
      .op_name = [](uint32_t op) { return std::string(kOp(op).signature.name); },
      .copy_storage = copy_storage,
  };
  return kBuilder;
}

std::shared_ptr<Device> open(const Options& options) {
  return Device::open({options.device, options.features, options.cache_dir});
}

std::string device_text(const Device& device) {
  const DeviceInfo& info = device.info();
  nlohmann::json features = nlohmann::json::array();
  for (uint32_t f = 0; f < kNumFeatures; ++f) {
    if (device.features().has(static_cast<Feature>(f))) features.push_back(name(static_cast<Feature>(f)));
  }
  const nlohmann::json all = {{"name", info.name},
                              {"driver", info.driver + " " + info.driver_version},
                              {"kind", info.kind},
                              {"subgroup_size", device.features().subgroup_size},
                              {"features", features}};
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void must_be_one_of(const char* what, std::string_view got, std::span<const std::string_view> known) {
  if (std::find(known.begin(), known.end(), got) != known.end()) return;
  std::string list;
  for (const std::string_view each : known) list += (list.empty() ? "" : ", ") + std::string(each);
  fail(Code::InvalidArgument, Stage::api, what, "unknown %s '%s': did you mean '%s'? There are %s", what,
       printable(got).c_str(), std::string(nearest(got, known)).c_str(), list.c_str());
}

}  // namespace pumice::engine::kernel_bench
