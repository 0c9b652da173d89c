// SPDX-License-Identifier: Apache-2.0
#include "base/host_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace pumice::engine {
namespace {

struct Groups : testing::Test {
  std::filesystem::path root;
  Groups() {
    std::string pattern = (std::filesystem::temp_directory_path() / "pumice-test-XXXXXX").string();
    root = mkdtemp(pattern.data());
  }
  ~Groups() override { std::filesystem::remove_all(root); }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
  uint64_t limit(const std::string& membership) const { return cgroup_limit(membership, root.string()); }
};

TEST_F(Groups, TheLeastLimitOfTheGroupsAroundHolds) {
  write("a/memory.max", "5000\n");
  write("a/b/memory.max", "max\n");
  write("a/b/c/memory.max", "9000\n");
  EXPECT_EQ(limit("0::/a/b/c\n"), 5000u);
  EXPECT_EQ(limit("0::/a/b\n"), 5000u);
  EXPECT_EQ(limit("0::/other\n"), UINT64_MAX);
}

TEST_F(Groups, AContainersOwnRootHolds) {
  write("memory.max", "7000\n");
  EXPECT_EQ(limit("0::/\n"), 7000u);
  EXPECT_EQ(limit("0::/../..\n"), 7000u);
  EXPECT_EQ(limit("0::/docker/not/mounted\n"), 7000u);
}

TEST_F(Groups, TheFirstVersionToo) {
  write("memory/job/memory.limit_in_bytes", "3000\n");
  EXPECT_EQ(limit("12:cpu,cpuacct:/x\n4:memory:/job\n0::/\n"), 3000u);
}

TEST_F(Groups, OtherTextIsPassedOver) {
  write("a/memory.max", "many\n");
  for (const char* text : {"", "\n", "0::\n", "::", "garbage\n", "0::/a\n"}) EXPECT_EQ(limit(text), UINT64_MAX) << text;
}

TEST(HostMemory, IsThere) {
  EXPECT_GT(host_memory_bytes(), uint64_t{64} << 20);
  EXPECT_LT(host_memory_bytes(), uint64_t{1} << 50);
}

}  // namespace
}  // namespace pumice::engine
