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

void* AllocateWithRoom(size_t bytes) {
  if (bytes > zone_array_bytes || bytes % sizeof(int) != 0) return std::malloc(bytes);
  return std::calloc(1, bytes + kMaxZones * sizeof(int));
}

}  // namespace

PmdkOpenScope::PmdkOpenScope(uint64_t zones) {
  static std::once_flag once;
  std::call_once(once, [] { pmemobj_set_funcs(AllocateWithRoom, std::free, std::realloc, strdup); });
  zone_array_bytes = (zones + 1) * sizeof(int);
}

PmdkOpenScope::~PmdkOpenScope() { zone_array_bytes = 0; }

}  // namespace braiddb
