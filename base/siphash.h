// SPDX-License-Identifier: Apache-2.0
// SipHash-2-4: a hash with a key, which nobody without the key can make for bytes of their own.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

namespace pumice::engine {

using SipKey = std::array<uint64_t, 2>;

class SipHash {
 public:
  explicit SipHash(const SipKey& key)
      : v_{key[0] ^ 0x736f6d6570736575ull, key[1] ^ 0x646f72616e646f6dull, key[0] ^ 0x6c7967656e657261ull,
           key[1] ^ 0x7465646279746573ull} {}

  // `bytes` in little-endian words; only the last call may have a number that is not a multiple of 8.
  SipHash& add(std::span<const uint8_t> bytes) {
    length_ += bytes.size();
    while (bytes.size() >= 8) {
      uint64_t word;
      std::memcpy(&word, bytes.data(), 8);
      compress(word);
      bytes = bytes.subspan(8);
    }
    for (size_t i = 0; i < bytes.size(); ++i) tail_ |= uint64_t{bytes[i]} << (8 * i);
    return *this;
  }

  uint64_t finish() {
    compress(tail_ | uint64_t{length_} << 56);
    v_[2] ^= 0xff;
    for (int i = 0; i < 4; ++i) round();
    return v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
  }

 private:
  void compress(uint64_t word) {
    v_[3] ^= word;
    round();
    round();
    v_[0] ^= word;
  }
  void round() {
    v_[0] += v_[1], v_[1] = std::rotl(v_[1], 13) ^ v_[0], v_[0] = std::rotl(v_[0], 32);
    v_[2] += v_[3], v_[3] = std::rotl(v_[3], 16) ^ v_[2];
    v_[0] += v_[3], v_[3] = std::rotl(v_[3], 21) ^ v_[0];
    v_[2] += v_[1], v_[1] = std::rotl(v_[1], 17) ^ v_[2], v_[2] = std::rotl(v_[2], 32);
  }

  uint64_t v_[4], tail_ = 0, length_ = 0;
};

}  // namespace pumice::engine
