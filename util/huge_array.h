// HugeArray: zeroed memory for a large array with random access, on huge pages if available.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <type_traits>
#include <utility>

#include "util/huge_pages.h"
#include "util/page_size.h"
#include "util/shared_memory.h"

namespace braiddb {

// Page-aligned. Untouched pages take no memory.
template <class T>
class HugeArray {
 public:
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  HugeArray() = default;
  // The array is empty() if there is no memory. `heap`: the memory is taken from this heap, which must outlive the array; null:
  // private memory.
  explicit HugeArray(uint64_t count, SharedHeap* heap = nullptr) : HugeArray(count, heap, Sharing::kNeeded) {}
  // kOptional: the memory is private if the heap has no room to spare (SharedHeap::AllocateOptional).
  enum class Sharing : uint8_t { kNeeded, kOptional };
  HugeArray(uint64_t count, SharedHeap* heap, Sharing sharing) {
    const uint64_t bytes = count * sizeof(T);
    if (bytes == 0) return;
    if (heap != nullptr) {
      heap_offset_ = sharing == Sharing::kNeeded ? heap->Allocate(bytes) : heap->AllocateOptional(bytes);
      if (heap_offset_ == 0 && sharing == Sharing::kNeeded) return;
    }
    if (heap_offset_ != 0) {
      heap_ = heap;
      data_ = reinterpret_cast<T*>(heap->At(heap_offset_));
      size_ = count;
      return;
    }
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    if (bytes >= kHugePageBytes) AdviseHugePages(memory, bytes);
    (void)madvise(memory, bytes, MADV_DONTDUMP);
    data_ = static_cast<T*>(memory);
    size_ = count;
  }
  HugeArray(HugeArray&& other) noexcept { *this = std::move(other); }
  HugeArray& operator=(HugeArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(heap_, other.heap_);
    std::swap(heap_offset_, other.heap_offset_);
    std::swap(is_attached_, other.is_attached_);
    return *this;
  }
  ~HugeArray() {
    if (data_ == nullptr || is_attached_) return;
    if (heap_ != nullptr) {
      heap_->Free(heap_offset_, bytes());
    } else {
      munmap(data_, bytes());
    }
  }
  // An array of another process, at `offset` of the heap that `memory` maps. For reading only; `memory` must outlive it.
  static HugeArray Attach(const SharedMemory& memory, uint64_t offset, uint64_t count) {
    HugeArray array;
    array.data_ = reinterpret_cast<T*>(memory.base() + offset);
    array.size_ = count;
    array.is_attached_ = true;
    return array;
  }
  // The offset in the heap; 0 if the array is in private memory.
  uint64_t heap_offset() const { return heap_offset_; }
  // Leaves the memory in the heap to the caller, who frees it. The array is then empty(). REQUIRES: heap_offset() != 0.
  void LeaveInHeap() {
    data_ = nullptr;
    size_ = heap_offset_ = 0;
    heap_ = nullptr;
  }

  // Allocates all pages now, for an array that will soon be written completely.
  void Populate() {
    if (data_ == nullptr) return;
    (void)PopulatePages(data_, bytes());
    if (heap_ != nullptr && bytes() >= kHugePageBytes) (void)CollapseHugePages(data_, bytes());  // advice has no effect there
  }

  // Returns whole pages of the elements from `begin` on to the system. They are zero when touched again.
  void ReleaseFrom(uint64_t begin) {
    const uint64_t first = (begin * sizeof(T) + kPageBytes - 1) / kPageBytes * kPageBytes;
    if (first >= bytes()) return;
    if (heap_ != nullptr) {
      (void)heap_->Empty(heap_offset_ + first, (bytes() - first + kPageBytes - 1) / kPageBytes * kPageBytes);
    } else {
      (void)madvise(reinterpret_cast<char*>(data_) + first, bytes() - first, MADV_DONTNEED);
    }
  }

  T& operator[](uint64_t i) { return data_[i]; }
  const T& operator[](uint64_t i) const { return data_[i]; }
  uint64_t size() const { return size_; }
  uint64_t bytes() const { return size_ * sizeof(T); }
  bool empty() const { return size_ == 0; }

 private:
  T* data_ = nullptr;
  uint64_t size_ = 0;
  SharedHeap* heap_ = nullptr;  // null: private memory, or another process' array
  uint64_t heap_offset_ = 0;
  bool is_attached_ = false;  // another process owns the memory
};

}  // namespace braiddb
