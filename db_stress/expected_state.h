// What the database may hold, in a file that outlives its writers: they note what they are about to write before they do, and
// that it was acknowledged when it was. A killed process loses no store, and x86 keeps a thread's stores in order; so at any
// instant each key holds its acknowledged generation or the intended one, and of the keys of one write all hold the new one, or
// all the old one.
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

// Generations of one key. They are counted up and never used again, also those whose write was lost.
struct KeyState {
  std::atomic<uint32_t> acknowledged{0};
  std::atomic<uint32_t> intended{0};
  std::atomic<uint32_t> lost{0};  // not taken, and never to be seen again; 0: none since the newest acknowledged one
};

// What a view that is being made may show of a key. Noted in two steps, around the moment at which the view is made.
struct Bounds {
  uint32_t acknowledged = 0;
  uint32_t lost = 0;
  uint32_t intended = 0;

  bool Allow(uint32_t generation) const {
    return generation == acknowledged || (generation > acknowledged && generation > lost && generation <= intended);
  }
  std::string ToString() const;
};

// The keys that a lane is writing at the moment.
struct Lane {
  static constexpr uint32_t kMaxBatch = 16;
  std::atomic<uint32_t> count{0};
  uint32_t keys[kMaxBatch] = {};
};

// One read or write of a shared key. A write without end was under way when its process died.
struct Event {
  uint64_t tag = 0;
  uint64_t operation = 0;  // the same for all keys of one batch, or of one view
  uint64_t start = 0;
  std::atomic<uint64_t> end{0};
  uint32_t key = 0;
  bool is_write = false;
};

// Of one thread.
struct EventLog {
  static constexpr uint32_t kCapacity = 16384;
  std::atomic<uint32_t> count{0};
  Event events[kCapacity];
};

// Everything that happened to the shared keys from one recovery to the next.
struct Epoch {
  static constexpr uint64_t kUnknown = UINT64_MAX;
  EventLog logs[KeyTable::kLanes];
  std::atomic<uint64_t> last_tags[KeyTable::kShared];  // what the recovery after it found; 0: nothing
};

// Transfers between accounts that were begun, and how they ended; see Bank. Those of no end were under way.
struct TransferCounts {
  std::atomic<uint64_t> begun{0}, committed{0}, failed{0};
  // Of those that were prepared first, with what became of them: one that was not decided is found by the next open.
  std::atomic<uint64_t> prepare_begun{0}, prepared{0}, decision_begun{0}, decided{0};
};

// All that the supervisor wants to know; it adds them up over lives.
struct Counters {
  std::atomic<uint64_t> operations{0}, reads{0}, writes{0}, batches{0}, views{0}, shared_events{0};
  std::atomic<uint64_t> opens{0}, replayed{0}, verified_keys{0};
  std::atomic<uint64_t> transactions{0}, conflicts{0}, rollbacks{0}, audits{0}, families{0};
  std::atomic<uint64_t> prepared{0}, recovered{0};  // transactions; of these, by an open

  std::atomic<uint64_t> rotations{0}, checkpoints{0}, compactions{0};
};

class ExpectedState {
 public:
  // Makes the file anew. On error the pointer is null.
  static Status Create(const std::string& path, uint32_t keys, std::unique_ptr<ExpectedState>* state);
  ~ExpectedState();
  ExpectedState(const ExpectedState&) = delete;
  ExpectedState& operator=(const ExpectedState&) = delete;

  // ---- A lane's writer. `keys` are distinct and of this lane.

  // Notes that they will be written; their generations are intended(key) from now on.
  void Begin(uint32_t lane, const std::vector<uint32_t>& keys);
  void Acknowledge(uint32_t lane);
  // It was refused: they are as they were, for ever.
  void Abandon(uint32_t lane);
  uint32_t intended(uint32_t key) const { return keys_[key].intended.load(std::memory_order_relaxed); }
  uint32_t acknowledged(uint32_t key) const { return keys_[key].acknowledged.load(std::memory_order_relaxed); }

  // ---- Readers: Before, then make the view, then After.

  void Before(uint32_t key, Bounds* bounds) const;
  void After(uint32_t key, Bounds* bounds) const;

  // ---- After a death, while nobody writes

  // Decides of a write that was under way whether it is there: `holds` says whether the database holds that generation of a
  // key. What was found is so for ever. Can be cut short at any place and begun again.
  Violation Settle(uint32_t lane, const std::function<bool(uint32_t key, uint32_t generation)>& holds);

  // ---- Shared keys

  uint64_t Now() { return shared_->clock.fetch_add(1, std::memory_order_relaxed); }
  uint64_t NewTag() { return shared_->next_tag.fetch_add(1, std::memory_order_relaxed); }
  // `first`: of the same batch; null: this is the first one. Null: the log of this thread is full.
  Event* BeginWrite(uint32_t thread, uint32_t key, uint64_t tag, const Event* first);
  void EndWrite(Event* event) { event->end.store(Now(), std::memory_order_release); }
  // Reads of one view, and no others, have the same start.
  void AddRead(uint32_t thread, uint32_t key, uint64_t tag, uint64_t start, uint64_t end);

  // Notes what a recovery found of a key; another one before it must have found the same.
  Violation SettleShared(uint32_t key, uint64_t tag);
  // All of them are known: the next epoch begins.
  void BeginEpoch() { shared_->epoch.fetch_add(1, std::memory_order_release); }
  uint64_t epoch() const { return shared_->epoch.load(std::memory_order_acquire); }
  // The supervisor: is what happened in the epoch before the running one linearizable, each key for itself and batches and views
  // of several as one operation, and what a recovery found a possible end of it? Forgets it then. REQUIRES: epoch() > 0, called
  // once for each.
  Violation CheckLastEpoch();

  // ---- Messages between the processes

  // Only the first one is kept.
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
    std::atomic<bool> stop{false};     // the child is to close it
    std::atomic<uint64_t> open_us{0};  // how long that took at the last time
    std::atomic<int> failed{0};        // 1: the message is being written; 2: it is there
    char failure[4000] = {};
    std::atomic<uint64_t> clock{1};
    std::atomic<uint64_t> next_tag{1};
    std::atomic<uint64_t> epoch{0};
    Counters counters;
    TransferCounts transfers;
    Lane lanes[KeyTable::kLanes];
    Epoch epochs[3];  // the running one and the two before it, by their number
  };

  ExpectedState(Shared* shared, size_t bytes);
  Epoch& EpochOf(uint64_t number) { return shared_->epochs[number % 3]; }
  Epoch& running() { return EpochOf(epoch()); }

  Shared* const shared_;
  KeyState* const keys_;
  const size_t bytes_;
};

}  // namespace braiddb::stress
