// SPDX-License-Identifier: Apache-2.0
// Addresses in push constants: of what is bound, and of no fewer bytes than the kernel may read there.
#include "graph/bind.h"

#include <cstring>

#include "test/graph/make.h"

namespace pumice::engine::test {
namespace {

struct Addresses : testing::Test {
  void SetUp() override {
    if (!device->features().has(Feature::addresses)) GTEST_SKIP() << "the device has no addresses";
  }
  const std::shared_ptr<Device> device = open_device();
  const Shader shader{.name = "test",
                      .block = nullptr,
                      .first_word = 0,
                      .num_words = 0,
                      .num_bindings = 2,
                      .push_bytes = 16,
                      .num_spec = 1,
                      .features = 0};
};

TEST_F(Addresses, AreThoseOfTheSlicesOfAnyBuffer) {
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::upload, MemoryKind::input, MemoryKind::download}) {
    if (kind != MemoryKind::device && !device->features().cpu) continue;
    const Buffer buffer = device->memory().buffer(1024, kind, "test");
    const std::vector<Slice> bindings = {{buffer.handle(), 0, 16}, {buffer.handle(), 256, 64}};
    Dispatch dispatch{.shader = &shader, .push = std::vector<std::byte>(16, std::byte{7})};
    dispatch.addresses = {{.push = 4, .binding = 1, .bytes = 64}};
    const std::vector<std::byte> push = push_constants(device->memory(), dispatch, bindings);
    uint64_t address = 0;
    std::memcpy(&address, push.data() + 4, sizeof(address));
    EXPECT_EQ(address, device->memory().address(bindings[0]) + 256);
    for (const size_t other : {0, 3, 12, 15}) EXPECT_EQ(push[other], std::byte{7});
    EXPECT_EQ(dispatch.push, std::vector<std::byte>(16, std::byte{7})) << "the next recording may have other buffers";
  }
}

TEST_F(Addresses, OfFewerBytesThanTheKernelReadsAreRefused) {
  const Buffer buffer = device->memory().buffer(1024, MemoryKind::device, "test");
  Dispatch dispatch{.shader = &shader, .push = std::vector<std::byte>(16)};
  dispatch.addresses = {{.push = 8, .binding = 0, .bytes = 65}};
  for (const Slice& slice : {Slice{buffer.handle(), 256, 64}, Slice{}}) {
    const Error error = error_of([&] { push_constants(device->memory(), dispatch, std::vector{slice}); });
    EXPECT_EQ(error.code(), Code::Internal);
  }
}

}  // namespace
}  // namespace pumice::engine::test
