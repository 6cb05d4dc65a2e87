// HugeArray: zeroed memory for a large array with random access, on huge pages if available.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <type_traits>
#include <utility>

#include "util/huge_pages.h"

namespace braiddb {

// Page-aligned. Untouched pages take no memory.
template <class T>
class HugeArray {
 public:
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  HugeArray() = default;
  // The array is empty() if there is no memory.
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

  // Allocates all pages now, for an array that will soon be written completely.
  void Populate() {
    if (data_ != nullptr) (void)PopulatePages(data_, bytes());
  }

  // Returns whole pages of the elements from `begin` on to the system. They are zero when touched again.
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
