// SPDX-License-Identifier: Apache-2.0
// The file of tuned kernels: what is kept comes back for the same device, driver and features, and nothing else does.
#include "vulkan/tuned_kernels.h"

#include <filesystem>
#include <fstream>

#include "test/vulkan/gpu.h"

namespace pumice::engine {
namespace {

namespace fs = std::filesystem;
using test::Folder;
using test::Messages;
using test::some_device;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kProduct = "op=linear,n=64,k=96,g=0,dtype=f32,scale=f32,storage=buffer";

TunedKernels some() {
  TunedKernels kernels(0x0123456789abcdef);
  kernels.set(kProduct, 1, "gemv1");
  kernels.set(kProduct, 9, "gemv8");
  kernels.set(kProduct, 16, "tile32x64");
  kernels.set(kProduct, 100, "tile64x64");
  return kernels;
}

TEST(TunedKernels, TheNearestRowsOfTheSamePowerOfTwo) {
  const TunedKernels kernels = some();
  for (const auto& [rows, want] : {std::pair<int64_t, const char*>{1, "gemv1"},
                                   {2, ""},
                                   {8, ""},
                                   {9, "gemv8"},
                                   {12, "gemv8"},
                                   {13, "tile32x64"},
                                   {16, "tile32x64"},
                                   {17, ""},
                                   {64, ""},
                                   {65, "tile64x64"},
                                   {128, "tile64x64"},
                                   {129, ""},
                                   {0, ""}})
    EXPECT_EQ(kernels.find(kProduct, rows), want) << rows;
  EXPECT_EQ(kernels.find("op=linear,n=65", 1), "");
}

TEST(TunedKernels, ComeBackFromTheirText) {
  const auto back = TunedKernels::parse(some().text());
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(back->text(), some().text());
  EXPECT_EQ(back->size(), 4u);
  EXPECT_EQ(back->version(), 0x0123456789abcdefu);
}

TEST(TunedKernels, OtherTextIsNone) {
  const std::string good = "version 0000000000000001\n";
  EXPECT_NE(TunedKernels::parse(good), nullptr);
  EXPECT_NE(TunedKernels::parse(good + "p 1 gemv1\n"), nullptr);
  const std::string wide(600, 'p');
  for (const std::string& bad :
       {std::string(), std::string("version \n"), std::string("version 1x\n"), std::string("p 1 gemv1\n"), good + "\n",
        good + "p\n", good + "p 1\n", good + "p 1 \n", good + "p 0 gemv1\n", good + "p -1 gemv1\n",
        good + "p 99999999999 gemv1\n", good + "p 1x gemv1\n", good + "p 1 gemv1 x\n", good + " 1 gemv1\n",
        good + "p 1 ge\x01mv1\n", good + wide + " 1 gemv1\n", good + "p 1 " + wide + "\n",
        good + std::string("p 1 gem\0v1\n", 11)})
    EXPECT_EQ(TunedKernels::parse(bad), nullptr) << bad;
}

struct TunedFileTest : testing::Test {
  Folder folder;
  Features features = baseline_features();
  TunedFile file(const Physical& physical = some_device()) const { return {physical, features, folder.path.string()}; }
  void SetUp() override { ASSERT_TRUE(file().save(some())); }
};

TEST_F(TunedFileTest, WhatIsKeptComesBack) {
  const Messages messages;
  ASSERT_NE(file().load(), nullptr);
  EXPECT_EQ(file().load()->text(), some().text());
  features.kernel = "gemv1";  // forces a kernel, and changes nothing of the device
  EXPECT_NE(file().load(), nullptr);
  EXPECT_THAT(messages.texts, IsEmpty());
}

TEST_F(TunedFileTest, OtherFeaturesHaveAnotherFile) {
  const Messages messages;
  features.bits ^= bit(Feature::coopmat);
  EXPECT_EQ(file().load(), nullptr);
  features = baseline_features();
  features.cpu = true;
  EXPECT_EQ(file().load(), nullptr);
  EXPECT_THAT(messages.texts, IsEmpty()) << "nothing is wrong with that";
}

TEST_F(TunedFileTest, AnotherDriversIsRefusedWithOneWarning) {
  Physical other = some_device();
  other.info.driver_number = 43;
  const Messages messages;
  EXPECT_EQ(file(other).load(), nullptr);
  ASSERT_THAT(messages.texts, SizeIs(1));
  EXPECT_THAT(messages.texts[0], HasSubstr("another device or driver"));
}

TEST_F(TunedFileTest, EveryFlipIsRefusedWithOneWarning) {
  std::ifstream in(file().path(), std::ios::binary);
  const std::string good(std::istreambuf_iterator<char>(in), {});
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
    std::ofstream(file().path(), std::ios::binary | std::ios::trunc) << bad;
    const Messages messages;
    ASSERT_EQ(file().load(), nullptr) << at;
    ASSERT_THAT(messages.texts, SizeIs(1)) << at;
  }
}

TEST_F(TunedFileTest, ALargeOneIsNotRead) {
  fs::resize_file(file().path(), 2 << 20);
  const Messages messages;
  EXPECT_EQ(file().load(), nullptr);
  ASSERT_THAT(messages.texts, SizeIs(1));
  EXPECT_THAT(messages.texts[0], HasSubstr("impossible size"));
}

// A pipeline cache under its name, though it has the right seal, is not taken for it.
TEST_F(TunedFileTest, AnotherKindIsRefused) {
  CacheFile pipelines(kPipelineCache, some_device(), folder.path.string());
  ASSERT_TRUE(pipelines.save({1, 2, 3}));
  fs::copy_file(pipelines.path(), file().path(), fs::copy_options::overwrite_existing);
  const Messages messages;
  EXPECT_EQ(file().load(), nullptr);
  ASSERT_THAT(messages.texts, SizeIs(1));
  EXPECT_THAT(messages.texts[0], HasSubstr("is no table of tuned kernels"));
}

}  // namespace
}  // namespace pumice::engine
