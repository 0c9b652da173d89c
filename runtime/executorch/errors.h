// SPDX-License-Identifier: Apache-2.0
// Errors of the C interface in ExecuTorch's terms.
#pragma once

#include <executorch/runtime/core/error.h>

#include "pumice/pumice.h"

namespace pumice::et {

executorch::runtime::Error code_of(pumice_status status);

// Writes the text of the thread's last error to ExecuTorch's log and returns its code; `doing`: "cannot load".
executorch::runtime::Error failed(const char* doing, pumice_status status);

}  // namespace pumice::et
