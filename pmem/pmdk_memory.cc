#include "pmem/pmdk_memory.h"

#include <libpmemobj.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "pmem/pmdk_imports.h"

namespace braiddb {
namespace {

constexpr size_t kMaxZones = 1024;  // 16 TiB
constexpr size_t kLargeBlock = 256u << 10;
constexpr char kArenas[] = "heap.arenas_default_max";

thread_local bool opens_pool = false;
thread_local bool closes_pool = false;
// Bytes of the largest allocation that may be the array; 0: the thread opens no pool.
thread_local size_t zone_array_bytes = 0;
// libpmemobj called AllocateWithRoom while this thread opened a pool.
thread_local bool is_called = false;

struct Block {
  uint8_t* begin = nullptr;
  size_t bytes = 0;
  bool is_untouched = false;  // zeros, and nothing was stored but what is no zero

  uint8_t* FirstPage(size_t page) const { return begin + (page - reinterpret_cast<uintptr_t>(begin) % page) % page; }
  uint8_t* EndOfPages(size_t page) const { return begin + bytes - (reinterpret_cast<uintptr_t>(begin) + bytes) % page; }
};
// The large blocks that libpmemobj has taken on this thread since the scope began. More of them stay as they are.
thread_local std::array<Block, 8> large_blocks;
thread_local bool notes_blocks = false;

size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

// Zeros that take no memory before they are touched.
void MakeZero(const Block& block) {
  uint8_t* const first = block.FirstPage(PageBytes());
  uint8_t* const end = block.EndOfPages(PageBytes());
  // Shared memory, which a program's malloc may give, keeps its bytes.
  volatile uint8_t* const witness = first;
  if (first < end) *witness = 1;
  if (first < end && (madvise(first, static_cast<size_t>(end - first), MADV_DONTNEED) != 0 || *witness != 0))
    std::memset(first, 0, static_cast<size_t>(end - first));
  std::memset(block.begin, 0, static_cast<size_t>(first - block.begin));
  std::memset(end, 0, static_cast<size_t>(block.begin + block.bytes - end));
}

void* Noted(void* memory, size_t bytes) {
  if (!notes_blocks || bytes < kLargeBlock || memory == nullptr) return memory;
  for (Block& block : large_blocks) {
    if (block.begin != nullptr) continue;
    block = {static_cast<uint8_t*>(memory), bytes, false};
    if (opens_pool) MakeZero(block);
    break;
  }
  return memory;
}

void Forget(void* memory) {
  if (!notes_blocks || memory == nullptr) return;
  for (Block& block : large_blocks) {
    if (block.begin == memory) block = Block();
  }
}

void* AllocateWithRoom(size_t bytes) {
  is_called = true;
  if (bytes > zone_array_bytes || bytes % sizeof(int) != 0) return Noted(std::malloc(bytes), bytes);
  return std::calloc(1, bytes + kMaxZones * sizeof(int));
}

void* Reallocate(void* memory, size_t bytes) {
  Forget(memory);
  return std::realloc(memory, bytes);
}

void Free(void* memory) {
  Forget(memory);
  std::free(memory);
}

// In place of pthread_mutex_init and pthread_mutex_destroy, for libpmemobj.
int InitializeMutex(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes) {
  const auto* const at = reinterpret_cast<const uint8_t*>(mutex);
  for (Block& block : large_blocks) {
    if (!opens_pool || attributes != nullptr || at < block.begin || at >= block.begin + block.bytes) continue;
    block.is_untouched = true;
    return 0;
  }
  return pthread_mutex_init(mutex, attributes);
}

int DestroyMutex(pthread_mutex_t* mutex) { return closes_pool ? 0 : pthread_mutex_destroy(mutex); }

void ReplaceMutexFunctions() {
  static const bool replaced = [] {
    ReplaceImportOfLibpmemobj("pthread_mutex_init", reinterpret_cast<void*>(&InitializeMutex));
    ReplaceImportOfLibpmemobj("pthread_mutex_destroy", reinterpret_cast<void*>(&DestroyMutex));
    return true;
  }();
  (void)replaced;
}

bool IsZero(const uint8_t* page, size_t bytes) { return page[0] == 0 && std::memcmp(page, page + 1, bytes - 1) == 0; }

void ReleaseZeroPages(const Block& block) {
  const size_t page = PageBytes();
  uint8_t* const end = block.EndOfPages(page);
  for (uint8_t* at = block.FirstPage(page); at < end;) {
    uint8_t* zeros = at;
    while (zeros < end && IsZero(zeros, page)) zeros += page;
    if (zeros > at) (void)madvise(at, static_cast<size_t>(zeros - at), MADV_DONTNEED);
    at = zeros + page;
  }
}

}  // namespace

// ---- PmdkMemoryScope

PmdkMemoryScope::PmdkMemoryScope() : is_outer_(!notes_blocks) {
  if (is_outer_) large_blocks.fill(Block());
  notes_blocks = true;
}

PmdkMemoryScope::~PmdkMemoryScope() {
  if (!is_outer_) return;
  notes_blocks = false;
  for (const Block& block : large_blocks) {
    if (block.begin != nullptr && !block.is_untouched) ReleaseZeroPages(block);
  }
}

// ---- PmdkOpenScope

namespace {

// The setting of the process, while scopes live.
struct ArenaSetting {
  std::mutex mutex;  // guards what follows, and what libpmemobj has
  int scopes = 0;
  unsigned before = 0;  // the program's own choice; 0: libpmemobj has no such setting
};
ArenaSetting& Arenas() {
  static ArenaSetting setting;
  return setting;
}

}  // namespace

PmdkOpenScope::PmdkOpenScope(uint64_t zones) {
  {
    ArenaSetting& arenas = Arenas();
    const std::lock_guard<std::mutex> lock(arenas.mutex);
    pmemobj_set_funcs(AllocateWithRoom, Free, Reallocate, strdup);
    unsigned one = 1;
    if (arenas.scopes++ == 0 &&
        (pmemobj_ctl_get(nullptr, kArenas, &arenas.before) != 0 || pmemobj_ctl_set(nullptr, kArenas, &one) != 0)) {
      arenas.before = 0;
    }
  }
  ReplaceMutexFunctions();
  is_called = false;
  opens_pool = true;
  zone_array_bytes = (zones + 1) * sizeof(int);
}

PmdkOpenScope::~PmdkOpenScope() {
  zone_array_bytes = 0;
  opens_pool = false;
  ArenaSetting& arenas = Arenas();
  const std::lock_guard<std::mutex> lock(arenas.mutex);
  if (--arenas.scopes == 0 && arenas.before != 0) (void)pmemobj_ctl_set(nullptr, kArenas, &arenas.before);
}

PmdkCloseScope::PmdkCloseScope() { closes_pool = true; }
PmdkCloseScope::~PmdkCloseScope() { closes_pool = false; }

bool PmdkOpenScope::HasRoom() const { return is_called; }

}  // namespace braiddb
