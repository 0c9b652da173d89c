// SPDX-License-Identifier: Apache-2.0
// What text from a file may hold. Private to serialization/.
#pragma once

#include <cstdint>
#include <string_view>

namespace pumice::engine {

enum class Lines : uint8_t { one, many };  // many: newline and tab are allowed

// Why `text` is refused ("is not UTF-8"), or null. Control characters (an escape code for a terminal, a NUL) are
// refused.
const char* text_problem(std::string_view text, Lines lines);

}  // namespace pumice::engine
