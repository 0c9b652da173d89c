// SPDX-License-Identifier: Apache-2.0
// The one file that sees xxHash (header-only, so that nothing links against it).
#include "serialization/fingerprint.h"
#include "serialization/gates.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <random>

namespace pumice::engine {

uint64_t hash64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::array<uint64_t, 2> fingerprint(std::span<const std::byte> bytes) {
  static const auto kSecret = [] {
    std::array<uint32_t, 48> words;
    std::random_device random;
    for (uint32_t& word : words) word = random();
    return words;
  }();
  const XXH128_hash_t hash = XXH3_128bits_withSecret(bytes.data(), bytes.size(), kSecret.data(), sizeof(kSecret));
  return {hash.low64, hash.high64};
}

}  // namespace pumice::engine
