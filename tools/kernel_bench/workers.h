// SPDX-License-Identifier: Apache-2.0
// Work in several threads, whose words are said by the caller's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace pumice::engine::kernel_bench {

// Calls body(thread, i, say) for each i below `count`, in order, by `jobs` threads; what they say reaches `report` on
// the caller's thread. Throws the first exception of a body or of `report`, after all threads have ended; no further
// body is called then.
void in_threads(uint32_t jobs, size_t count,
                const std::function<void(uint32_t, size_t, const std::function<void(const std::string&)>&)>& body,
                const std::function<void(const std::string&)>& report);

}  // namespace pumice::engine::kernel_bench
