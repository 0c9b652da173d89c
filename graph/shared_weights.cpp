// SPDX-License-Identifier: Apache-2.0
#include "graph/shared_weights.h"

#include <map>

namespace pumice::engine {
namespace {

// A weight keeps its device alive, so no other device gets its address while there is an entry for it.
struct Registry {
  std::recursive_mutex mutex;
  std::map<std::pair<const Device*, std::string>, std::weak_ptr<const SharedWeight>> weights;
};

// Never destroyed: at exit the driver may be unloaded before it.
Registry& registry() {
  static auto& registry = *new Registry;
  return registry;
}

}  // namespace

SharedWeights::SharedWeights(std::shared_ptr<Device> device) : device_(std::move(device)), lock_(registry().mutex) {
  std::erase_if(registry().weights, [](const auto& entry) { return entry.second.expired(); });
}

std::shared_ptr<const SharedWeight> SharedWeights::find(const std::string& key) const {
  const auto found = registry().weights.find({device_.get(), key});
  return found == registry().weights.end() ? nullptr : found->second.lock();
}

void SharedWeights::add(const std::string& key, const std::shared_ptr<const SharedWeight>& weight) {
  registry().weights[{device_.get(), key}] = weight;
}

}  // namespace pumice::engine
