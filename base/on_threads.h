// SPDX-License-Identifier: Apache-2.0
// The same work on several threads at once, for work that is so long that starting them does not count.
#pragma once

#include <cstddef>
#include <functional>

namespace pumice::engine {

// Calls work() `count` times side by side, of which one is on this thread: it is done where no thread can be started,
// too. work() takes the next of what there is to do until nothing is left, and does not throw.
void on_threads(size_t count, const std::function<void()>& work);

}  // namespace pumice::engine
