#include "db_stress/expected_state.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <set>

#include "db_stress/operation_history.h"
#include "db_stress/register_history.h"

namespace braiddb::stress {

namespace {

constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;

// Tag for a shared key that had a value and then has none. Shared keys are never deleted, so no write has this tag.
constexpr uint64_t kNothingAgain = Epoch::kUnknown - 1;

}  // namespace

std::string Bounds::ToString() const {
  return "acknowledged " + std::to_string(acknowledged) + ", intended " + std::to_string(intended) +
         (lost > acknowledged ? ", lost " + std::to_string(lost) : "");
}

Status ExpectedState::Create(const std::string& path, uint32_t keys, std::unique_ptr<ExpectedState>* state) {
  state->reset();
  unlink(path.c_str());
  const size_t bytes = sizeof(Shared) + keys * sizeof(KeyState);
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  void* memory = MAP_FAILED;
  if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  const int error = errno;
  if (file >= 0) close(file);
  if (memory == MAP_FAILED) return Status::IOError(path + ": " + std::strerror(error));
  // A new file is filled with zeros. The constructor sets all other values.
  state->reset(new ExpectedState(static_cast<Shared*>(memory), bytes));
  return Status::OK();
}

ExpectedState::ExpectedState(Shared* shared, size_t bytes)
    : shared_(shared), keys_(reinterpret_cast<KeyState*>(shared + 1)), bytes_(bytes) {
  shared_->clock = 1;
  shared_->next_tag = 1;
  for (Epoch& each : shared_->epochs) {
    for (auto& tag : each.last_tags) tag = Epoch::kUnknown;
  }
  for (auto& tag : EpochOf(2).last_tags) tag = 0;  // nothing existed before the first epoch
}

ExpectedState::~ExpectedState() { munmap(shared_, bytes_); }

// ---- The writer of a lane

void ExpectedState::Begin(uint32_t lane, const std::vector<uint32_t>& keys) {
  Lane& own = shared_->lanes[lane];
  for (size_t i = 0; i < keys.size(); ++i) {
    own.keys[i] = keys[i];
    // A reader before this store cannot see the new generation. A reader that sees the generation reads `intended` later.
    std::atomic<uint32_t>& intended = keys_[keys[i]].intended;
    intended.store(intended.load(kRelaxed) + 1, kRelease);
  }
  own.count.store(static_cast<uint32_t>(keys.size()), kRelease);
}

void ExpectedState::Acknowledge(uint32_t lane) {
  Lane& own = shared_->lanes[lane];
  const uint32_t count = own.count.load(kRelaxed);
  for (uint32_t i = 0; i < count; ++i) {
    KeyState& key = keys_[own.keys[i]];
    key.acknowledged.store(key.intended.load(kRelaxed), kRelease);
  }
  own.count.store(0, kRelease);
}

// If the process is killed in this function, the write counts as unfinished, and is found to be lost.
void ExpectedState::Abandon(uint32_t lane) {
  Lane& own = shared_->lanes[lane];
  const uint32_t count = own.count.load(kRelaxed);
  for (uint32_t i = 0; i < count; ++i) {
    KeyState& key = keys_[own.keys[i]];
    key.lost.store(key.intended.load(kRelaxed), kRelease);
  }
  own.count.store(0, kRelease);
}

// ---- Readers

void ExpectedState::Before(uint32_t key, Bounds* bounds) const {
  bounds->acknowledged = keys_[key].acknowledged.load(kAcquire);
  bounds->lost = keys_[key].lost.load(kAcquire);
}

void ExpectedState::After(uint32_t key, Bounds* bounds) const { bounds->intended = keys_[key].intended.load(kAcquire); }

// ---- After a death

Violation ExpectedState::Settle(uint32_t lane, const std::function<bool(uint32_t key, uint32_t generation)>& holds) {
  Lane& own = shared_->lanes[lane];
  const uint32_t count = own.count;
  bool all_old = true, all_new = true;
  std::string found;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t id = own.keys[i];
    const KeyState& key = keys_[id];
    const bool old_possible = key.acknowledged != key.intended;  // otherwise killed while it recorded the acknowledgement
    const bool new_possible = key.lost != key.intended;  // otherwise killed while it recorded here that the write was lost
    const bool is_old = old_possible && holds(id, key.acknowledged);
    const bool is_new = new_possible && holds(id, key.intended);
    found += " " + std::to_string(id) + (is_old && is_new ? "=either" : is_old ? "=old" : is_new ? "=new" : "=neither");
    all_old = all_old && is_old;
    all_new = all_new && is_new;
  }
  if (!all_old && !all_new) {
    return "lane " + std::to_string(lane) + ": a write of " + std::to_string(count) +
           " keys was under way, and is there neither as a whole nor not at all:" + found;
  }
  for (uint32_t i = 0; i < count; ++i) {
    KeyState& key = keys_[own.keys[i]];
    // The deletion of a missing key looks the same in both cases. It is taken as done.
    if (all_new) {
      key.acknowledged.store(key.intended);
    } else {
      key.lost.store(key.intended);
    }
  }
  own.count = 0;
  // Killed in Begin before the count was stored: the database never got the write, so its generations can be used again. The keys
  // of a group must keep equal generations.
  for (const uint32_t id : own.keys) {
    KeyState& key = keys_[id];
    key.intended.store(std::max(key.acknowledged.load(), key.lost.load()));
  }
  return std::nullopt;
}

