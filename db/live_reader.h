// LiveReader: the connection of a process that reads a database to the process that has it open for writing.
// docs/design/0024-live-readers.md
//
// HOLDS      Each read view of this process holds an epoch of the owner. The smallest one is in ReaderSlot::epoch, and the owner
//            keeps whatever was retired in that epoch or later.
// SNAPSHOTS  A snapshot is registered in the slot. The owner keeps the versions that it sees.
// VALIDITY   The owner does not wait for readers. So after a read the reader checks that it has not expired, and that no other
//            process has opened the database for writing. Before the check, what was read may come from memory in other use.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "braiddb/status.h"
#include "db/live_board.h"
#include "util/fork_guard.h"
#include "util/local_client.h"
#include "util/shared_memory.h"

namespace braiddb {

// The socket file in the directory of a database that is open for writing.
inline constexpr char kLiveSocket[] = "LIVE";
// The messages. A reader asks for a place until the answer is not kLiveWait; the answer comes with three descriptors: board,
// heap, slot. Then the owner sends kLiveNews after each change of LiveBoard::version.
inline constexpr char kLiveHello[] = "braiddb live reader ";  // then kLiveLayout as eight bytes
inline constexpr char kLiveWait[] = "wait";
// The answer to a reader of another version. Any other text is a reason that may pass.
inline constexpr char kLiveOtherVersion[] = "uses another version of the library; use the same version";
inline constexpr char kLiveWelcome[] = "welcome";
inline constexpr char kLiveNews[] = "news";
// Asks for the list of readers. The answer has a line for each: pid, seconds since the begin, 1 if it has expired, and the oldest
// snapshot or -1.
inline constexpr char kLiveList[] = "list";
// The message of a reader that wants to know the number of a snapshot that the owner has chosen and registered: then the index of
// an element of ReaderSlot::snapshots as four bytes. The answer: the same message, and the sequence number as eight bytes.
inline constexpr char kLiveSnapshot[] = "snapshot ";
// A reader will sleep until a write draws the number that follows, as eight bytes. No answer: the owner wakes it by a futex.
inline constexpr char kLiveAwait[] = "await ";
// A reader's scans have passed kHiddenPerMerge deleted keys (db/scan_merge.cc). No answer.
inline constexpr char kLiveHidden[] = "hidden keys";

// Thrown by a read whose result is no Status.
struct LiveFailure {
  Status status;
};

// Thread safety: all methods may be called concurrently after Attach.
class LiveReader {
 public:
  // NotFound: no process serves the database in this directory. Aborted: the process closes the database, or has ended.
  // NotSupported: another version of the library serves it. Busy: the owner has no room for another reader, or does not answer.
  static Status Attach(const std::string& directory, std::unique_ptr<LiveReader>* result);
  ~LiveReader();
  LiveReader(const LiveReader&) = delete;
  LiveReader& operator=(const LiveReader&) = delete;

  const LiveBoard& board() const { return *board_; }
  const SharedMemory& heap() const { return *heap_; }
  // Begins to call `on_news` in a thread of this object, after each message of the owner. REQUIRES: called once.
  void Follow(std::function<void()> on_news);
  // Ends that thread.
  void StopFollowing();

  // Holds the present epoch of the owner. What the caller can reach from LiveBoard::view from now on is kept until Release.
  uint64_t Hold();
  void Release(uint64_t epoch);

  // Registers a snapshot, if its number is not registered yet. Throws std::bad_alloc if there are too many snapshots.
  void AddSnapshot(uint64_t sequence);
  void DropSnapshot(uint64_t sequence);
  // Returns when no write that announced a number <= `sequence` is under way. REQUIRES: that number has been drawn.
  void WaitWriters(uint64_t sequence) const;
  // Lets the owner choose a snapshot, and registers it in *element of the slot, beside other registrations of the number.
  // TimedOut: the owner does not answer.
  Status AskForSnapshot(uint64_t* sequence, uint32_t* element);
  // Ends the registration of AskForSnapshot.
  void FreeElement(uint32_t element);
  // Asks the owner to wake those who sleep on LiveBoard::wakes when the next number is not `next` any more. Does not wait.
  // Aborted: the owner has ended.
  Status Await(uint64_t next);
  static Status Ended();
  // Tells the owner that scans have passed many deleted keys. Does not wait.
  void TellOfHiddenKeys() noexcept;
  // Returns when the barriers with positions up to `sequence` are complete.
  void WaitBarriers(uint64_t sequence) const;

