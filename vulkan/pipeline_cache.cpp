// SPDX-License-Identifier: Apache-2.0
#include "vulkan/pipeline_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

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
      if (done == 0) errno = EIO;  // shorter than fstat said
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

}  // namespace

PipelineCacheFile::PipelineCacheFile(const Physical& physical, const std::string& cache_dir) {
  std::memcpy(expected_.magic, "PMPC", 4);
  expected_.version = kPipelineCacheVersion;
  expected_.vendor_id = physical.vendor_id;
  expected_.device_id = physical.device_id;
  expected_.driver_version = physical.driver_version;
  static_assert(sizeof(expected_.uuid) == VK_UUID_SIZE);
  std::memcpy(expected_.uuid, physical.cache_uuid, VK_UUID_SIZE);
  folder_ = default_folder(cache_dir);
  while (folder_.size() > 1 && folder_.back() == '/') folder_.pop_back();
  name_ = format("pipelines-%04x-%04x-", physical.vendor_id, physical.device_id);
  for (int i = 0; i < 4; ++i) name_ += format("%02x", physical.cache_uuid[i]);
  if (!folder_.empty()) path_ = folder_ + "/" + name_ + ".bin";
}

void PipelineCacheFile::warn(const std::string& text) noexcept {
  if (warned_) return;
  warned_ = true;
  log(LogLevel::warning, "pipeline cache: %s; going on without", text.c_str());
}

// Others could plant a file in a folder that everybody writes, and a driver is no parser of hostile bytes.
bool PipelineCacheFile::open_folder(bool create) {
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
    problem = "is no folder";
  } else if (about.st_mode & S_IWOTH) {
    problem = "is writable by everybody";
  } else if (about.st_uid != ::geteuid() && about.st_uid != 0) {
    problem = "belongs to another user";
  }
  if (problem != nullptr) warn(printable(folder_) + " " + problem);
  return problem == nullptr;
}

std::vector<uint8_t> PipelineCacheFile::load() noexcept try {
  if (path_.empty() || !open_folder(false)) return {};
  File file(path_, O_RDONLY);
  if (!file) {
    if (errno != ENOENT) warn(printable(path_) + ": " + errno_text());
    return {};
  }
  const auto refuse = [&](const char* why) -> std::vector<uint8_t> {
    warn(printable(path_) + " " + why);
    warned_ = false;  // it will be replaced, which may fail for another reason
    return {};
  };
  struct stat about{};
  if (::fstat(file.fd(), &about) != 0 || !S_ISREG(about.st_mode)) {
    warn(printable(path_) + " is no regular file");
    return {};
  }
  const auto bytes = static_cast<uint64_t>(about.st_size);
  PipelineCacheHeader found{};
  if (bytes < sizeof(found) || bytes - sizeof(found) > kMaxPipelineCacheBytes) return refuse("has an impossible size");
  if (!file.read(&found, sizeof(found))) return refuse("cannot be read");
  if (std::memcmp(found.magic, expected_.magic, 4) != 0 || found.version != expected_.version) {
    return refuse("is no pipeline cache of this version");
  }
  PipelineCacheHeader expected = expected_;
  expected.body_bytes = bytes - sizeof(found);
  expected.body_hash = found.body_hash;
  if (std::memcmp(&found, &expected, sizeof(found)) != 0) return refuse("is cut short or of another device or driver");
  std::vector<uint8_t> body(expected.body_bytes);
  if (!file.read(body.data(), body.size())) return refuse("cannot be read");
  if (XXH3_64bits(body.data(), body.size()) != found.body_hash) return refuse("is damaged");
  return body;
} catch (...) {
  warn("out of memory");
  return {};
}

void PipelineCacheFile::save(const std::vector<uint8_t>& body) noexcept try {
  if (path_.empty() || body.empty() || body.size() > kMaxPipelineCacheBytes || warned_ || !open_folder(true)) return;
  PipelineCacheHeader header = expected_;
  header.body_bytes = body.size();
  header.body_hash = XXH3_64bits(body.data(), body.size());
  const std::string temporary = path_ + format(".%d.tmp", static_cast<int>(::getpid()));
  ::unlink(temporary.c_str());  // left by a process that was killed
  bool written = false;
  {
    File file(temporary, O_WRONLY | O_CREAT | O_EXCL);
    if (!file) return warn("cannot write " + printable(temporary) + ": " + errno_text());
    written = file.write(&header, sizeof(header)) && file.write(body.data(), body.size()) && ::fsync(file.fd()) == 0;
  }
  if (!written || ::rename(temporary.c_str(), path_.c_str()) != 0) {
    warn("cannot write " + printable(path_) + ": " + errno_text());
    ::unlink(temporary.c_str());
    return;
  }
  File folder(folder_, O_RDONLY | O_DIRECTORY);
  if (folder && ::fsync(folder.fd()) != 0)
    log(LogLevel::debug, "pipeline cache: fsync of the folder: %s", errno_text().c_str());
} catch (...) {
  warn("out of memory");
}

}  // namespace pumice::engine
