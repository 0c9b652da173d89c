// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/device.h"

#include <nlohmann/json.hpp>

namespace pumice::engine::kernel_bench {

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

std::string device_event(const Device& device, uint64_t rows, uint64_t seed) {
  return nlohmann::json{
      {"event", "device"}, {"device", nlohmann::json::parse(device_text(device))}, {"rows", rows}, {"seed", seed}}
      .dump();
}

}  // namespace pumice::engine::kernel_bench
