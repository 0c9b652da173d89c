// SPDX-License-Identifier: Apache-2.0
// The bytes of a file, read or mapped.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace pumice::engine {

// Small files are read. Large files are mapped with a guard: when another process cuts the file meanwhile, the missing
// pages read as zeros instead of raising SIGBUS. A hash then fails, and check_unchanged reports the reason.
class FileBytes {
 public:
  // Throws IoError, or PathRejected for what is no regular file (a FIFO does not block).
  explicit FileBytes(const std::string& path);
  ~FileBytes();
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  // Frees the bytes; the file stays open.
  void let_go();
  // Reads them anew. Throws IoError when the file changed since it was opened.
  void read_again();
  // Throws IoError when the file changed since it was opened.
  void check_unchanged() const;

 private:
  void read();
  void read_all();
  void map();

  std::string path_;
  int fd_ = -1;
  struct stat before_{};
  std::vector<std::byte> data_;
  void* mapping_ = nullptr;
  int guard_ = -1;
  std::span<const std::byte> bytes_;
};

}  // namespace pumice::engine
