// libpmem as libpmemobj sees it in the crash test: what it stores, flushes and fences goes to the tracer. Every pool counts as
// persistent memory, so that libpmemobj uses flushes and fences and not msync. Nothing is flushed really: no power fails here.
#include <dlfcn.h>
#include <fcntl.h>
#include <libpmem.h>
#include <libpmemobj.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include "tests/crash_test/store_tracer.h"

namespace {

using braiddb::test::StoreTracer;

// What was stored there since the tracer looked, and its lines' flush.
void TraceFlush(const void* address, size_t bytes) {
  StoreTracer* const tracer = StoreTracer::Current();
  if (tracer == nullptr) return;
  tracer->Resolve();
  tracer->Stored(address, bytes);
  // It stores a line or two around the header of an object, of which it flushes the header.
  tracer->LookAt(address);
  tracer->Flush(address, bytes);
}
void TraceFence() {
  if (StoreTracer* const tracer = StoreTracer::Current()) tracer->Fence();
}
void* TraceCopied(void* to, size_t bytes, unsigned flags) {
  StoreTracer* const tracer = StoreTracer::Current();
  if (tracer == nullptr) return to;
  tracer->Stored(to, bytes);
  tracer->LookAt(to);  // it stores behind the header of an object, too
  if ((flags & PMEM_F_MEM_NOFLUSH) != 0) return to;
  tracer->Flush(to, bytes);
  if ((flags & PMEM_F_MEM_NODRAIN) == 0) tracer->Fence();
  return to;
}

// ---- Pools that open faster. Offsets: see pmem/pool_format.cc; src/core/pool_hdr.h, src/libpmemobj/obj.h, src/core/util.c.

constexpr size_t kHeaderWords = 4096 / sizeof(uint32_t);
constexpr size_t kHeaderCheckedWords = kHeaderWords / 2;
constexpr size_t kDescriptorWords = 2048 / sizeof(uint32_t);
constexpr size_t kCompatibleFeaturesWord = 3;
constexpr uint32_t kCheckBadBlocks = 1;
constexpr size_t kLanesWord = kHeaderWords + 258;
constexpr uint32_t kLanes = 16;
constexpr char kLanesText[] = "16";

// Fletcher's checksum, in the last two of the words; these, and those from `end` on, count as zero.
void Checksum(uint32_t* words, size_t count, size_t end) {
  uint32_t low = 0, high = 0;
  for (size_t i = 0; i < count; ++i) {
    low += i < end && i < count - 2 ? words[i] : 0;
    high += low;
  }
  words[count - 2] = low;
  words[count - 1] = high;
}

// A pool of PMDK's format 6 has 1024 lanes, which an open goes through; so many threads there are not here. It asks the kernel's
// lists of devices for bad blocks of each part, in a hundred system calls.
void Trim(const std::string& part) {
  uint32_t words[kHeaderWords + kDescriptorWords];
  const int fd = open(part.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0 || pread(fd, words, sizeof(words), 0) != sizeof(words)) std::abort();
  words[kCompatibleFeaturesWord] &= ~kCheckBadBlocks;
  words[kLanesWord] = kLanes;
  Checksum(words, kHeaderWords, kHeaderCheckedWords);
  Checksum(words + kHeaderWords, kDescriptorWords, kDescriptorWords);
  if (pwrite(fd, words, sizeof(words), 0) != sizeof(words)) std::abort();
  close(fd);
}

}  // namespace

extern "C" {

int pmem_is_pmem(const void*, size_t) { return 1; }
void pmem_flush(const void* address, size_t bytes) { TraceFlush(address, bytes); }
void pmem_deep_flush(const void* address, size_t bytes) { TraceFlush(address, bytes); }
void pmem_drain() { TraceFence(); }
void pmem_persist(const void* address, size_t bytes) {
  TraceFlush(address, bytes);
  TraceFence();
}
int pmem_msync(const void* address, size_t bytes) {
  pmem_persist(address, bytes);
  return 0;
}
void* pmem_memcpy(void* to, const void* from, size_t bytes, unsigned flags) {
  return TraceCopied(std::memcpy(to, from, bytes), bytes, flags);
}
void* pmem_memmove(void* to, const void* from, size_t bytes, unsigned flags) {
  return TraceCopied(std::memmove(to, from, bytes), bytes, flags);
}
void* pmem_memset(void* to, int value, size_t bytes, unsigned flags) {
  return TraceCopied(std::memset(to, value, bytes), bytes, flags);
}

PMEMobjpool* __real_pmemobj_create(const char* path, const char* layout, size_t bytes, mode_t mode);
PMEMobjpool* __wrap_pmemobj_create(const char* path, const char* layout, size_t bytes, mode_t mode) {
  PMEMobjpool* const pool = __real_pmemobj_create(path, layout, bytes, mode);
  if (pool == nullptr) return nullptr;
  pmemobj_close(pool);
  setenv("PMEMOBJ_NLANES", kLanesText, 1);  // libpmemobj uses its default, whatever the pool says
  Trim(std::filesystem::path(path).parent_path().string() + "/000000.pmem");
  return pmemobj_open(path, layout);
}

// The files of a database change in these two ways only.
int rename(const char* from, const char* to) {
  static const auto system_rename = reinterpret_cast<decltype(&rename)>(dlsym(RTLD_NEXT, "rename"));
  StoreTracer::NoteFiles();
  if (std::string_view(to).ends_with(".pmem")) StoreTracer::NoteGrowth();
  return system_rename(from, to);
}
int unlink(const char* path) {
  static const auto system_unlink = reinterpret_cast<decltype(&unlink)>(dlsym(RTLD_NEXT, "unlink"));
  StoreTracer::NoteFiles();
  return system_unlink(path);
}

}  // extern "C"
