// SPDX-License-Identifier: Apache-2.0
// Paths that are not regular files, and files that change during reading.
#include "runtime/file_bytes.h"

#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "test/vulkan/gpu.h"

namespace pumice::engine {
namespace {

using test::error_of;

struct FileTest : testing::Test {
  test::Folder folder;
  std::string path = (folder.path / "model.pumice").string();
  void make(uint64_t bytes) {
    std::ofstream(path) << "first";
    std::filesystem::resize_file(path, bytes);
  }
};

TEST_F(FileTest, SmallAndLargeFilesAreRead) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{5}, uint64_t{100 << 20}}) {
    make(bytes);
    const FileBytes file(path);
    ASSERT_EQ(file.bytes().size(), bytes);
    if (bytes > 0) {
      EXPECT_EQ(file.bytes()[1], std::byte{'i'});
    }
    file.check_unchanged();
  }
}

TEST_F(FileTest, AMappedFileThatIsCutReadsAsZeros) {  // F23
  struct sigaction before{}, after{};
  sigaction(SIGBUS, nullptr, &before);
  {
    make(100 << 20);
    const FileBytes file(path);
    EXPECT_EQ(file.bytes()[0], std::byte{'f'});
    std::filesystem::resize_file(path, 0);
    EXPECT_EQ(file.bytes()[0], std::byte{0});
    EXPECT_EQ(file.bytes()[99 << 20], std::byte{0});
    EXPECT_EQ(error_of([&] { file.check_unchanged(); }).code(), Code::IoError);
  }
  sigaction(SIGBUS, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

TEST_F(FileTest, BytesThatWereFreedAreReadAgain) {
  for (const uint64_t bytes : {uint64_t{5}, uint64_t{100 << 20}}) {
    make(bytes);
    FileBytes file(path);
    file.let_go();
    EXPECT_TRUE(file.bytes().empty());
    file.read_again();
    ASSERT_EQ(file.bytes().size(), bytes);
    EXPECT_EQ(file.bytes()[1], std::byte{'i'});
    file.let_go();
    make(bytes + 1);
    EXPECT_EQ(error_of([&] { file.read_again(); }).code(), Code::IoError);
  }
}

TEST_F(FileTest, AFileThatGrowsIsNoticed) {
  make(100);
  const FileBytes file(path);
  make(101);
  EXPECT_EQ(error_of([&] { file.check_unchanged(); }).code(), Code::IoError);
}

TEST_F(FileTest, OnlyRegularFiles) {  // F21
  EXPECT_EQ(error_of([&] { FileBytes("/no/such/file"); }).code(), Code::IoError);
  EXPECT_EQ(error_of([&] { FileBytes("/"); }).code(), Code::PathRejected);
  EXPECT_EQ(error_of([&] { FileBytes("/dev/zero"); }).code(), Code::PathRejected);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { FileBytes{path}; }).code(), Code::PathRejected);  // and does not wait for a writer
}

}  // namespace
}  // namespace pumice::engine
