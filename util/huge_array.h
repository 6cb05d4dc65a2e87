// HugeArray: zeroed memory for a large array that is read at random; on huge pages where the system gives them.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <type_traits>
#include <utility>

#include "util/huge_pages.h"

namespace braiddb {

// Page-aligned. Pages that are never touched take no memory.
template <class T>
class HugeArray {
 public:
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  HugeArray() = default;
  // Empty if there is no memory.
  explicit HugeArray(uint64_t count) {
    const uint64_t bytes = count * sizeof(T);
    if (bytes == 0) return;
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    if (bytes >= kHugePage) AdviseHugePages(memory, bytes);
    (void)madvise(memory, bytes, MADV_DONTDUMP);
    data_ = static_cast<T*>(memory);
    size_ = count;
  }
  HugeArray(HugeArray&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  HugeArray& operator=(HugeArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~HugeArray() {
    if (data_ != nullptr) munmap(data_, bytes());
  }

  // All of it will be written soon.
  void Populate() {
    if (data_ != nullptr) PopulatePages(data_, bytes());
  }

  // Whole pages of the elements from `begin` on go back to the system, and are zero when they are touched again.
  void ReleaseFrom(uint64_t begin) {
    const uint64_t first = (begin * sizeof(T) + kPage - 1) / kPage * kPage;
    if (first < bytes()) (void)madvise(reinterpret_cast<char*>(data_) + first, bytes() - first, MADV_DONTNEED);
  }

  T& operator[](uint64_t i) { return data_[i]; }
  const T& operator[](uint64_t i) const { return data_[i]; }
  uint64_t size() const { return size_; }
  uint64_t bytes() const { return size_ * sizeof(T); }
  bool empty() const { return size_ == 0; }

 private:
  static constexpr uint64_t kPage = 4096;
  static constexpr uint64_t kHugePage = 2ull << 20;

  T* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace braiddb
