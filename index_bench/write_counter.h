// WriteCounter: what an index writes to persistent memory, counted at each flush and fence.
#pragma once

#include <cstdint>
#include <unordered_set>

#include "pmem/persistence.h"

namespace braiddb {

// Thread safety: one thread.
class WriteCounter final : public PersistObserver {
 public:
  // The unit in which Optane memory writes, 256 bytes. Lines of one that are flushed between two fences are written together.
  static constexpr uint64_t kXpLine = 256;

  void OnFlush(const void* address, size_t bytes) override {
    if (bytes == 0) return;
    const auto begin = reinterpret_cast<uintptr_t>(address);
    const uintptr_t last = begin + bytes - 1;
    lines += last / kCacheLine - begin / kCacheLine + 1;
    for (uintptr_t line = begin / kXpLine; line <= last / kXpLine; ++line) unfenced_.insert(line);
  }
  void OnDrain() override {
    ++fences;
    xp_lines += unfenced_.size();
    unfenced_.clear();
  }

  uint64_t lines = 0;
  uint64_t fences = 0;
  uint64_t xp_lines = 0;

 private:
  std::unordered_set<uintptr_t> unfenced_;
};

}  // namespace braiddb
