// SPDX-License-Identifier: Apache-2.0
#include "base/on_threads.h"

#include <thread>
#include <vector>

#include "base/log.h"

namespace pumice::engine {

void on_threads(size_t count, const std::function<void()>& work) {
  std::vector<std::thread> threads;
  try {
    threads.reserve(count);
    while (threads.size() + 1 < count) threads.emplace_back(work);
  } catch (const std::exception& error) {
    log(LogLevel::debug, "work goes on with %zu threads: %s", threads.size() + 1, error.what());
  }
  work();
  for (std::thread& each : threads) each.join();
}

}  // namespace pumice::engine
