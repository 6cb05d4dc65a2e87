#include "util/thread_index.h"

#include <atomic>
#include <mutex>
#include <utility>

#include "util/taken_thread_indexes.h"
#include "util/temporary_thread_index.h"

namespace braiddb {

constinit std::atomic<uint64_t> internal::taken_thread_indexes[kMaxThreads / 64] = {};

namespace {

constexpr uint32_t kSlotsPerWord = 64;

// The set of indexes in use, one bit each. The mutex orders the return of an index before its next use, which gives the promised
// happens-before.
class IndexSet {
 public:
  uint32_t Take() {
    std::lock_guard<std::mutex> lock(mutex_);
    for (uint32_t word = 0; word < kMaxThreads / kSlotsPerWord; ++word) {
      const uint64_t taken = taken_[word].load(std::memory_order_relaxed);
      if (~taken == 0) continue;
      const auto bit = static_cast<uint32_t>(__builtin_ctzll(~taken));
      taken_[word].store(taken | uint64_t{1} << bit, std::memory_order_seq_cst);
      return word * kSlotsPerWord + bit;
    }
    return kNoThreadIndex;
  }

  void Give(uint32_t index) {
    std::lock_guard<std::mutex> lock(mutex_);
    taken_[index / kSlotsPerWord].fetch_and(~(uint64_t{1} << (index % kSlotsPerWord)), std::memory_order_seq_cst);
  }

 private:
  std::mutex mutex_;
  std::atomic<uint64_t>* const taken_ = internal::taken_thread_indexes;
};

// Never destroyed, since threads may end after static destruction began.
IndexSet& Indexes() {
  static IndexSet* const indexes = new IndexSet();
  return *indexes;
}

enum class Phase : uint8_t { kRunning, kEnding };

// kEnding: the thread has returned its index; other thread_local objects may still be destroyed.
using internal::t_thread_index;
constinit thread_local Phase t_phase = Phase::kRunning;

struct GiveBackAtExit {
  ~GiveBackAtExit() {
    if (t_thread_index != kNoThreadIndex) Indexes().Give(t_thread_index);
    t_thread_index = kNoThreadIndex;
    t_phase = Phase::kEnding;
  }
};

}  // namespace

namespace internal {

constinit thread_local uint32_t t_thread_index = kNoThreadIndex;

// A thread that found no free index tries again at its next call. A thread that is ending gets an index only by
// TemporaryThreadIndex.
uint32_t AssignThreadIndex() {
  if (t_phase == Phase::kEnding) return kNoThreadIndex;
  static thread_local GiveBackAtExit give_back;
  (void)give_back;
  t_thread_index = Indexes().Take();
  return t_thread_index;
}

}  // namespace internal

void TemporaryThreadIndex::Take() {
  if (t_phase != Phase::kEnding) return;
  t_thread_index = Indexes().Take();
  is_taken_ = t_thread_index != kNoThreadIndex;
}

void TemporaryThreadIndex::Give() { Indexes().Give(std::exchange(t_thread_index, kNoThreadIndex)); }

}  // namespace braiddb
