// SPDX-License-Identifier: Apache-2.0
#include "runtime/executorch/options.h"

#include <cstring>
#include <iterator>

namespace pumice::et {

using executorch::runtime::BackendOption;
using executorch::runtime::CompileSpec;
using executorch::runtime::Error;
using executorch::runtime::kMaxOptionValueLength;

namespace {

using Text = std::array<char, kMaxOptionValueLength>;
constexpr std::string_view kTextKeys[] = {"device", "features", "cache_dir"};
constexpr std::string_view kProfile = "profile";
constexpr std::string_view kAtExport[] = {"least_sizes", "external_data"};  // compile specs of no use here

std::string_view key_of(const BackendOption& option) {
  return {option.key, strnlen(option.key, sizeof option.key)};
}

Error refuse(const char* kind, std::string_view key, const char* why) {
  ET_LOG(Error, "PumiceBackend: the %s '%.*s' %s", kind, static_cast<int>(key.size()), key.data(), why);
  return Error::InvalidArgument;
}

}  // namespace

std::string Options::* Options::text(std::string_view key) {
  for (size_t i = 0; i < std::size(kTextKeys); ++i) {
    if (key == kTextKeys[i]) {
      return kTexts[i];
    }
  }
  return nullptr;
}

Error Options::set(const CompileSpec& spec) {
  const std::string_view key = spec.key;
  for (const std::string_view known : kAtExport) {
    if (key == known) {
      return Error::Ok;
    }
  }
  std::string Options::* field = text(key);
  if (field == nullptr) {
    return refuse("compile spec", key, "is unknown; there are device, features and cache_dir");
  }
  (this->*field).assign(static_cast<const char*>(spec.value.buffer), spec.value.nbytes);
  return Error::Ok;
}

Error Options::set(const BackendOption& option) {
  const std::string_view key = key_of(option);
  if (key == kProfile) {
    const bool* on = std::get_if<bool>(&option.value);
    if (on == nullptr) {
      return refuse("option", key, "is a bool");
    }
    profile = *on;
    return Error::Ok;
  }
  std::string Options::* field = text(key);
  if (field == nullptr) {
    return refuse("option", key, "is unknown; there are device, features, cache_dir and profile");
  }
  const Text* value = std::get_if<Text>(&option.value);
  if (value == nullptr) {
    return refuse("option", key, "is text");
  }
  const size_t size = strnlen(value->data(), value->size());
  if (size + 1 >= value->size()) {  // ExecuTorch cuts longer texts without an error
    return refuse("option", key, "is too long: at most 254 characters");
  }
  (this->*field).assign(value->data(), size);
  return Error::Ok;
}

Error Options::get(BackendOption& option) const {
  const std::string_view key = key_of(option);
  if (key == kProfile) {
    option.value = profile;
    return Error::Ok;
  }
  std::string Options::* field = text(key);
  if (field == nullptr) {
    refuse("option", key, "is unknown; there are device, features, cache_dir and profile");
    return Error::NotFound;
  }
  Text value{};
  const std::string& value_set = this->*field;
  std::memcpy(value.data(), value_set.data(), std::min(value_set.size(), value.size() - 1));
  option.value = value;
  return Error::Ok;
}

void Options::merge(const Options& later) {
  for (std::string Options::* field : kTexts) {
    if (!(later.*field).empty()) {
      this->*field = later.*field;
    }
  }
  profile = later.profile;
}

}  // namespace pumice::et
