// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_bench/device.h"

#include <nlohmann/json.hpp>

namespace pumice::engine::kernel_bench {

std::shared_ptr<Device> open(const Options& options) {
  return Device::open({options.device, options.features, options.cache_dir});
}

std::string device_text(const DeviceInfo& info, const Features& features) {
  nlohmann::json names = nlohmann::json::array();
  for (uint32_t f = 0; f < kNumFeatures; ++f) {
    if (features.has(static_cast<Feature>(f))) names.push_back(name(static_cast<Feature>(f)));
  }
  const nlohmann::json all = {{"name", info.name},
                              {"driver", info.driver + " " + info.driver_version},
                              {"kind", info.kind},
                              {"subgroup_size", features.subgroup_size},
                              {"features", names}};
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string device_event(const Device& device, uint64_t rows, uint64_t seed) {
  return nlohmann::json{{"event", "device"},
                        {"device", nlohmann::json::parse(device_text(device.info(), device.features()))},
                        {"rows", rows},
                        {"seed", seed}}
      .dump();
}

}  // namespace pumice::engine::kernel_bench
