// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/workgroups.h"

namespace pumice::engine {

void require_subgroups(Launch& launch) {
  if (launch.features.has(Feature::subgroup_size_control)) launch.subgroup_size = launch.features.subgroup_size;
}

}  // namespace pumice::engine
