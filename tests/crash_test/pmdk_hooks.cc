// libpmem as libpmemobj sees it in the crash test: what it stores, flushes and fences goes to the tracer. Every pool counts as
// persistent memory, so that libpmemobj uses flushes and fences and not msync. Nothing is flushed really: no power fails here.
#include <dlfcn.h>
#include <libpmem.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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
