// SPDX-License-Identifier: Apache-2.0
#include "runtime/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "base/error.h"

namespace pumice::engine {
namespace {

constexpr uint64_t kMapBytes = uint64_t{64} << 20;  // from here on a file is mapped

// ---- the guard: which ranges of memory are mapped files
// ---------------------------------------------------------------------
struct Guarded {
  std::atomic<uintptr_t> begin{0}, end{0};
};
Guarded guarded[16];
std::mutex guard_mutex;
int num_guarded = 0;
uintptr_t page_bytes = 4096;
struct sigaction previous_action;

void on_sigbus(int signal, siginfo_t* info, void* context) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Guarded& range : guarded) {
    if (address < range.begin.load() || address >= range.end.load()) continue;
    void* const at = reinterpret_cast<void*>(address & ~(page_bytes - 1));
    if (mmap(at, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at) return;
  }
  if ((previous_action.sa_flags & SA_SIGINFO) != 0 && previous_action.sa_sigaction != nullptr) {
    previous_action.sa_sigaction(signal, info, context);
  } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal);
  } else {
    sigaction(SIGBUS, &previous_action,
              nullptr);  // the access is repeated and ends the process, as without this handler
  }
}

// The slot, or -1 when there is none left: the file is then read.
int guard(void* data, size_t bytes) {
  const std::lock_guard lock(guard_mutex);
  for (int i = 0; i < 16; ++i) {
    if (guarded[i].end != 0) continue;
    if (num_guarded == 0) {
      page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
      struct sigaction action{};
      action.sa_sigaction = on_sigbus;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK;
      sigemptyset(&action.sa_mask);
      if (sigaction(SIGBUS, &action, &previous_action) != 0) return -1;
    }
    ++num_guarded;
    guarded[i].begin = reinterpret_cast<uintptr_t>(data);
    guarded[i].end = reinterpret_cast<uintptr_t>(data) + bytes;
    return i;
  }
  return -1;
}

void release(int slot) {
  const std::lock_guard lock(guard_mutex);
  guarded[slot].end = 0;
  guarded[slot].begin = 0;
  if (--num_guarded > 0) return;
  struct sigaction now{};
  // A handler that was installed since then stays.
  if (sigaction(SIGBUS, nullptr, &now) == 0 && now.sa_sigaction == on_sigbus)
    sigaction(SIGBUS, &previous_action, nullptr);
}

}  // namespace

FileBytes::FileBytes(const std::string& path) : path_(printable(path)) {
  fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) fail(Code::IoError, Stage::header, path_, "cannot open the file: %s", std::strerror(errno));
  try {
    if (fstat(fd_, &before_) != 0)
      fail(Code::IoError, Stage::header, path_, "cannot look at the file: %s", std::strerror(errno));
    if (!S_ISREG(before_.st_mode)) fail(Code::PathRejected, Stage::header, path_, "is no regular file");
    read();
  } catch (...) {
    close(fd_);
    throw;
  }
}

FileBytes::~FileBytes() {
  let_go();
  close(fd_);
}

void FileBytes::let_go() {
  if (guard_ >= 0) release(guard_);
  if (mapping_ != nullptr) munmap(mapping_, bytes_.size());
  guard_ = -1;
  mapping_ = nullptr;
  data_ = {};
  bytes_ = {};
}

void FileBytes::read_again() {
  let_go();
  check_unchanged();
  read();
}

void FileBytes::read() {
  if (static_cast<uint64_t>(before_.st_size) >= kMapBytes) map();
  if (mapping_ == nullptr) read_all();
}

void FileBytes::map() {
  const size_t size = static_cast<size_t>(before_.st_size);
  void* const data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd_, 0);
  if (data == MAP_FAILED) return;
  guard_ = guard(data, size);
  if (guard_ < 0) {
    munmap(data, size);
    return;
  }
  mapping_ = data;
  bytes_ = {static_cast<const std::byte*>(data), size};
}

void FileBytes::read_all() {
  data_.resize(static_cast<size_t>(before_.st_size));
  for (size_t at = 0; at < data_.size();) {
    const ssize_t got = pread(fd_, data_.data() + at, data_.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(Code::IoError, Stage::header, path_, "cannot read at %zu: %s", at, std::strerror(errno));
    if (got == 0) fail(Code::IoError, Stage::header, path_, "the file ends at %zu; it had %zu bytes", at, data_.size());
    at += static_cast<size_t>(got);
  }
  bytes_ = data_;
}

void FileBytes::check_unchanged() const {
  struct stat now{};
  const bool same = fstat(fd_, &now) == 0 && now.st_size == before_.st_size &&
                    now.st_mtim.tv_sec == before_.st_mtim.tv_sec && now.st_mtim.tv_nsec == before_.st_mtim.tv_nsec;
  if (!same) fail(Code::IoError, Stage::header, path_, "the file changed since it was opened");
}

}  // namespace pumice::engine
