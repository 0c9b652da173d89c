// SPDX-License-Identifier: Apache-2.0
#include "ops/shared/workgroups.h"

#include <cinttypes>

namespace pumice::engine {

void over_groups(Launch& launch, uint64_t groups, uint32_t lanes) {
  const uint32_t most = launch.features.max_groups[0];
  const uint64_t rows = (groups + most - 1) / most;
  if (rows > launch.features.max_groups[1])
    fail(Code::LimitExceeded, Stage::plan, "", "%" PRIu64 " workgroups are more than one dispatch takes", groups);
  launch.groups = {static_cast<uint32_t>(rows == 0 ? 0 : (groups + rows - 1) / rows), static_cast<uint32_t>(rows), 1};
  launch.spec.assign(1, lanes);
}

void require_subgroups(Launch& launch) {
  if (launch.features.has(Feature::subgroup_size_control)) launch.subgroup_size = launch.features.subgroup_size;
}

}  // namespace pumice::engine
