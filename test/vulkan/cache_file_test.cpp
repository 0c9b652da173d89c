// SPDX-License-Identifier: Apache-2.0
#include "vulkan/cache_file.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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

std::vector<uint8_t> some_body() {
  std::vector<uint8_t> body(300);
  for (size_t i = 0; i < body.size(); ++i) body[i] = static_cast<uint8_t>(i * 7);
  return body;
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& text) {
  fs::remove(path);
  std::ofstream(path, std::ios::binary) << text;
}

struct PipelineCache : testing::Test {
  Folder folder;
  CacheFile file() const { return {kPipelineCache, some_device(), folder.path.string()}; }
  std::vector<uint8_t> load() const { return file().load(); }
};

TEST_F(PipelineCache, ComesBack) {
  const Messages messages;
  EXPECT_THAT(load(), IsEmpty());
  file().save(some_body());
  EXPECT_EQ(load(), some_body());
  EXPECT_THAT(messages.texts, IsEmpty());
  EXPECT_THAT(std::vector<fs::path>(fs::directory_iterator(folder.path), {}), SizeIs(2)) << "the cache and its key";
}

// Someone who can write the file, but cannot read the key, makes no cache that is taken.
TEST_F(PipelineCache, AFileOfAnotherKeyIsRefused) {
  file().save(some_body());
  const std::string good = contents(file().path()), key = contents(folder.path / "key");
  ASSERT_EQ(key.size(), 16u);
  const auto refused = [&](const char* why) {
    const Messages messages;
    EXPECT_THAT(load(), IsEmpty()) << why;
    ASSERT_THAT(messages.texts, SizeIs(1)) << why;
    EXPECT_THAT(messages.texts[0], HasSubstr(why));
  };
  fs::permissions(folder.path / "key", fs::perms::group_read, fs::perm_options::add);
  refused("no key");  // others may have read it
  file().save(some_body());
  EXPECT_EQ(load(), some_body());
  EXPECT_NE(contents(folder.path / "key"), key);
  write(file().path(), good);
  refused("not written by this user");
  fs::remove(folder.path / "key");
  refused("no key");
  fs::create_symlink("/dev/zero", folder.path / "key");
  refused("no key");
  file().save(some_body());
  EXPECT_EQ(load(), some_body());
}

TEST_F(PipelineCache, WhatOthersMayWriteIsRefused) {
  file().save(some_body());
  for (const fs::path& path : {fs::path(file().path()), folder.path}) {
    for (const fs::perms each : {fs::perms::group_write, fs::perms::others_write}) {
      fs::permissions(path, each, fs::perm_options::add);
      const Messages messages;
      EXPECT_THAT(load(), IsEmpty()) << path;
      EXPECT_THAT(messages.texts, SizeIs(1)) << path;
      fs::permissions(path, each, fs::perm_options::remove);
    }
  }
  EXPECT_EQ(load(), some_body());
}

TEST_F(PipelineCache, TemporaryFilesOfOthersStayAndOldOnesGo) {
  const fs::path own = file().path() + "." + std::to_string(getpid()) + ".tmp", old = file().path() + ".5.tmp";
  write(own, "of a process of the same number in another container");
  write(old, "of a process that was killed");
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));
  file().save(some_body());
  EXPECT_TRUE(fs::exists(own));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_EQ(load(), some_body());
}

TEST_F(PipelineCache, FoldersAreMade) {
  const std::string deep = (folder.path / "a" / "b").string();
  CacheFile(kPipelineCache, some_device(), deep).save(some_body());
  EXPECT_EQ(CacheFile(kPipelineCache, some_device(), deep + "/").load(), some_body());
}

TEST_F(PipelineCache, EveryCutAndFlipIsSeen) {
  file().save(some_body());
  const std::string good = contents(file().path());
  for (size_t cut = 0; cut < good.size(); ++cut) {
    write(file().path(), good.substr(0, cut));
    const Messages messages;
    ASSERT_THAT(load(), IsEmpty()) << cut;
    ASSERT_THAT(messages.texts, SizeIs(1)) << cut;
  }
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
    write(file().path(), bad);
    const Messages messages;
    ASSERT_THAT(load(), IsEmpty()) << at;
    ASSERT_THAT(messages.texts, SizeIs(1)) << at;
  }
  write(file().path(), good + "x");
  const Messages messages;
  EXPECT_THAT(load(), IsEmpty());
}

TEST_F(PipelineCache, OtherDevicesAndDriversAreRefused) {
  file().save(some_body());
  Physical other = some_device();
  other.info.driver_number = 43;
  const Messages messages;
  EXPECT_THAT(CacheFile(kPipelineCache, other, folder.path.string()).load(), IsEmpty());
  other = some_device();
  other.cache_uuid[15] ^= 1;
  EXPECT_THAT(CacheFile(kPipelineCache, other, folder.path.string()).load(), IsEmpty());
  EXPECT_THAT(messages.texts, SizeIs(2));
}

