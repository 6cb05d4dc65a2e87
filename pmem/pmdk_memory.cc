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
#include "util/check.h"

namespace braiddb {
namespace {

constexpr size_t kMaxZones = 1024;          // zones of the largest region, 16 TiB
constexpr size_t kLargeBlock = 256u << 10;  // bytes from which on a block is remembered
constexpr char kArenas[] = "heap.arenas_default_max";

thread_local bool opens_pool = false;
thread_local bool closes_pool = false;
// Bytes of the largest allocation that may be the array of zones; 0: the thread opens no pool.
thread_local size_t zone_array_bytes = 0;
// True if libpmemobj has called AllocateWithRoom since the open scope of this thread began.
thread_local bool is_called = false;

// A large block that libpmemobj has allocated.
struct Block {
  uint8_t* begin = nullptr;
  size_t bytes = 0;
  bool is_untouched = false;  // InitializeMutex has stored nothing there, so untouched pages have no memory yet

  // The first and the end of the pages that lie completely in the block.
  uint8_t* FirstPage(size_t page) const { return begin + (page - reinterpret_cast<uintptr_t>(begin) % page) % page; }
  uint8_t* EndOfPages(size_t page) const { return begin + bytes - (reinterpret_cast<uintptr_t>(begin) + bytes) % page; }
};
// Large blocks that libpmemobj has allocated on this thread since the scope began. Further blocks are not remembered.
thread_local std::array<Block, 8> large_blocks;
thread_local bool notes_blocks = false;

size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

// Makes the block zero. Whole pages are returned to the system, so they take no memory before they are touched.
void MakeZero(const Block& block) {
  uint8_t* const first = block.FirstPage(PageBytes());
  uint8_t* const end = block.EndOfPages(PageBytes());
  // A program's malloc may return shared memory, which keeps its bytes after MADV_DONTNEED. The witness byte detects this.
  volatile uint8_t* const witness = first;
  if (first < end) *witness = 1;
  if (first < end && (madvise(first, static_cast<size_t>(end - first), MADV_DONTNEED) != 0 || *witness != 0))
    std::memset(first, 0, static_cast<size_t>(end - first));
  std::memset(block.begin, 0, static_cast<size_t>(first - block.begin));
  std::memset(end, 0, static_cast<size_t>(block.begin + block.bytes - end));
}

// Remembers a large block, and makes it zero while a pool is opened. Returns `memory`.
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

// Removes a block that is freed or moved.
void Forget(void* memory) {
  if (!notes_blocks || memory == nullptr) return;
  for (Block& block : large_blocks) {
    if (block.begin == memory) block = Block();
  }
}

// malloc for libpmemobj. While a pool is opened, an allocation that may be the array of zones gets zeroed room behind it. An
// allocation of another purpose with such a size gets the room as well, which only costs memory.
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

// The replacement of pthread_mutex_init for libpmemobj: a mutex in a large block of zeros is initialized already.
int InitializeMutex(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes) {
  const auto* const at = reinterpret_cast<const uint8_t*>(mutex);
  for (Block& block : large_blocks) {
    if (!opens_pool || attributes != nullptr || at < block.begin || at >= block.begin + block.bytes) continue;
    block.is_untouched = true;
    return 0;
  }
  return pthread_mutex_init(mutex, attributes);
}

// The replacement of pthread_mutex_destroy for libpmemobj.
int DestroyMutex(pthread_mutex_t* mutex) { return closes_pool ? 0 : pthread_mutex_destroy(mutex); }

// Installs both replacements, once in the process.
void ReplaceMutexFunctions() {
  static const bool replaced = [] {
    ReplaceImportOfLibpmemobj("pthread_mutex_init", reinterpret_cast<void*>(&InitializeMutex));
    ReplaceImportOfLibpmemobj("pthread_mutex_destroy", reinterpret_cast<void*>(&DestroyMutex));
    return true;
  }();
  (void)replaced;
}

bool IsZeroPage(const uint8_t* page, size_t bytes) { return page[0] == 0 && std::memcmp(page, page + 1, bytes - 1) == 0; }

// Returns runs of zero pages to the system. The content does not change: such a page reads as zeros again.
void ReleaseZeroPages(const Block& block) {
  const size_t page = PageBytes();
  uint8_t* const end = block.EndOfPages(page);
  for (uint8_t* at = block.FirstPage(page); at < end;) {
    uint8_t* zeros = at;
    while (zeros < end && IsZeroPage(zeros, page)) zeros += page;
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
  BRAIDDB_DCHECK(notes_blocks);
  if (!is_outer_) return;
  notes_blocks = false;
  for (const Block& block : large_blocks) {
    if (block.begin != nullptr && !block.is_untouched) ReleaseZeroPages(block);
  }
}

// ---- PmdkOpenScope

namespace {

// The process's setting of arenas. The first scope stores the program's own setting, and the last one restores it.
struct ArenaSetting {
  std::mutex mutex;     // guards the fields, and the setting in libpmemobj
  int scopes = 0;       // open scopes of all threads
  unsigned before = 0;  // the program's own setting; 0: libpmemobj has no such setting
};
ArenaSetting& Arenas() {
  static ArenaSetting setting;
  return setting;
}

}  // namespace

PmdkOpenScope::PmdkOpenScope(uint64_t zones) {
  BRAIDDB_DCHECK(!opens_pool && !closes_pool);
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
  BRAIDDB_DCHECK(opens_pool);
  zone_array_bytes = 0;
  opens_pool = false;
  ArenaSetting& arenas = Arenas();
  const std::lock_guard<std::mutex> lock(arenas.mutex);
  BRAIDDB_DCHECK(arenas.scopes > 0);
  if (--arenas.scopes == 0 && arenas.before != 0) (void)pmemobj_ctl_set(nullptr, kArenas, &arenas.before);
}

PmdkCloseScope::PmdkCloseScope() {
  BRAIDDB_DCHECK(!closes_pool && !opens_pool);
  closes_pool = true;
}
PmdkCloseScope::~PmdkCloseScope() { closes_pool = false; }

bool PmdkOpenScope::HasRoom() const { return is_called; }

}  // namespace braiddb
