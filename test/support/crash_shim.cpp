// SPDX-License-Identifier: Apache-2.0
// For LD_PRELOAD: the process dies, or the disk fails, at the CRASH_AT-th call that changes something below
// CRASH_FOLDER. CRASH_HOW:
//   kill   SIGKILL instead of the call          half   a write does half of its work, then SIGKILL
//   power  SIGKILL after the call, and files that were written since their last fsync are empty, as after a power cut
//   full   this call and all later writes fail with ENOSPC     io   this call alone fails with EIO
//   short  a write does half of its work
// The calls are counted in the file CRASH_COUNT, one byte each.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

namespace {

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : "";
}

std::set<std::string>& unsynced() {
  static auto* files = new std::set<std::string>;
  return *files;
}

std::string path_of(int fd) {
  char path[PATH_MAX];
  const ssize_t size = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof(path));
  return size > 0 ? std::string(path, static_cast<size_t>(size)) : "";
}

bool watched(const std::string& path) {
  const std::string folder = variable("CRASH_FOLDER");
  return !folder.empty() && path.compare(0, folder.size() + 1, folder + "/") == 0;
}

[[noreturn]] void die(bool power) {
  if (power) {
    for (const std::string& path : unsynced()) (void)!truncate(path.c_str(), 0);
  }
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

bool is_full = false;
enum class Act { go, fail, half, half_kill, kill_after };

// What the next counted call does; dies where that is before it.
Act next(bool writes) {
  static long calls = 0;
  const int log = open(variable("CRASH_COUNT").c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (log >= 0) {
    (void)!real<ssize_t(int, const void*, size_t)>("write")(log, writes ? "w" : "c", 1);
    close(log);
  }
  const std::string how = variable("CRASH_HOW");
  errno = ENOSPC;
  if (is_full) return writes ? Act::fail : Act::go;
  if (calls++ != std::atol(variable("CRASH_AT").c_str())) return Act::go;
  if (how == "kill") die(false);
  if (how == "full") is_full = true;
  if (how == "io") errno = EIO;
  if (how == "full" || how == "io") return Act::fail;
  if (how == "power") return Act::kill_after;
  return how == "half" ? Act::half_kill : how == "short" ? Act::half : Act::go;
}

template <class Call>
int whole(bool writes, const Call& call) {
  const Act act = next(writes);
  if (act == Act::fail) return -1;
  if (act == Act::half_kill) die(false);
  const int result = call();
  if (act == Act::kill_after) die(true);
  return result;
}

int open_with(const char* name, const char* path, int flags, mode_t mode) {
  const auto call = [&] { return real<int(const char*, int, mode_t)>(name)(path, flags, mode); };
  return (flags & O_CREAT) != 0 && watched(path) ? whole(true, call) : call();
}

int move(const char* from, const char* to) {
  const int result = real<int(const char*, const char*)>("rename")(from, to);
  if (result == 0 && unsynced().erase(from) != 0) unsynced().insert(to);
  return result;
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* data, size_t bytes) {
  const auto call = [&](size_t count) { return real<ssize_t(int, const void*, size_t)>("write")(fd, data, count); };
  const std::string path = fd > 2 ? path_of(fd) : "";
  if (!watched(path)) return call(bytes);
  const Act act = next(true);
  if (act == Act::fail) return -1;
  unsynced().insert(path);
  const bool part = act == Act::half || act == Act::half_kill;
  const ssize_t done = call(part ? std::max<size_t>(bytes / 2, 1) : bytes);
  if (act == Act::half_kill || act == Act::kill_after) die(act == Act::kill_after);
  return done;
}

int fsync(int fd) {
  const std::string path = path_of(fd);
  if (!watched(path)) return real<int(int)>("fsync")(fd);
  return whole(false, [&] {
    unsynced().erase(path);
    return real<int(int)>("fsync")(fd);
  });
}

int rename(const char* from, const char* to) noexcept {
  return watched(to) ? whole(false, [&] { return move(from, to); }) : move(from, to);
}

int link(const char* from, const char* to) noexcept {
  const auto call = [&] { return real<int(const char*, const char*)>("link")(from, to); };
  return watched(to) ? whole(false, call) : call();
}

int unlink(const char* path) noexcept {  // needs no space
  const Act act = watched(path) ? next(false) : Act::go;
  if (act == Act::half_kill) die(false);
  const int result = real<int(const char*)>("unlink")(path);
  if (act == Act::kill_after) die(true);
  return result;
}

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return open_with("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return open_with("open64", path, flags, mode);
}

}  // extern "C"
