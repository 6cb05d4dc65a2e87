// The memory that a database shares with processes that read it while it is open for writing ("live readers").
// docs/design/0024-live-readers.md
//
// LiveBoard    written by the owner of the database, mapped for reading only by readers.
// ReaderSlot   one for each reader; written by both. The owner trusts nothing that it reads there: every value only says what the
//              owner must keep.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "util/announced_number.h"
#include "util/shared_memory.h"
#include "util/thread_index.h"

namespace braiddb {

// Changes with each change of a structure that readers of other processes use: LiveBoard, ReaderSlot, the blocks of live_view.h,
// memtables, L0Index, TableOrder, IndexTree, AlikeSteps, LookupCache, entries.
inline constexpr uint64_t kLiveLayout = 6;

// What one thread of the owner has announced. The numbers stay when the thread has ended.
struct alignas(128) Announcements {
  // While a write is under way: a number not larger than its first sequence number. See DBImpl::WaitPublished.
  AnnouncedNumber in_flight;
  // While an operation on several keys is under way: a number not larger than its position. See db/visibility.cc.
  AnnouncedNumber barrier;
  // No update of the thread with a larger number is visible. Stored before such an update becomes visible.
  std::atomic<uint64_t> last_visible;
  // The last number of the thread's writes that GetUpdatesSince shows. Stored when the write is visible.
  std::atomic<uint64_t> last_update;
};

struct LiveBoard {
  // Writers and rotations draw sequence numbers from this counter. The number of barriers under way is in the same line, which
  // each write has just drawn from.
  alignas(128) std::atomic<uint64_t> next_sequence;
  std::atomic<uint64_t> barriers;
  alignas(128) std::atomic<uint64_t> epoch;  // of the owner's EpochManager
  // Offsets in the heap of the newest read view and the newest sets of range tombstones (live_view.h); 0: none yet.
  std::atomic<uint64_t> view;
  std::atomic<uint64_t> ranges;
  // The complement of the number of buckets of the lookup cache that are not given up. 0: all of them are in use.
  std::atomic<uint64_t> cache_limit_complement;
  // Increases after each change of `view` and `ranges`. A reader whose copies are of this version has the newest state.
  std::atomic<uint64_t> version;
  // Increases before the owner uses a new part of a region.
  std::atomic<uint64_t> growths;
  std::atomic<uint64_t> wakes;                // increases when writes wake those who wait for an update; db/wait_for_update.cc
  std::atomic<uint32_t> threads;              // larger than every thread index that has announced anything
  std::atomic<uint64_t> last_update_at_open;  // the last number before that GetUpdatesSince shows
  alignas(128) AnnouncedNumber spare_barrier;
  Announcements announced[kMaxThreads];
};
static_assert(std::is_trivially_destructible_v<LiveBoard>);

template <class Visit>
void ForEachAnnounced(const LiveBoard& board, const Visit& visit) {
  const uint32_t threads = std::min(board.threads.load(std::memory_order_acquire), kMaxThreads);
  for (uint32_t i = 0; i < threads; ++i) visit(board.announced[i]);
}

// acquire: a thread that sees the number sees the update in the log.
inline uint64_t LastUpdate(const LiveBoard& board) {
  uint64_t last = board.last_update_at_open.load(std::memory_order_acquire);
  ForEachAnnounced(
      board, [&last](const Announcements& thread) { last = std::max(last, thread.last_update.load(std::memory_order_acquire)); });
  return last;
}

// The memory of a LiveBoard, zeroed. It can be shared unless the system refuses a memfd.
class LiveBoardMemory {
 public:
  // `shared`: other processes may get the board. Throws std::bad_alloc.
  explicit LiveBoardMemory(bool shared);
  ~LiveBoardMemory();
  LiveBoardMemory(const LiveBoardMemory&) = delete;
  LiveBoardMemory& operator=(const LiveBoardMemory&) = delete;

  LiveBoard* get() const { return board_; }
  // Null if the board is in private memory.
  const SharedMemory* shared() const { return shared_.get(); }

 private:
  std::unique_ptr<SharedMemory> shared_;
  LiveBoard* board_ = nullptr;
};

struct ReaderSlot {
  static constexpr uint32_t kMaxSnapshots = 2048;

  // Written by the reader.
  alignas(128) std::atomic<uint64_t> epoch;        // the smallest epoch that the reader holds; UINT64_MAX: none
  std::atomic<uint64_t> answers;                   // the number of news that the reader has handled
  std::atomic<uint32_t> snapshots_used;            // all snapshots are in the first so many elements
  std::atomic<uint64_t> snapshots[kMaxSnapshots];  // registered sequence numbers plus 1; 0: unused
  // 1: the reader has made an iterator. The owner stores 0 when it looks.
  alignas(64) std::atomic<uint32_t> iterator_came;
  // Written by the owner. Not 0: the owner keeps nothing for this reader any more.
  alignas(128) std::atomic<uint32_t> expired;
};

}  // namespace braiddb
