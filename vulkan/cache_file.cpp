// SPDX-License-Identifier: Apache-2.0
#include "vulkan/cache_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include "base/log.h"

namespace pumice::engine {
namespace {

class File {
 public:
  File(const std::string& path, int flags)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  explicit operator bool() const { return fd_ >= 0; }
  int fd() const { return fd_; }

  bool read(void* data, size_t bytes) { return whole(static_cast<char*>(data), bytes, ::read); }
  bool write(const void* data, size_t bytes) { return whole(static_cast<const char*>(data), bytes, ::write); }

 private:
  template <class Data, class Function>
  bool whole(Data* data, size_t bytes, Function function) {
    while (bytes > 0) {
      const ssize_t done = function(fd_, data, bytes);
      if (done < 0 && errno == EINTR) continue;
      if (done == 0) errno = EIO;  // shorter than by fstat
      if (done <= 0) return false;
      data += done;
      bytes -= static_cast<size_t>(done);
    }
    return true;
  }

  int fd_;
};

std::string default_folder(const std::string& cache_dir) {
  if (cache_dir == "off") return "";
  if (!cache_dir.empty()) return cache_dir;
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg != nullptr && *xdg == '/') return std::string(xdg) + "/pumice";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return std::string(home) + "/.cache/pumice";
  return "";
}

bool make_folders(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    if (::mkdir(path.substr(0, slash).c_str(), 0700) != 0 && errno != EEXIST) return false;
  }
  return ::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

std::string errno_text() {
  return std::strerror(errno);
}

uint64_t random_word() {
  std::random_device device;  // of the system; throws where there is none
  return uint64_t{device()} << 32 | device();
}

// A process number would do for processes of one system, not for containers that share a folder.
std::string temporary_for(const std::string& path) {
  return path + format(".%016llx.tmp", static_cast<unsigned long long>(random_word()));
}

// Why the bytes of a file may not be the user's own; null where they are.
const char* foreign(const struct stat& about) {
  if (!S_ISREG(about.st_mode)) return "is not a regular file";
  if (about.st_uid != ::geteuid()) return "belongs to another user";
  return (about.st_mode & (S_IWGRP | S_IWOTH)) != 0 ? "is writable by other users" : nullptr;
}

}  // namespace

CacheFile::CacheFile(const CacheKind& kind, const Physical& physical, const std::string& cache_dir,
                     const std::string& more)
    : kind_(kind) {
  std::memcpy(expected_.magic, kind.magic, sizeof(expected_.magic));
  expected_.version = kind.version;
  expected_.vendor_id = physical.info.vendor_id;
  expected_.device_id = physical.info.device_id;
  expected_.driver_version = physical.info.driver_number;
  static_assert(sizeof(expected_.uuid) == VK_UUID_SIZE);
  std::memcpy(expected_.uuid, physical.cache_uuid, VK_UUID_SIZE);
  folder_ = default_folder(cache_dir);
  while (folder_.size() > 1 && folder_.back() == '/') folder_.pop_back();
  name_ = format("%s-%04x-%04x-", kind.stem, physical.info.vendor_id, physical.info.device_id);
  for (int i = 0; i < 4; ++i) name_ += format("%02x", physical.cache_uuid[i]);
  name_ += more;
  if (!folder_.empty()) path_ = folder_ + "/" + name_ + ".bin";
}

void CacheFile::warn(const std::string& text) noexcept {
  if (warned_) return;
  warned_ = true;
  log(LogLevel::warning, "%s: %s; going on without", kind_.what, text.c_str());
}

// In a folder that other users may write, one of them could put a file there; drivers do not check such bytes.
bool CacheFile::open_folder(bool create) {
  if (create && !make_folders(folder_)) {
    warn("cannot make " + printable(folder_) + ": " + errno_text());
    return false;
  }
  struct stat about{};
  if (::lstat(folder_.c_str(), &about) != 0) {
    if (errno != ENOENT || create) warn(printable(folder_) + ": " + errno_text());
    return false;
  }
  const char* problem = nullptr;
  if (S_ISLNK(about.st_mode)) {
    problem = "is a symbolic link";
  } else if (!S_ISDIR(about.st_mode)) {
    problem = "is not a folder";
  } else if (about.st_mode & S_IWOTH) {
    problem = "is writable by all users";
  } else if (about.st_mode & S_IWGRP) {
    problem = "is writable by its group";
  } else if (about.st_uid != ::geteuid() && about.st_uid != 0) {
    problem = "belongs to another user";
  }
  if (problem != nullptr) warn(printable(folder_) + " " + problem);
  return problem == nullptr;
}

// A key that others can read, or that another user has put there, is none.
bool CacheFile::read_key() {
  File file(folder_ + "/key", O_RDONLY);
  struct stat about{};
  return file && ::fstat(file.fd(), &about) == 0 && foreign(about) == nullptr && (about.st_mode & 077) == 0 &&
         about.st_size == sizeof(key_) && file.read(key_.data(), sizeof(key_));
}

