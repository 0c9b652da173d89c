// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "serialization/constants.h"
#include "serialization/hash.h"
#include "test/serialization/expect.h"
#include "test/serialization/sample.h"

namespace pumice::engine::test {
namespace {

TEST(Constants, BytesOfTheFileAndFromOutside) {
  Model m = sample();
  const Bytes bias(m.constants.begin() + 256, m.constants.begin() + 288);
  Bytes bytes = file(m);
  const Program inside = read_file(bytes);
  EXPECT_TRUE(std::ranges::equal(constant_bytes(inside, 1, {}), bias));
  expect_error(Code::BadIndex, [&] { constant_bytes(inside, 4, {}); });

  m.program.constants[1] = {"bias", 0, 32, hash64(bias), true};
  std::fill_n(m.constants.begin() + 256, 32, std::byte{0});
  m.program.constants[2].offset = 256;
  m.program.constants[3].offset = 320;
  m.constants.erase(m.constants.begin() + 256, m.constants.begin() + 320);
  bytes = file(m);
  const Program outside = read_file(bytes);
  EXPECT_TRUE(std::ranges::equal(constant_bytes(outside, 1, [&](std::string_view) { return std::span(bias); }), bias));
  const auto refused = [&](const char* path, const char* part, const ExternalData& data) {
    expect_error(Code::WeightsMismatch, path, part, [&] { constant_bytes(outside, 1, data); });
  };
  refused("constants[1]", "'bias'", {});
  refused("constants[1]", "none were handed over", [](std::string_view) { return std::nullopt; });
  refused("constants[1].size", "got 31", [&](std::string_view) { return std::span(bias).first(31); });
  refused("constants[1].hash", "hash", [&](std::string_view) { return std::span(bytes).first(32); });
}

TEST(Constants, HashesOnSeveralThreads) {
  Model m = sample();
  for (int i = 0; i < 40; i++) add_constant(m, "big" + std::to_string(i), Bytes(1 << 20, std::byte(i)));
  Bytes bytes = file(m);
  EXPECT_EQ(read_file(bytes).constants.size(), 44u);
  for (const size_t at : {size_t{1} << 20, size_t{2} << 20}) bytes[bytes.size() - at] ^= std::byte{1};
  expect_error(Code::ChecksumMismatch, "constants[42]", "big38",
               [&] { read_file(bytes); });  // always the first one in the file
  EXPECT_EQ(read_file(bytes, false).constants.size(), 44u);
}

}  // namespace
}  // namespace pumice::engine::test
