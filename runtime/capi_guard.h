// SPDX-License-Identifier: Apache-2.0
// How every function of the C interface begins: the one place where exceptions are caught, and the checks of what
// callers hand in.
#pragma once

#include <algorithm>
#include <cfenv>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <system_error>

#include "base/error.h"
#include "base/process_end.h"
#include "pumice/pumice.h"

namespace pumice::engine {

// Of the calling thread; never throws.
pumice_status set_error(Code code, const char* stage, const char* path, const char* text) noexcept;
const pumice_error& last_error();

// Throws WrongState in a child that was forked after the first call: it has the handles, but not their device.
void must_be_parent();

// Numbers are rounded to nearest and denormal ones kept during a call, whatever the host has set for its thread: also
// in the threads that a driver starts meanwhile, which inherit this.
class DefaultFloats {
 public:
  DefaultFloats() {
    std::fegetenv(&hosts_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloats() { std::fesetenv(&hosts_); }
  DefaultFloats(const DefaultFloats&) = delete;

 private:
  std::fenv_t hosts_;
};

template <class Body>
pumice_status guarded(const Body& body) noexcept {
  try {
    must_be_parent();
    const Inside inside;
    const DefaultFloats floats;
    body();
    return PUMICE_OK;
  } catch (const Error& error) {
    return set_error(error.code(), name(error.stage()), error.path().c_str(), error.what());
  } catch (const std::bad_alloc&) {
    return set_error(Code::OutOfHostMemory, "api", "", "no host memory");
  } catch (const std::system_error& error) {
    return set_error(Code::OutOfHostMemory, "api", "", error.what());
  } catch (const std::exception& error) {
    return set_error(Code::Internal, "api", "", error.what());
  } catch (...) {
    return set_error(Code::Internal, "api", "", "something that is no std::exception was thrown");
  }
}

template <class T>
T& required(T* pointer, const char* what) {
  if (pointer == nullptr) fail(Code::InvalidArgument, Stage::api, what, "is null");
  return *pointer;
}

// A struct as this library knows it. A larger one, from a newer header, must be zero where it is unknown; what an older
// header's lacks is zero here. `older`: its size in that header.
template <class T>
T known(const T* given, const char* what, size_t older = sizeof(T)) {
  const uint32_t size = required(given, what).struct_size;
  if (size < sizeof(T) && size != older)
    fail(Code::InvalidArgument, Stage::api, what, "struct_size is %u, expected %zu; was it made with PUMICE_INIT?",
         size, sizeof(T));
  if (size > 4096) fail(Code::InvalidArgument, Stage::api, what, "struct_size is %u", size);
  const char* bytes = reinterpret_cast<const char*>(given);
  for (size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] != 0)
      fail(Code::UnsupportedVersion, Stage::api, what,
           "byte %zu is set, which this library (interface %d) does not know", i, PUMICE_API_VERSION);
  }
  T result{};
  std::memcpy(&result, given, std::min<size_t>(size, sizeof(T)));
  return result;
}

inline std::span<const std::byte> bytes_of(const void* file, uint64_t bytes) {
  if (file == nullptr && bytes != 0) fail(Code::InvalidArgument, Stage::api, "file", "is null");
  return {static_cast<const std::byte*>(file), bytes};
}

inline char* handed_over(const std::string& text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace pumice::engine
