// SPDX-License-Identifier: Apache-2.0
// The end of a process while threads are inside of the engine: exit() destroys what Vulkan's driver and layers keep in
// static variables, which a thread in the middle of a Vulkan call goes on using. So exit() first waits for those
// threads, and no other gets in.
#pragma once

namespace pumice::engine {

// exit() waits, at most 2 s, before it destroys what was built up to now. Called again where libraries may have built
// more. A forked child does not wait: it has none of those threads.
void wait_at_exit();

// Throws WrongState when the process is ending.
void refuse_at_exit();

// A call of the engine, which the end of the process waits for. Libraries build static variables where they first need
// them, mostly in the first calls: so after those calls wait_at_exit() again, and then ever more seldom. Throws
// WrongState when it has begun.
class Inside {
 public:
  Inside();
  ~Inside();
  Inside(const Inside&) = delete;
};

}  // namespace pumice::engine