// Of several processes that make a key at the same time, all take that of the first.
bool CacheFile::make_key() {
  if (read_key()) return true;
  const std::string path = folder_ + "/key", temporary = temporary_for(path);
  const SipKey fresh{random_word(), random_word()};
  bool made = write_new(temporary, fresh.data(), sizeof(fresh), nullptr, 0);
  if (made && ::link(temporary.c_str(), path.c_str()) != 0 && !read_key())
    made = ::rename(temporary.c_str(), path.c_str()) == 0;  // in place of what is no key, or where there are no links
  ::unlink(temporary.c_str());
  return made && read_key();
}

uint64_t CacheFile::seal(const CacheHeader& header, const std::vector<uint8_t>& body) const {
  static_assert(offsetof(CacheHeader, seal) % 8 == 0);
  uint8_t bytes[offsetof(CacheHeader, seal)];
  std::memcpy(bytes, &header, sizeof(bytes));
  return SipHash(key_).add(bytes).add(body).finish();
}

std::vector<uint8_t> CacheFile::load() noexcept try {
  if (path_.empty()) return {};
  File file(path_, O_RDONLY);
  const std::string problem = file || errno == ENOENT || errno == ENOTDIR ? "" : errno_text();
  if (!file && problem.empty()) return {};  // of a folder without such a file there is nothing to tell
  if (!open_folder(false)) return {};
  if (!file) {
    warn(printable(path_) + ": " + problem);
    return {};
  }
  const auto refuse = [&](const std::string& why) -> std::vector<uint8_t> {
    warn(printable(path_) + " " + why);
    warned_ = false;  // it will be replaced, which may fail for another reason
    return {};
  };
  struct stat about{};
  if (::fstat(file.fd(), &about) != 0 || !S_ISREG(about.st_mode)) {
    warn(printable(path_) + " is not a regular file");
    return {};
  }
  if (const char* why = foreign(about)) return refuse(why);
  const auto bytes = static_cast<uint64_t>(about.st_size);
  CacheHeader found{};
  if (bytes < sizeof(found) || bytes - sizeof(found) > kind_.most_bytes) return refuse("has an impossible size");
  if (!file.read(&found, sizeof(found))) return refuse("cannot be read");
  if (std::memcmp(found.magic, expected_.magic, 4) != 0 || found.version != expected_.version) {
    return refuse(format("is no %s of this version", kind_.what));
  }
  CacheHeader expected = expected_;
  expected.body_bytes = bytes - sizeof(found);
  expected.seal = found.seal;
  if (std::memcmp(&found, &expected, sizeof(found)) != 0) return refuse("is cut short or of another device or driver");
  std::vector<uint8_t> body(expected.body_bytes);
  if (!file.read(body.data(), body.size())) return refuse("cannot be read");
  if (!read_key()) return refuse("has no key beside it");
  if (seal(found, body) != found.seal) return refuse("is damaged, or was not written by this user");
  return body;
} catch (...) {
  warn("out of memory");
  return {};
}

bool CacheFile::write_new(const std::string& temporary, const void* header, size_t header_bytes, const void* body,
                          size_t bytes) {
  File file(temporary, O_WRONLY | O_CREAT | O_EXCL);
  return file && file.write(header, header_bytes) && file.write(body, bytes) && ::fsync(file.fd()) == 0;
}

// Temporary files of processes that were killed. Nobody writes for an hour.
void CacheFile::remove_leftovers() {
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    const bool ours = name.starts_with(name_) || name.starts_with("key.");
    if (ours && name.ends_with(".tmp") && entry.last_write_time(error) < old && !error)
      std::filesystem::remove(entry.path(), error);
  }
}

bool CacheFile::save(const std::vector<uint8_t>& body) noexcept try {
  if (path_.empty() || body.empty() || body.size() > kind_.most_bytes || warned_ || !open_folder(true)) return false;
  CacheHeader header = expected_;
  header.body_bytes = body.size();
  remove_leftovers();
  if (!make_key()) {
    warn("cannot write " + printable(folder_) + "/key: " + errno_text());
    return false;
  }
  header.seal = seal(header, body);
  const std::string temporary = temporary_for(path_);
  if (!write_new(temporary, &header, sizeof(header), body.data(), body.size()) ||
      ::rename(temporary.c_str(), path_.c_str()) != 0) {
    warn("cannot write " + printable(path_) + ": " + errno_text());
    ::unlink(temporary.c_str());
    return false;
  }
  File folder(folder_, O_RDONLY | O_DIRECTORY);
  if (folder && ::fsync(folder.fd()) != 0)
    log(LogLevel::debug, "%s: fsync of the folder: %s", kind_.what, errno_text().c_str());
  return true;
} catch (...) {
  warn("out of memory");
  return false;
}

}  // namespace pumice::engine
