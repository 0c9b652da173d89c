// SPDX-License-Identifier: Apache-2.0
#include "runtime/executorch/errors.h"

#include <executorch/runtime/platform/log.h>

#include <cstring>
#include <string_view>

namespace pumice::et {

using executorch::runtime::Error;

Error code_of(pumice_status status) {
  switch (status) {
    case PUMICE_OK:
      return Error::Ok;
    case PUMICE_BAD_HEADER:
    case PUMICE_UNSUPPORTED_VERSION:
    case PUMICE_UNKNOWN_OP:
      return Error::DelegateInvalidCompatibility;
    case PUMICE_PATH_REJECTED:
    case PUMICE_IO_ERROR:
      return Error::AccessFailed;
    case PUMICE_INVALID_ARGUMENT:
      return Error::InvalidArgument;
    case PUMICE_WRONG_STATE:
    case PUMICE_BUSY:
      return Error::InvalidState;
    case PUMICE_OUT_OF_HOST_MEMORY:
      return Error::MemoryAllocationFailed;
    case PUMICE_OUT_OF_DEVICE_MEMORY:
      return Error::DelegateMemoryAllocationFailed;
    case PUMICE_DEVICE_UNSUPPORTED:
      return Error::NotSupported;
    default:
      return status < PUMICE_INVALID_ARGUMENT ? Error::InvalidProgram : Error::Internal;
  }
}

Error failed(const char* doing, pumice_status status) {
  const pumice_error* error = pumice_last_error();
  const char* text = error->text;  // a list of devices has several lines; ExecuTorch cuts a message at 256 characters
  const auto line = [&] {
    const char* begin = text;
    const size_t size = std::strcspn(text, "\n");
    text += size + (text[size] != '\0');
    return std::string_view(begin, size);
  };
  const std::string_view first = line();
  ET_LOG(Error, "PumiceBackend: %s: %s: %s%s%.*s", doing, error->name, error->path, *error->path ? ": " : "",
         static_cast<int>(first.size()), first.data());
  while (*text != '\0') {
    const std::string_view next = line();
    ET_LOG(Error, "PumiceBackend: %.*s", static_cast<int>(next.size()), next.data());
  }
  return code_of(status);
}

}  // namespace pumice::et
