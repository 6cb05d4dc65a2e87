// LiveReaders: the processes that read a database while this process has it open for writing, as its owner knows them.
//
// TRUST    A reader's slot is foreign input. Its values only say what the owner keeps: epochs and snapshots. A wrong value harms
//          that reader alone, or keeps memory as long as the reader is there.
// END      A reader leaves when its connection is closed, which the kernel does for a process that ends. A reader that does not
//          answer the news for kPatience, while its epoch holds something back, has expired: a stopped process, for example. The
//          owner sets ReaderSlot::expired, and then keeps nothing for it. The reader checks that word after each read.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "db/live_board.h"
#include "util/shared_memory.h"

namespace braiddb {

// Thread safety: all methods may be called concurrently.
class LiveReaders {
 public:
  static constexpr std::chrono::seconds kPatience{10};
  static constexpr size_t kMost = 1024;

  // `board` must outlive this object.
  explicit LiveReaders(LiveBoard* board) : board_(board) {}
  // `remind`: called at intervals, without a lock, while a reader holds an epoch that is not the present one. May be null.
  void SetReminder(std::function<void()> remind) { remind_ = std::move(remind); }

  // Adds a reader, which holds the present epoch from now on. Returns the descriptor of its slot, owned by this object; -1 if the
  // system refuses, or if the connection has a reader.
  int Add(uint64_t connection, int pid);
  void Remove(uint64_t connection);
  // Registers a snapshot for a reader. False: there is no such reader or element.
  bool StoreSnapshot(uint64_t connection, uint32_t element, uint64_t sequence);
  bool Any() const { return size() != 0; }
  size_t size() const { return count_.load(std::memory_order_acquire); }
  struct Reader {
    uint64_t connection = 0;
    int pid = 0;
    std::chrono::system_clock::time_point since;
    std::optional<uint64_t> oldest_snapshot;
    bool expired = false;
  };
  std::vector<Reader> List() const;
  // The readers that have answered all news. One more is counted for each.
  std::vector<uint64_t> ToTell();
  // From now on a reader whose connection is closed does not expire: the owner closes, and gives nothing back.
  void KeepAll();
  // From now on nothing is kept for the readers that exist.
  void ExpireAll() noexcept;

  // Whether a reader has made an iterator since the last call.
  bool IteratorsCame() noexcept;
  // The smallest epoch that a reader holds; UINT64_MAX if there is none. For EpochManager::Share.
  uint64_t MinEpoch() noexcept;
  // Adds the sequence numbers of all snapshots of readers, in no order. If a number is missing, it is at least as large as every
  // number that was drawn before the call.
  void AddSnapshots(std::vector<uint64_t>* sequences);
  // The smallest of them; UINT64_MAX if there is none.
  uint64_t OldestSnapshot();

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::unique_ptr<SharedMemory> memory;
    ReaderSlot* slot = nullptr;
    int pid = 0;
    std::chrono::system_clock::time_point since;
    uint64_t told = 0;  // the number of news that were sent
    Clock::time_point told_at;
    bool IsAsked() const { return slot->answers.load(std::memory_order_acquire) != told; }
  };

  template <class Visit>
  void ForEachSnapshot(const Visit& visit);

  LiveBoard* const board_;
  std::atomic<size_t> count_{0};
  mutable std::mutex mutex_;
  std::map<uint64_t, Entry> readers_;  // by connection
  std::function<void()> remind_;
  bool keeps_all_ = false;
  Clock::time_point reminded_at_;
};

}  // namespace braiddb
