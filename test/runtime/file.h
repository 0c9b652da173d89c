// SPDX-License-Identifier: Apache-2.0
// The engine's headers and the public one do not mix: the file comes from a translation unit of its own.
#pragma once

#include <cstddef>
#include <vector>

std::vector<std::byte> adds_file();
