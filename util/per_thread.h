// PerThread<T>: one T per thread index, created on first use, at a stable address, on its own cache lines.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "util/thread_index.h"

namespace braiddb {

// LIFETIME     A T outlives the thread for which it was created, and passes to the next thread with the same index.
// CONCURRENCY  Get() and ForEach() may be called concurrently; T must protect its own contents.
template <class T>
class PerThread {
 public:
  PerThread() = default;
  // `on_create`: called for each new T before any thread can find it. May be called for a T that is then deleted.
  explicit PerThread(std::function<void(uint32_t index, T*)> on_create) : on_create_(std::move(on_create)) {}
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;
  ~PerThread() {
    for (auto& block : blocks_) delete block.load(std::memory_order_relaxed);
  }

  // Null only if the process has more than kMaxThreads threads.
  [[gnu::always_inline]] T* Get() {
    const uint32_t index = ThreadIndex();
    if (__builtin_expect(index == kNoThreadIndex, 0)) return nullptr;
    return &GetBlock(index / kBlockSize)->slots[index % kBlockSize].value;
  }
  // The T of this index, if Get has created it for any thread; else null. Calls no function.
  [[gnu::always_inline]] T* Find(uint32_t index) const {
    if (__builtin_expect(index == kNoThreadIndex, 0)) return nullptr;
    Block* const block = blocks_[index / kBlockSize].load(std::memory_order_acquire);
    return __builtin_expect(block != nullptr, 1) ? &block->slots[index % kBlockSize].value : nullptr;
  }

  // Calls `visit` for each T that exists, and for unused ones in the same block.
  template <class Visit>
  void ForEach(Visit&& visit) const {
    for (auto& slot : blocks_) {
      // acquire: pairs with the release in MakeBlock.
      if (Block* block = slot.load(std::memory_order_acquire)) {
        for (auto& padded : block->slots) visit(padded.value);
      }
    }
  }

 private:
  static constexpr uint32_t kBlockSize = 16;
  struct alignas(128) Padded {
    T value{};
  };
  struct Block {
    Padded slots[kBlockSize];
  };

  // acquire: pairs with the release in MakeBlock.
  [[gnu::always_inline]] Block* GetBlock(uint32_t number) {
    Block* const block = blocks_[number].load(std::memory_order_acquire);
    return __builtin_expect(block != nullptr, 1) ? block : MakeBlock(number);
  }

  // If another thread stores a block first, uses that block.
  [[gnu::noinline]] Block* MakeBlock(uint32_t number) {
    Block* block = nullptr;
    auto fresh = std::make_unique<Block>();
    for (uint32_t i = 0; on_create_ != nullptr && i < kBlockSize; ++i)
      on_create_(number * kBlockSize + i, &fresh->slots[i].value);
    if (blocks_[number].compare_exchange_strong(block, fresh.get(), std::memory_order_acq_rel)) return fresh.release();
    return block;
  }

  std::atomic<Block*> blocks_[kMaxThreads / kBlockSize] = {};
  const std::function<void(uint32_t, T*)> on_create_;
};

}  // namespace braiddb
