// What a database may hold after a crash: for each writer the state after its acknowledged operations, or that and the one in
// flight.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "braiddb/db.h"
#include "tests/crash_test/crash_database.h"
#include "tests/crash_test/crash_filter.h"
#include "tests/crash_test/crash_operation.h"
#include "tests/crash_test/crash_transaction.h"
#include "tests/crash_test/scheduler.h"
#include "tests/support/db_test_util.h"
#include "tests/support/merge_operators.h"

namespace braiddb::test {

using CrashContent = std::map<std::string, std::shared_ptr<const std::string>>;

inline bool SameContent(const CrashContent& a, const CrashContent& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && (x.second == y.second || *x.second == *y.second);
  });
}

// Each lane has one writer at a time and keys of its own, so that its operations have an order.
// Thread safety: all methods may be called concurrently, those of one lane that change it by one thread at a time.
class CrashOracle {
 public:
  // The states that each lane may be in.
  using Allowed = std::vector<std::vector<CrashContent>>;

  explicit CrashOracle(size_t lanes) : lanes_(lanes) {
    for (auto& lane : lanes_) lane.states.resize(1);
  }
  explicit CrashOracle(Allowed allowed) : lanes_(allowed.size()) {
    for (size_t i = 0; i < lanes_.size(); ++i) lanes_[i].states = std::move(allowed[i]);
  }

  void Begin(size_t lane, CrashOperation operation) {
    const Lock lock(this);
    lanes_[lane].in_flight = std::move(operation);
  }
  void Acknowledge(size_t lane) {
    const Lock lock(this);
    for (auto& state : lanes_[lane].states) Apply(*lanes_[lane].in_flight, &state);
    lanes_[lane].in_flight.reset();
  }
  // The operation failed cleanly: as if it had not been.
  void Forget(size_t lane) {
    const Lock lock(this);
    lanes_[lane].in_flight.reset();
  }

  // A reader has seen the state of every lane (an index into what Current returned before): from now on it is that one.
  void Settle(const std::vector<CrashContent>& seen) {
    const Lock lock(this);
    for (size_t i = 0; i < lanes_.size(); ++i) lanes_[i].states.assign(1, seen[i]);
  }

  Allowed Current() const {
    const Lock lock(this);
    Allowed allowed;
    for (const auto& lane : lanes_) {
      allowed.push_back(lane.states);
      if (!lane.in_flight) continue;
      for (CrashContent state : lane.states) {
        Apply(*lane.in_flight, &state);
        allowed.back().push_back(std::move(state));
      }
    }
    return allowed;
  }

 private:
  struct Lane {
    std::vector<CrashContent> states;  // several only while nobody has looked at what a crash left
    std::optional<CrashOperation> in_flight;
  };

  // Whoever takes a crash point needs the lock, in the middle of a store: the holder must not lose the turn.
  class Lock {
   public:
    explicit Lock(const CrashOracle* oracle) : lock_(oracle->mutex_) {}

   private:
    const scheduler::Hold hold_;
    const std::lock_guard<std::mutex> lock_;
  };

  static void Apply(const CrashOperation& operation, CrashContent* state) {
    for (const auto& [key, value, is_operand, range_end, is_in_range] : operation) {
      if (is_operand) {
        const auto before = state->find(key);
        (*state)[key] = std::make_shared<const std::string>(
            AppendOperator::Apply(before == state->end() ? std::string() : *before->second, *value));
      } else if (const auto filtered = value ? FilteredValue(*value) : std::nullopt) {
        (*state)[key] = std::make_shared<const std::string>(*filtered);
      } else {
        state->erase(key);
      }
    }
  }

  mutable std::mutex mutex_;
  std::vector<Lane> lanes_;
};

// Both together; what is in both appears twice.
inline CrashOracle::Allowed UnionOf(CrashOracle::Allowed a, const CrashOracle::Allowed& b) {
  for (size_t lane = 0; lane < a.size(); ++lane) a[lane].insert(a[lane].end(), b[lane].begin(), b[lane].end());
  return a;
}

// What is wrong, or nothing; all pairs, as a compaction filter leaves them.
inline std::optional<std::string> ScanBothWays(Iterator* iterator, Pairs* pairs) {
  Pairs& forward = *pairs;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    if (const auto value = FilteredValue(iterator->value())) forward.emplace_back(iterator->key(), *value);
  }
  if (!iterator->status().ok()) return "forward scan: " + iterator->status().ToString();
  size_t left = forward.size();
  for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) {
    const auto value = FilteredValue(iterator->value());
    if (!value) continue;
    if (left-- == 0) return "the backward scan has more than the " + std::to_string(forward.size()) + " keys of the forward scan";
    if (iterator->key() != forward[left].first || *value != forward[left].second)
      return "the backward scan differs from the forward scan: " + Printable(iterator->key());
  }
  if (!iterator->status().ok()) return "backward scan: " + iterator->status().ToString();
  if (left != 0) return "the backward scan lacks " + std::to_string(left) + " keys of the forward scan";
  return std::nullopt;
}

