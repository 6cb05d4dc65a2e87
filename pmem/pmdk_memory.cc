#include "pmem/pmdk_memory.h"

#include <libpmemobj.h>

#include <cstdlib>
#include <cstring>
#include <mutex>

namespace braiddb {
namespace {

constexpr size_t kMaxZones = 1024;  // 16 TiB

// Bytes of the largest allocation that may be the array; 0: the thread opens no pool.
thread_local size_t zone_array_bytes = 0;
// libpmemobj called AllocateWithRoom while this thread opened a pool.
thread_local bool is_called = false;

void* AllocateWithRoom(size_t bytes) {
  is_called = true;
  if (bytes > zone_array_bytes || bytes % sizeof(int) != 0) return std::malloc(bytes);
  return std::calloc(1, bytes + kMaxZones * sizeof(int));
}

}  // namespace

PmdkOpenScope::PmdkOpenScope(uint64_t zones) {
  static std::mutex mutex;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    pmemobj_set_funcs(AllocateWithRoom, std::free, std::realloc, strdup);
  }
  is_called = false;
  zone_array_bytes = (zones + 1) * sizeof(int);
}

PmdkOpenScope::~PmdkOpenScope() { zone_array_bytes = 0; }

bool PmdkOpenScope::HasRoom() const { return is_called; }

}  // namespace braiddb
