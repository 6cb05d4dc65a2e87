// ExpectedState: the states that the database may have, in a mapped file that outlives its writers. A writer records each write
// before it starts, and its acknowledgement after it ended. A killed process loses no store to the file, and x86 keeps the order
// of a thread's stores. So at each instant each key has its acknowledged generation or its intended generation, and all keys of
// one write have the new generation or all have the old.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/status.h"
#include "db_stress/content.h"
#include "db_stress/key_table.h"

namespace braiddb::stress {

inline constexpr auto kRelaxed = std::memory_order_relaxed;

// The generations of one key. They increase and are never reused, even if a write was lost.
struct KeyState {
  std::atomic<uint32_t> acknowledged{0};
  std::atomic<uint32_t> intended{0};
  std::atomic<uint32_t> lost{0};  // lost generation, which must never appear; 0: none since the newest acknowledged one
};

// The generations of a key that a view may show. Recorded in two steps, before and after the view is created.
struct Bounds {
  uint32_t acknowledged = 0;
  uint32_t lost = 0;
  uint32_t intended = 0;

  bool Allow(uint32_t generation) const {
    return generation == acknowledged || (generation > acknowledged && generation > lost && generation <= intended);
  }
  std::string ToString() const;
};

// The keys that a lane is writing.
struct Lane {
  static constexpr uint32_t kMaxBatch = 16;
  std::atomic<uint32_t> count{0};
  uint32_t keys[kMaxBatch] = {};
};

// One read or write of a shared key. A write without an end was running when its process died.
struct Event {
  uint64_t tag = 0;
  uint64_t operation = 0;  // the same for all keys of one batch or one view
  uint64_t start = 0;
  std::atomic<uint64_t> end{0};
  uint32_t key = 0;
  bool is_write = false;
};

// The events of one thread.
struct EventLog {
  static constexpr uint32_t kCapacity = 16384;
  std::atomic<uint32_t> count{0};
  Event events[kCapacity];
};

// All events of the shared keys between two recoveries.
struct Epoch {
  static constexpr uint64_t kUnknown = UINT64_MAX;
  EventLog logs[KeyTable::kLanes];
  std::atomic<uint64_t> last_tags[KeyTable::kShared];  // what the recovery after the epoch found; 0: nothing
};

// The numbers of begun and finished transfers between accounts, see Bank. Unfinished transfers were running at the death.
struct TransferCounts {
  std::atomic<uint64_t> begun{0}, committed{0}, failed{0};
  // Transfers that were prepared first, and their decisions. The next open finds the undecided ones.
  std::atomic<uint64_t> prepare_begun{0}, prepared{0}, decision_begun{0}, decided{0};
};

// Counters for the supervisor, which adds them up over lives.
struct Counters {
  std::atomic<uint64_t> operations{0}, reads{0}, writes{0}, batches{0}, views{0}, shared_events{0};
  std::atomic<uint64_t> opens{0}, replayed{0}, verified_keys{0};
  std::atomic<uint64_t> transactions{0}, conflicts{0}, rollbacks{0}, audits{0}, families{0}, catch_ups{0};
  std::atomic<uint64_t> prepared{0}, recovered{0};  // transactions; `recovered`: found by an open

  std::atomic<uint64_t> rotations{0}, checkpoints{0}, compactions{0};
};

class ExpectedState {
 public:
  // Creates the file. After an error the pointer is null.
  static Status Create(const std::string& path, uint32_t keys, std::unique_ptr<ExpectedState>* state);
  ~ExpectedState();
  ExpectedState(const ExpectedState&) = delete;
  ExpectedState& operator=(const ExpectedState&) = delete;

  // ---- The writer of a lane. `keys` are distinct and belong to the lane.

  // Records that the keys will be written. Their new generations are intended(key).
  void Begin(uint32_t lane, const std::vector<uint32_t>& keys);
  void Acknowledge(uint32_t lane);
  // The write was refused: the keys keep their generations for ever.
  void Abandon(uint32_t lane);
  uint32_t intended(uint32_t key) const { return keys_[key].intended.load(std::memory_order_relaxed); }
  uint32_t acknowledged(uint32_t key) const { return keys_[key].acknowledged.load(std::memory_order_relaxed); }

  // ---- Readers: call Before, create the view, then call After.

  void Before(uint32_t key, Bounds* bounds) const;
  void After(uint32_t key, Bounds* bounds) const;

  // ---- After a death, while no writes run

  // Decides whether an unfinished write was lost. `holds`: whether the database has that generation of a key. The decision is
  // final. An interrupted call can be repeated.
  Violation Settle(uint32_t lane, const std::function<bool(uint32_t key, uint32_t generation)>& holds);

  // ---- Shared keys

  uint64_t Now() { return shared_->clock.fetch_add(1, std::memory_order_relaxed); }
  uint64_t NewTag() { return shared_->next_tag.fetch_add(1, std::memory_order_relaxed); }
  // `first`: an event of the same batch, or null for the first event. Returns null if this thread's log is full.
  Event* BeginWrite(uint32_t thread, uint32_t key, uint64_t tag, const Event* first);
  void EndWrite(Event* event) { event->end.store(Now(), std::memory_order_release); }
  // All reads of one view have the same start, and reads of different views have different starts.
  void AddRead(uint32_t thread, uint32_t key, uint64_t tag, uint64_t start, uint64_t end);

  // Records the value that a recovery found. An earlier recovery of the same epoch must have found the same value.
  Violation SettleShared(uint32_t key, uint64_t tag);
  // All values are recorded: begins the next epoch.
  void BeginEpoch() { shared_->epoch.fetch_add(1, std::memory_order_release); }
  uint64_t epoch() const { return shared_->epoch.load(std::memory_order_acquire); }
  // Called by the supervisor. Checks whether the events of the previous epoch are linearizable: each key alone, and batches and
  // views of several keys as one operation. Checks whether the recovery's values are a possible end of the epoch. Then forgets
  // the epoch. REQUIRES: epoch() > 0; called once for each epoch.
  Violation CheckLastEpoch();

  // ---- Messages between the processes

  // Keeps only the first message.
  void Fail(const std::string& message);
  std::string failure() const { return shared_->failed.load() == 2 ? shared_->failure : std::string(); }
  bool failed() const { return shared_->failed.load(std::memory_order_relaxed) != 0; }
  std::atomic<bool>& serving() { return shared_->serving; }
  std::atomic<bool>& stop() { return shared_->stop; }
  std::atomic<uint64_t>& open_us() { return shared_->open_us; }
  Counters& counters() { return shared_->counters; }
  TransferCounts& transfers() { return shared_->transfers; }

 private:
  struct Shared {
    std::atomic<bool> serving{false};  // the child has opened and verified the database
    std::atomic<bool> stop{false};     // tells the child to close the database
    std::atomic<uint64_t> open_us{0};  // duration of the last open
    std::atomic<int> failed{0};        // 1: the message is being written; 2: the message is complete
    char failure[4000] = {};
    std::atomic<uint64_t> clock{1};
    std::atomic<uint64_t> next_tag{1};
    std::atomic<uint64_t> epoch{0};
    Counters counters;
    TransferCounts transfers;
    Lane lanes[KeyTable::kLanes];
    Epoch epochs[3];  // the running epoch and the two previous epochs, by number modulo 3
  };

  ExpectedState(Shared* shared, size_t bytes);
  Epoch& EpochOf(uint64_t number) { return shared_->epochs[number % 3]; }
  Epoch& running() { return EpochOf(epoch()); }

  Shared* const shared_;
  KeyState* const keys_;
  const size_t bytes_;
};

}  // namespace braiddb::stress
