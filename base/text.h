// SPDX-License-Identifier: Apache-2.0
// Text that people or files give, word by word.
#pragma once

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

namespace pumice::engine {

// What stands before the first `at`, or all of it; `rest` gets what comes after.
inline std::string_view cut(std::string_view& rest, char at) {
  const size_t end = std::min(rest.find(at), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

// Whether all of the text is a number of that type.
template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// The same of hexadecimal digits.
template <class Number>
bool read_hex(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace pumice::engine