TEST_F(PipelineCache, HugeFileIsNotRead) {
  file().save(some_body());
  fs::resize_file(file().path(), 2ull << 30);
  const Messages messages;
  EXPECT_THAT(load(), IsEmpty());
  EXPECT_THAT(messages.texts, SizeIs(1));
}

// E02: each of these runs without a cache, with one warning.
TEST_F(PipelineCache, BadFoldersCostOneWarning) {
  const fs::path real = folder.path / "real", link = folder.path / "link", plain = folder.path / "plain",
                 open = folder.path / "open", fifo = folder.path / "fifo";
  fs::create_directory(real);
  fs::create_directory_symlink(real, link);
  write(plain, "text");
  fs::create_directory(open);
  fs::permissions(open, fs::perms::all);
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const fs::path& each : {link, plain, open, fifo, plain / "below", fs::path("/proc/none")}) {
    const Messages messages;
    CacheFile cache(kPipelineCache, some_device(), each.string());
    EXPECT_THAT(cache.load(), IsEmpty()) << each;
    cache.save(some_body());
    cache.save(some_body());
    EXPECT_THAT(messages.texts, SizeIs(1)) << each;
  }
}

TEST_F(PipelineCache, ReadOnlyFolder) {
  if (geteuid() == 0) GTEST_SKIP() << "root writes anywhere";
  fs::permissions(folder.path, fs::perms::owner_read | fs::perms::owner_exec);
  const Messages messages;
  CacheFile cache = file();
  EXPECT_THAT(cache.load(), IsEmpty());
  cache.save(some_body());
  EXPECT_THAT(messages.texts, SizeIs(1));
}

TEST_F(PipelineCache, AFifoOrLinkInPlaceOfTheFileIsReplaced) {
  const fs::path victim = folder.path / "victim";
  for (const bool link : {false, true}) {
    fs::remove(file().path());
    write(victim, "precious");
    if (link) {
      fs::create_symlink(victim, file().path());
    } else {
      ASSERT_EQ(mkfifo(file().path().c_str(), 0600), 0);
    }
    const Messages messages;
    EXPECT_THAT(load(), IsEmpty());
    EXPECT_THAT(messages.texts, SizeIs(1));
    file().save(some_body());
    EXPECT_EQ(load(), some_body());
    EXPECT_EQ(contents(victim), "precious");
  }
}

// E04 and, as far as a test can, E03: after several writers and one that was killed, the file is complete.
TEST_F(PipelineCache, ManyWritersLeaveOneWholeFile) {
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      for (int k = 0; k < (i == 0 ? 1'000'000 : 20); ++k) file().save(some_body());
      _exit(0);
    }
    children.push_back(child);
  }
  const Messages messages;
  for (int k = 0; k < 200; ++k) {
    const std::vector<uint8_t> body = load();
    ASSERT_TRUE(body.empty() || body == some_body());
  }
  kill(children[0], SIGKILL);
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  EXPECT_EQ(load(), some_body());
  EXPECT_THAT(messages.texts, IsEmpty());
}

TEST_F(PipelineCache, Off) {
  EXPECT_THAT(CacheFile(kPipelineCache, some_device(), "off").path(), IsEmpty());
}

TEST_F(PipelineCache, ADeviceWritesAndReadsIt) {
  const std::string dir = (folder.path / "cache").string();
  test::open("", dir)->pipelines().get(
      {&test::kAdd, {64}, 0});  // the device is destroyed after this line, and saves the cache
  std::vector<fs::path> files(fs::directory_iterator(dir), {});
  std::erase_if(files, [](const fs::path& each) { return each.filename() == "key"; });
  ASSERT_THAT(files, SizeIs(1));
  const fs::file_time_type written = fs::last_write_time(files[0]);
  {
    const Messages messages;
    const auto device = test::open("", dir);
    device->pipelines().get({&test::kAdd, {64}, 0});
    device->pipelines().save();
    EXPECT_THAT(messages.texts, IsEmpty());
  }
  EXPECT_EQ(fs::last_write_time(files[0]), written) << "nothing new, so nothing is written";
  const auto bytes = fs::file_size(files[0]);
  fs::resize_file(files[0], 50);
  const Messages messages;
  test::open("", dir)->pipelines().get({&test::kAdd, {64}, 0});
  EXPECT_THAT(messages.texts, SizeIs(1));
  EXPECT_EQ(fs::file_size(files[0]), bytes);
}

}  // namespace
}  // namespace pumice::engine
