// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <executorch/runtime/core/event_tracer.h>

#include <vector>

#include "pumice/pumice.h"

namespace pumice::et {

// Runs method 0 with timestamps. Every dispatch and copy becomes a profiling event: its delegate debug identifier is
// "#3 linear" for operator call 3 of the blob (preprocess maps these to nodes of the model), "#3 linear (2)" for the
// call's second dispatch, "copy in" or "copy out" for a copy; its metadata is JSON: kernel, shapes, bytes, flops.
// Times are the device's; the first event begins when this was called.
pumice_status run_traced(pumice_session session, const std::vector<pumice_tensor>& inputs,
                         executorch::runtime::EventTracer& tracer);

}  // namespace pumice::et
