// SPDX-License-Identifier: Apache-2.0
// The one file that sees xxHash (header-only, so that nothing links against it).
#include "serialization/gates.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace pumice {

uint64_t hash64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace pumice