// ---- Shared keys

Event* ExpectedState::BeginWrite(uint32_t thread, uint32_t key, uint64_t tag, const Event* first) {
  EventLog& log = running().logs[thread];
  const uint32_t count = log.count.load(kRelaxed);
  if (count == EventLog::kCapacity) return nullptr;
  Event& event = log.events[count];
  event.key = key;
  event.is_write = true;
  event.tag = tag;
  event.end.store(0, kRelaxed);
  event.start = Now();
  event.operation = first == nullptr ? event.start : first->operation;
  log.count.store(count + 1, kRelease);
  return &event;
}

void ExpectedState::AddRead(uint32_t thread, uint32_t key, uint64_t tag, uint64_t start, uint64_t end) {
  EventLog& log = running().logs[thread];
  const uint32_t count = log.count.load(kRelaxed);
  if (count == EventLog::kCapacity) return;
  Event& event = log.events[count];
  event.key = key;
  event.is_write = false;
  event.tag = tag;
  event.start = event.operation = start;
  event.end.store(end, kRelaxed);
  log.count.store(count + 1, kRelease);
}

Violation ExpectedState::SettleShared(uint32_t key, uint64_t tag) {
  std::atomic<uint64_t>& settled = running().last_tags[key];
  if (settled == Epoch::kUnknown) settled = tag;
  if (settled == tag) return std::nullopt;
  return "shared key " + std::to_string(key) + " has the write of tag " + std::to_string(tag) +
         ", but an open before had found " + std::to_string(settled);
}

// A crash cuts the history: the next epoch begins with the values that the recovery found, and no earlier operation can take
// effect later. So each epoch is checked alone. Its initial values are those of the recovery before it, and its last reads are
// the values of the recovery after it.
Violation ExpectedState::CheckLastEpoch() {
  const uint64_t number = epoch() - 1;
  Epoch& last = EpochOf(number);
  Epoch& before = EpochOf(number + 2);  // number + 2 equals number - 1 modulo 3
  std::vector<RegisterHistory> histories(KeyTable::kShared);
  const uint64_t death = UINT64_MAX - 2;  // later than all events of the epoch
  const auto name = [&](uint32_t key, uint64_t tag) {
    if (tag == before.last_tags[key]) return RegisterHistory::kInitial;
    return tag == 0 ? kNothingAgain : tag;
  };
  // The values of unfinished writes that were read. Other unfinished writes need not have taken effect. A batch took effect if
  // one of its updates did.
  std::set<uint64_t> seen(std::begin(last.last_tags), std::end(last.last_tags));
  for (const EventLog& log : last.logs) {
    for (uint32_t i = 0; i < log.count; ++i) {
      if (!log.events[i].is_write) seen.insert(log.events[i].tag);
    }
  }
  std::set<uint64_t> effective;  // operation ids
  for (const EventLog& log : last.logs) {
    for (uint32_t i = 0; i < log.count; ++i) {
      const Event& event = log.events[i];
      if (event.is_write && (event.end != 0 || seen.contains(event.tag))) effective.insert(event.operation);
    }
  }
  OperationHistory operations;
  for (const EventLog& log : last.logs) {
    for (uint32_t i = 0; i < log.count; ++i) {
      const Event& event = log.events[i];
      RegisterHistory& history = histories[event.key];
      const uint64_t tag = name(event.key, event.tag);
      if (!event.is_write) {
        history.AddRead(tag, event.start, event.end);
        operations.AddOperation(event.operation, event.start, event.end);
        operations.AddRead(event.operation, event.key, tag);
      } else if (effective.contains(event.operation)) {
        const uint64_t end = event.end != 0 ? event.end.load() : death;
        history.AddWrite(tag, event.start, end);
        operations.AddOperation(event.operation, event.start, end);
        operations.AddWrite(event.operation, event.key, tag);
      }
    }
    shared_->counters.shared_events.fetch_add(log.count, kRelaxed);
  }
  Violation violation;
  operations.AddOperation(death, death + 1, death + 2);
  for (uint32_t key = 0; key < KeyTable::kShared && !violation; ++key) {
    operations.AddRead(death, key, name(key, last.last_tags[key]));
    histories[key].AddRead(name(key, last.last_tags[key]), death + 1, death + 2);
    violation = histories[key].Violation();
    if (violation) {
      *violation =
          "not linearizable: shared key " + std::to_string(key) + ", epoch " + std::to_string(number) + ": " + *violation;
    }
  }
  if (!violation && (violation = operations.Violation()))
    *violation = "not linearizable: several shared keys, epoch " + std::to_string(number) + ": " + *violation;
  for (EventLog& log : last.logs) log.count = 0;
  for (auto& tag : before.last_tags) tag = Epoch::kUnknown;
  return violation;
}

// ---- Messages

void ExpectedState::Fail(const std::string& message) {
  int none = 0;
  if (!shared_->failed.compare_exchange_strong(none, 1)) return;
  std::strncpy(shared_->failure, message.c_str(), sizeof(shared_->failure) - 1);
  shared_->failed = 2;
}

}  // namespace braiddb::stress
