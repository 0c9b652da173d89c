// SPDX-License-Identifier: Apache-2.0
#include "tools/pumice-rt/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <thread>
#include <utility>

namespace tool {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::atomic<uint64_t> the_session{0};
std::atomic<bool> interrupted{false};
std::mutex last_words_mutex;  // stays locked while the process ends, so that nobody destroys what `last_words` uses
std::function<void()> last_words;

// A run may begin after one was cancelled, so that it is done again and again.
void cancel_and_exit() {
  interrupted = true;
  for (const auto end = Clock::now() + milliseconds(1800); the_session != 0 && Clock::now() < end;) {
    pumice_session_cancel({the_session});
    std::this_thread::sleep_for(milliseconds(20));
  }
  last_words_mutex.lock();
  if (last_words) last_words();
  _exit(kInterrupted);
}

}  // namespace

void see_interrupts() {
  struct sigaction now{};
  if (sigaction(SIGINT, nullptr, &now) != 0 || now.sa_handler == SIG_IGN) return;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  // All threads inherit the mask, so that only sigwait() gets the signal.
  if (pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) return;
  std::thread([set] {
    int signal = 0;
    while (sigwait(&set, &signal) != 0) continue;
    cancel_and_exit();
  }).detach();
}

bool is_interrupted() {
  return interrupted;
}

AtInterrupt::AtInterrupt(std::function<void()> say) {
  const std::lock_guard lock(last_words_mutex);
  last_words = std::move(say);
}
AtInterrupt::~AtInterrupt() {
  const std::lock_guard lock(last_words_mutex);
  last_words = nullptr;
}

Interruptible::Interruptible(const pumice::Session& session) {
  the_session = session.handle().handle;
}
Interruptible::~Interruptible() {
  the_session = 0;
}

}  // namespace tool
