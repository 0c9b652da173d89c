// SPDX-License-Identifier: Apache-2.0
// What exit() does while threads are inside; each case in a child process of gtest.
#include "base/process_end.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/interrupt.h"

namespace pumice::engine {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

void say(const char* text) {
  (void)!write(STDERR_FILENO, text, std::string_view(text).size());
}

// Ends the process while a thread is inside for `time`, after which the thread says so.
[[noreturn]] void exit_beside(std::chrono::milliseconds time) {
  static std::atomic<bool> entered{false};
  std::thread([time] {
    const Inside inside;
    entered = true;
    std::this_thread::sleep_for(time);
    say("left");
  }).detach();
  while (!entered) std::this_thread::yield();
  std::exit(3);
}

TEST(ProcessEnd, WaitsForAThreadThatIsInside) {
  const auto end = [] {
    std::atexit([] { say(", destroyed"); });
    wait_at_exit();
    exit_beside(300ms);
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(3), "^left, destroyed$");
}

TEST(ProcessEnd, ButNotForEver) {
  const auto end = [] {
    static const auto begin = Clock::now();
    std::atexit([] {
      const auto took = Clock::now() - begin;
      say(took > 1900ms && took < 4s ? "after 2 s" : "at another time");
    });
    wait_at_exit();
    exit_beside(60s);
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(3), "^after 2 s$");
}

TEST(ProcessEnd, LetsNobodyInAndEndsWaits) {
  const auto end = [] {
    std::atexit([] {
      for (const bool waits : {false, true}) {
        try {
          waits ? check_interrupt() : static_cast<void>(Inside());
          say("in");
        } catch (const Error& error) {
          say(name(error.code()));
          say(error.what());
        }
      }
    });
    wait_at_exit();
    const Inside inside;  // of the thread that ends the process: it does not wait for itself
    alarm(1);
    std::exit(3);
  };
  const char* both = "^WrongStatethe process is endingWrongStatethe process is ending$";
  EXPECT_EXIT(end(), testing::ExitedWithCode(3), both);
}

TEST(ProcessEnd, AForkedChildWaitsForNobody) {
  const auto end = [] {
    wait_at_exit();
    static std::atomic<bool> entered{false};
    std::thread([] {
      const Inside inside;
      entered = true;
      std::this_thread::sleep_for(60s);
    }).detach();
    while (!entered) std::this_thread::yield();
    if (fork() != 0) _exit(0);
    alarm(1);
    say("child");
    std::exit(3);
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(0), "child");
}

TEST(ProcessEnd, AChildForkedWhileAThreadRegistersCanExit) {
  const auto end = [] {
    static std::atomic<bool> done{false};
    std::thread beside([] {
      while (!done) wait_at_exit();
    });
    for (int count = 0; count < 300; ++count) {
      const pid_t child = fork();
      if (child == 0) {
        alarm(10);           // a hang
        std::atexit([] {});  // needs what exit() needs
        _exit(0);
      }
      int status = 0;
      waitpid(child, &status, 0);
      if (status == 0) continue;
      say("a child did not end");
      _exit(1);
    }
    done = true;
    beside.join();
    _exit(0);
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace pumice::engine
