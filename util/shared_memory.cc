#include "util/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <new>
#include <string>

#include "util/check.h"
#include "util/fork_guard.h"
#include "util/page_size.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

constexpr uint64_t kLeast = 256ull << 20;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// Maps the file, with `guard_bytes` of zeros behind it. The address is a multiple of kHugePageBytes, as huge pages need. Null if
// the system refuses.
uint8_t* Map(int fd, uint64_t bytes, int protection, uint64_t guard_bytes) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const uint64_t wanted = RoundUpToPage(bytes + guard_bytes);
  const uint64_t reserved = wanted + kHugePageBytes;
  void* const range = mmap(nullptr, reserved, PROT_READ, flags, -1, 0);
  if (range == MAP_FAILED) return nullptr;
  const uint64_t skipped = -reinterpret_cast<uintptr_t>(range) % kHugePageBytes;
  auto* const base = static_cast<uint8_t*>(range) + skipped;
  if (skipped != 0) munmap(range, skipped);
  munmap(base + wanted, kHugePageBytes - skipped);
  if (mmap(base, bytes, protection, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0) == MAP_FAILED) {
    munmap(base, wanted);
    return nullptr;
  }
  (void)madvise(base, bytes, MADV_DONTDUMP);
  return base;
}

}  // namespace

// ---- SharedMemory

std::unique_ptr<SharedMemory> SharedMemory::Create(uint64_t bytes) {
  bytes = RoundUpToPage(bytes);
  const int fd = memfd_create("braiddb", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return nullptr;
  if (ftruncate(fd, static_cast<off_t>(bytes)) == 0 && fcntl(fd, F_ADD_SEALS, kSeals) == 0) {
    if (uint8_t* const base = Map(fd, bytes, PROT_READ | PROT_WRITE, 0)) {
      try {
        GuardMapping("/proc/self/fd/" + std::to_string(fd), base, bytes);
        return std::unique_ptr<SharedMemory>(new SharedMemory(fd, base, bytes, 0, true));
      } catch (const std::bad_alloc&) {
        UnguardMapping(base);
      }
      munmap(base, bytes);
    }
  }
  close(fd);
  return nullptr;
}

std::unique_ptr<SharedMemory> SharedMemory::Attach(int fd, bool writable, uint64_t least_bytes, uint64_t guard_bytes) {
  struct stat file {};
  const int seals = fcntl(fd, F_GET_SEALS);
  const bool is_sealed = seals >= 0 && (seals & kSeals) == kSeals;
  if (is_sealed && fstat(fd, &file) == 0 && static_cast<uint64_t>(file.st_size) >= std::max(least_bytes, kPageBytes)) {
    const auto bytes = static_cast<uint64_t>(file.st_size);
    if (uint8_t* const base = Map(fd, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, guard_bytes)) {
      std::unique_ptr<SharedMemory> result(new (std::nothrow) SharedMemory(fd, base, bytes, guard_bytes, false));
      if (result != nullptr) return result;
      munmap(base, bytes + guard_bytes);
    }
  }
  close(fd);
  return nullptr;
}

SharedMemory::~SharedMemory() {
  if (is_owner_) UnguardMapping(base_);
  munmap(base_, bytes_ + guard_bytes_);
  close(fd_);
}

int SharedMemory::OpenToRead() const {
  char name[64];
  std::snprintf(name, sizeof(name), "/proc/self/fd/%d", fd_);
  return open(name, O_RDONLY | O_CLOEXEC);
}

void SharedMemory::Release(uint64_t offset, uint64_t bytes) {
  BRAIDDB_DCHECK(offset % kPageBytes == 0 && bytes % kPageBytes == 0);
  if (bytes != 0) (void)madvise(base_ + offset, bytes, MADV_REMOVE);
}

// ---- SharedHeap

SharedHeap::SharedHeap(std::unique_ptr<SharedMemory> memory) : memory_(std::move(memory)) {
  free_bytes_ = memory_->bytes() - kPageBytes;  // offset 0 means none
  free_[kPageBytes] = free_bytes_;
}

std::unique_ptr<SharedHeap> SharedHeap::Create() try {
  const auto machine = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  for (uint64_t bytes = std::bit_ceil(std::max(machine, kLeast)); bytes >= kLeast; bytes >>= 1) {
    if (auto memory = SharedMemory::Create(bytes)) return std::unique_ptr<SharedHeap>(new SharedHeap(std::move(memory)));
  }
  return nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

uint64_t SharedHeap::RoundUp(uint64_t bytes) { return RoundUpToPage(std::max<uint64_t>(bytes, 1)); }

uint64_t SharedHeap::Allocate(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  return AllocateLocked(RoundUp(bytes));
}

uint64_t SharedHeap::AllocateOptional(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  return HasRoomLocked(RoundUp(bytes)) ? AllocateLocked(RoundUp(bytes)) : 0;
}

bool SharedHeap::HasRoomLocked(uint64_t bytes) const {
  bool has_room = free_bytes_ >= memory_->bytes() / 2 + bytes;
  BRAIDDB_SYNC_POINT_ARG("SharedHeap::HasRoomLocked", &has_room);
  return has_room;
}

bool SharedHeap::HasRoomToSpare(uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  return HasRoomLocked(bytes);
}

// First fit. The only allocation comes before the first change.
uint64_t SharedHeap::AllocateLocked(uint64_t bytes) try {
  const uint64_t alignment = bytes >= kHugePageBytes ? kHugePageBytes : kPageBytes;
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const auto [begin, size] = *range;
    const uint64_t offset = (begin + alignment - 1) / alignment * alignment;
    if (offset + bytes > begin + size) continue;
    if (offset + bytes < begin + size) free_[offset + bytes] = begin + size - offset - bytes;
    if (offset > begin) {
      range->second = offset - begin;
    } else {
      free_.erase(range);
    }
    free_bytes_ -= bytes;
    return offset;
  }
  return 0;
} catch (const std::bad_alloc&) {
  return 0;
}

void SharedHeap::Free(uint64_t offset, uint64_t bytes) {
  bytes = RoundUp(bytes);
  const std::lock_guard lock(mutex_);
  if (is_frozen_) return;
  memory_->Release(offset, bytes);
  try {
    auto [range, is_new] = free_.emplace(offset, bytes);
    BRAIDDB_CHECK(is_new);
    free_bytes_ += bytes;
    if (const auto next = std::next(range); next != free_.end() && next->first == offset + bytes) {
      range->second += next->second;
      free_.erase(next);
    }
    if (range != free_.begin()) {
      const auto before = std::prev(range);
      if (before->first + before->second == offset) {
        before->second += range->second;
        free_.erase(range);
      }
    }
  } catch (const std::bad_alloc&) {  // the address space is lost, not the memory
  }
}

void SharedHeap::Freeze() {
  const std::lock_guard lock(mutex_);
  is_frozen_ = true;
}

bool SharedHeap::is_frozen() const {
  const std::lock_guard lock(mutex_);
  return is_frozen_;
}

bool SharedHeap::Empty(uint64_t offset, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (is_frozen_) return false;
  memory_->Release(offset, bytes);
  return true;
}

}  // namespace braiddb
