// SPDX-License-Identifier: Apache-2.0
// Waiting without Python's global lock, also in a thread that the interpreter's end leaves behind.
#pragma once

#include <pybind11/pybind11.h>

#include <cxxabi.h>
#include <unistd.h>

// Whether the interpreter has begun to end: a daemon thread no longer gets the lock.
inline bool python_is_ending() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

// Lets go of the lock while this lives. When the interpreter ends, Python before 3.14 ends each daemon thread that asks
// for the lock by unwinding its stack, and that ends the process in a destructor, where nothing may be thrown. Such a
// thread stays here until the process is gone, as it does in Python 3.14.
class GilReleased {
 public:
  GilReleased() : state_(PyEval_SaveThread()) {}
  ~GilReleased() { take(); }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

  // Calls `work` with the lock, on the thread that let go of it.
  template <class Work>
  auto locked(const Work& work) {
    take();
    struct Again {
      PyThreadState*& state;
      ~Again() { state = PyEval_SaveThread(); }
    } again{state_};
    return work();
  }

 private:
  void take() {
    try {
      PyEval_RestoreThread(state_);
    } catch (abi::__forced_unwind&) {
      for (;;) pause();
    }
  }

  PyThreadState* state_;
};