  // A child of fork(2) shares the slot with its parent, and must not store to it.
  bool is_in_child() const { return fork_generation.load(std::memory_order_relaxed) != generation_; }
  // Lets the owner know that iterators are made, for which it merges sorted arrays.
  void NoteIterator() {
    if (slot_->iterator_came.load(std::memory_order_relaxed) == 0 && !is_in_child())
      slot_->iterator_came.store(1, std::memory_order_relaxed);
  }
  bool has_expired() const { return slot_->expired.load(std::memory_order_acquire) != 0; }
  // Asks the system. owner_is_gone() knows it some moments later.
  bool IsDisconnected() const { return owner_is_gone() || client_->IsClosed(); }
  bool owner_is_gone() const { return owner_is_gone_.load(std::memory_order_acquire); }

 private:
  LiveReader(std::unique_ptr<LocalClient> client, std::unique_ptr<SharedMemory> board, std::unique_ptr<SharedMemory> heap,
             std::unique_ptr<SharedMemory> slot);
  // Returns when `is_over()` is true, or when the owner is gone or this reader has expired: the board does not change any more.
  // Throws LiveFailure if the owner does not go on.
  template <class Condition>
  void WaitUntil(const Condition& is_over) const;
  // Throws LiveFailure in a child of the process that has attached.
  void CheckProcess() const;
  // Notes that the element has the number; frees the element if there is no memory. REQUIRES: mutex_.
  void Remember(uint64_t sequence, uint32_t element);
  // Throws LiveFailure if the owner has ended while it published a batch with a number up to `bound`.
  void RefuseHalfBatches(uint64_t bound) const;
  // Returns when `number` is larger than `bound`, or as WaitUntil.
  void WaitAbove(const AnnouncedNumber& number, uint64_t bound) const;
  // An unused element of ReaderSlot::snapshots. Throws std::bad_alloc if there is none. REQUIRES: mutex_.
  uint32_t TakeElement();
  void Listen();
  // Waits for the next message, which is then in received_. kNone: no message came. kEnd: the owner has ended.
  enum class News : uint8_t { kMessage, kNone, kEnd };
  News ReceiveNews();

  const std::unique_ptr<LocalClient> client_;
  const std::unique_ptr<SharedMemory> board_memory_;
  const std::unique_ptr<SharedMemory> heap_;
  const std::unique_ptr<SharedMemory> slot_memory_;
  const LiveBoard* const board_;
  ReaderSlot* const slot_;
  const uint32_t generation_ = fork_generation.load(std::memory_order_relaxed);
  std::atomic<bool> owner_is_gone_{false};
  std::atomic<bool> stopping_{false};
  std::function<void()> on_news_;
  std::string received_;  // of the listening thread
  std::thread listener_;

  std::mutex mutex_;
  std::multiset<uint64_t> held_;
  std::map<uint64_t, uint32_t> snapshots_;  // by sequence number: the element of the slot
  std::set<uint32_t> free_elements_;        // below slot_->snapshots_used

  std::mutex asking_mutex_;  // held by the thread that asks for a snapshot
  std::mutex answer_mutex_;
  std::condition_variable answered_;
  uint32_t asked_element_ = 0;  // answer_mutex_
  uint64_t answer_ = 0;         // the last sequence number that the owner has sent, plus 1; 0: none
};

// Holds an epoch of the owner.
class LiveHold {
 public:
  explicit LiveHold(LiveReader* reader) : reader_(reader), epoch_(reader->Hold()) {}
  ~LiveHold() { reader_->Release(epoch_); }
  LiveHold(const LiveHold&) = delete;
  LiveHold& operator=(const LiveHold&) = delete;

 private:
  LiveReader* const reader_;
  const uint64_t epoch_;
};

}  // namespace braiddb
