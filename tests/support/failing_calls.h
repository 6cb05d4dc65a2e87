// FailingCalls: chosen calls of BraidDB to the C library and to libpmemobj fail, as if the system had refused them.
//
// This header defines those functions for the whole program, so only one file of a program may include it. Calls that shared
// libraries make, PMDK among them, are passed on: what fails inside of it shows as a failure of its functions.
#pragma once

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <libpmemobj.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <string>
#include <string_view>

#include "braiddb/comparator.h"

namespace braiddb::test {

// Thread safety: Arm and Stop by one thread; the calls that fail may be anywhere.
class FailingCalls {
 public:
  static constexpr int64_t kForEver = INT64_MAX;

  // From now on call number `first`, counted from 0, and as many as `times` say fail with `error`. `only`: of these functions,
  // with blanks between; "" for any that is defined below.
  static void Arm(int64_t first, int error, int64_t times = 1, const char* only = "") {
    only_ = only;
    error_ = error;
    first_ = first;
    last_ = times == kForEver ? kForEver : first + times - 1;
    seen_.store(0);
    failed_.store(0);
    failed_name_.store("");
    armed_.store(true);
  }
  static void Stop() { armed_.store(false); }

  // Since Arm: how many calls failed, and the last of them.
  static int64_t failed() { return failed_.load(); }
  static std::string failed_name() { return failed_name_.load(); }

  // Whether the call that asks, and returns to `caller`, is to fail; sets errno if so.
  static bool FailNow(const char* name, const void* caller) {
    if (!armed_.load(std::memory_order_acquire) || !Meant(name) || !IsBraidDB(caller)) return false;
    const int64_t number = seen_.fetch_add(1);
    if (number < first_ || number > last_) return false;
    failed_.fetch_add(1);
    failed_name_.store(name);
    errno = std::string_view(name) == "pmemobj_xalloc" && error_ == ENOSPC ? ENOMEM : error_;  // PMDK's word for a full pool
    return true;
  }

 private:
  // BraidDB is in the program, or a library of its own.
  static bool IsBraidDB(const void* code) {
    static const void* const braiddb = ObjectOf(reinterpret_cast<const void*>(&BytewiseComparator));
    static const void* const program = ObjectOf(reinterpret_cast<const void*>(&FailingCalls::FailNow));
    const void* const object = ObjectOf(code);
    return object == braiddb || object == program;
  }
  static const void* ObjectOf(const void* code) {
    Dl_info info;
    return dladdr(code, &info) != 0 ? info.dli_fbase : nullptr;
  }
  static bool Meant(std::string_view name) {
    if (*only_ == '\0') return true;
    for (std::string_view names = only_; !names.empty();) {
      const size_t end = std::min(names.find(' '), names.size());
      if (names.substr(0, end) == name) return true;
      names.remove_prefix(std::min(end + 1, names.size()));
    }
    return false;
  }