// What is wrong, or nothing. Undecided transactions become keys of their lanes.
inline std::optional<std::string> AddUndecided(CrashDatabase* db, std::vector<CrashContent>* seen) {
  if (db->pessimistic() == nullptr) return std::nullopt;
  std::vector<std::unique_ptr<Transaction>> undecided;
  db->pessimistic()->GetAllPreparedTransactions(&undecided);
  for (const auto& transaction : undecided) {
    size_t lane = 0;
    while (lane < seen->size() && NameOfPrepared(lane) != transaction->GetName()) ++lane;
    if (lane == seen->size()) return "an undecided transaction that nobody prepared: " + Printable(transaction->GetName());
    const CrashOperation updates = UpdatesOf(*transaction);
    (*seen)[lane][transaction->GetName()] = std::make_shared<const std::string>(TextOf(updates));
    for (const CrashUpdate& update : updates) {
      const Status status = db->Begin()->Delete(db->FamilyOf(update.key), update.key);
      if (!status.IsTimedOut()) return "not locked by an undecided transaction: " + Printable(update.key);
    }
  }
  return std::nullopt;
}

// Compares a database with what it may hold, both as a compaction filter leaves it. `lane_keys`: all keys that a lane may ever
// write. Returns what is wrong, or nothing; *seen becomes the state of each lane.
inline std::optional<std::string> CheckAllowed(CrashDatabase* db, const std::vector<std::vector<std::string>>& lane_keys,
                                               const CrashOracle::Allowed& allowed, std::vector<CrashContent>* seen) {
  std::map<std::string, size_t> lane_of;
  for (size_t lane = 0; lane < lane_keys.size(); ++lane) {
    for (const auto& key : lane_keys[lane]) lane_of[key] = lane;
  }
  seen->assign(lane_keys.size(), {});
  for (size_t family = 0; family < db->families(); ++family) {
    Pairs forward;
    if (auto wrong = ScanBothWays((*db)->NewIterator({}, db->family(family)).get(), &forward)) return wrong;
    for (auto& [key, value] : forward) {
      const auto lane = lane_of.find(key);
      if (lane == lane_of.end()) return "a key that was never written: " + Printable(key);
      if (db->NumberOf(key) != family) return "a key in another column family than it was written to: " + Printable(key);
      if (!(*seen)[lane->second].emplace(key, std::make_shared<const std::string>(std::move(value))).second)
        return "twice in a scan: " + Printable(key);
    }
  }
  if (auto wrong = AddUndecided(db, seen)) return wrong;
  for (size_t lane = 0; lane < lane_keys.size(); ++lane) {
    const CrashContent& content = (*seen)[lane];
    for (const auto& key : lane_keys[lane]) {
      const auto found = content.find(key);
      PinnableSlice value;
      const Status status = (*db)->Get({}, db->FamilyOf(key), key, &value);
      const auto got = status.ok() ? FilteredValue(value.slice()) : std::nullopt;
      if (!(status.ok() || status.IsNotFound()) || got.has_value() != (found != content.end()) ||
          (got && *got != *found->second)) {
        return "Get and scan differ: " + Printable(key) + " = " + (status.ok() ? Printable(value.slice()) : status.ToString());
      }
    }
    bool matches = false;
    for (const auto& state : allowed[lane]) matches = matches || SameContent(content, state);
    if (matches) continue;
    // Say how it differs from the oldest state that is allowed.
    std::string text = "lane " + std::to_string(lane) + " is in none of its " + std::to_string(allowed[lane].size()) + " states:";
    int shown = 0;
    std::vector<std::string> keys = lane_keys[lane];
    keys.push_back(NameOfPrepared(lane));
    for (const auto& key : keys) {
      const auto expected = allowed[lane][0].find(key);
      const auto found = content.find(key);
      const std::string want = expected == allowed[lane][0].end() ? "nothing" : Printable(*expected->second);
      const std::string have = found == content.end() ? "nothing" : Printable(*found->second);
      if (want != have && ++shown <= 4) text += "\n    " + Printable(key) + ": expected " + want + ", has " + have;
    }
    return text + (shown > 4 ? "\n    and " + std::to_string(shown - 4) + " more" : "");
  }
  return std::nullopt;
}

}  // namespace braiddb::test