  inline static std::atomic<bool> armed_{false};
  inline static const char* only_ = "";
  inline static int error_ = 0;
  inline static int64_t first_ = 0;
  inline static int64_t last_ = 0;
  inline static std::atomic<int64_t> seen_{0};
  inline static std::atomic<int64_t> failed_{0};
  inline static std::atomic<const char*> failed_name_{""};
};

template <class Function>
Function* RealFunction(const char* name, Function*) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace braiddb::test

// Defines `name`, which returns `failure` when it is to fail.
#define BRAIDDB_FAILING_CALL(result, name, parameters, arguments, failure)                        \
  extern "C" result name parameters {                                                             \
    static auto* const real = braiddb::test::RealFunction(#name, &name);                          \
    if (braiddb::test::FailingCalls::FailNow(#name, __builtin_return_address(0))) return failure; \
    return real arguments;                                                                        \
  }

BRAIDDB_FAILING_CALL(ssize_t, read, (int fd, void* to, size_t n), (fd, to, n), -1)
BRAIDDB_FAILING_CALL(ssize_t, pread, (int fd, void* to, size_t n, off_t at), (fd, to, n, at), -1)
BRAIDDB_FAILING_CALL(ssize_t, pwrite, (int fd, const void* from, size_t n, off_t at), (fd, from, n, at), -1)
BRAIDDB_FAILING_CALL(ssize_t, write, (int fd, const void* from, size_t n), (fd, from, n), -1)
BRAIDDB_FAILING_CALL(ssize_t, writev, (int fd, const struct iovec* parts, int count), (fd, parts, count), -1)
BRAIDDB_FAILING_CALL(int, fsync, (int fd), (fd), -1)
BRAIDDB_FAILING_CALL(int, msync, (void* at, size_t n, int flags), (at, n, flags), -1)
BRAIDDB_FAILING_CALL(int, madvise, (void* at, size_t n, int advice) noexcept, (at, n, advice), -1)
// With 0 as the error, a chosen fallocate does nothing and returns success.
BRAIDDB_FAILING_CALL(int, fallocate, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n), errno == 0 ? 0 : -1)
BRAIDDB_FAILING_CALL(int, posix_fallocate, (int fd, off_t at, off_t n), (fd, at, n), errno)
BRAIDDB_FAILING_CALL(int, stat, (const char* path, struct stat* st) noexcept, (path, st), -1)
BRAIDDB_FAILING_CALL(int, fstat, (int fd, struct stat* st) noexcept, (fd, st), -1)
BRAIDDB_FAILING_CALL(int, statvfs, (const char* path, struct statvfs* fs) noexcept, (path, fs), -1)
BRAIDDB_FAILING_CALL(int, fstatfs, (int fd, struct statfs* fs) noexcept, (fd, fs), -1)
BRAIDDB_FAILING_CALL(int, rename, (const char* from, const char* to) noexcept, (from, to), -1)
BRAIDDB_FAILING_CALL(int, unlink, (const char* path) noexcept, (path), -1)
BRAIDDB_FAILING_CALL(int, mkdir, (const char* path, mode_t mode) noexcept, (path, mode), -1)
BRAIDDB_FAILING_CALL(int, flock, (int fd, int operation) noexcept, (fd, operation), -1)
BRAIDDB_FAILING_CALL(char*, realpath, (const char* path, char* resolved) noexcept, (path, resolved), nullptr)
BRAIDDB_FAILING_CALL(DIR*, opendir, (const char* path), (path), nullptr)
BRAIDDB_FAILING_CALL(struct dirent*, readdir, (DIR * directory), (directory), nullptr)
BRAIDDB_FAILING_CALL(PMEMobjpool*, pmemobj_create, (const char* path, const char* layout, size_t bytes, mode_t mode),
                     (path, layout, bytes, mode), nullptr)
BRAIDDB_FAILING_CALL(PMEMobjpool*, pmemobj_open, (const char* path, const char* layout), (path, layout), nullptr)
BRAIDDB_FAILING_CALL(PMEMoid, pmemobj_root, (PMEMobjpool * pool, size_t bytes), (pool, bytes), OID_NULL)
BRAIDDB_FAILING_CALL(int, pmemobj_ctl_exec, (PMEMobjpool * pool, const char* name, void* argument), (pool, name, argument), -1)
BRAIDDB_FAILING_CALL(int, pmemobj_xalloc,
                     (PMEMobjpool * pool, PMEMoid* id, size_t bytes, uint64_t type, uint64_t flags, pmemobj_constr constructor,
                      void* argument),
                     (pool, id, bytes, type, flags, constructor, argument), -1)
#ifndef __SANITIZE_ADDRESS__  // whose own memory comes from it
BRAIDDB_FAILING_CALL(void*, mmap, (void* at, size_t n, int protection, int flags, int fd, off_t offset) noexcept,
                     (at, n, protection, flags, fd, offset), MAP_FAILED)
#endif

extern "C" int open(const char* path, int flags, ...) {
  static auto* const real = braiddb::test::RealFunction("open", &open);
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if (braiddb::test::FailingCalls::FailNow("open", __builtin_return_address(0))) return -1;
  return real(path, flags, mode);
}

#undef BRAIDDB_FAILING_CALL
