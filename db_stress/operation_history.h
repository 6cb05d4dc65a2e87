// OperationHistory: checks a history of operations on several keys for linearizability. Every write must write unique values.
//
// Each operation takes effect at an instant between its start and its end. The check narrows these bounds by necessary orders
// until nothing changes. An operation without a possible instant is a violation:
//   - A read comes after the write of the value that it returned.
//   - Take two values of one key. If some operation on the first must end before one on the second begins, then all operations
//     on the first come before the write of the second.
//   - If a view of several keys shows one update of a batch, it shows the other updates too, or values written after the batch.
// An operation on several keys has one instant, so bounds from one key narrow the others. Every report is a violation. Some
// violations are not found: a complete decision needs a search (Gibbons and Korach, "Testing shared memories", SIAM J. Comput.
// 26, 1997). If each operation uses one key, RegisterHistory decides exactly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace braiddb::stress {

// Times are ticks of one clock that all threads share. Values are arbitrary numbers, each written once to a key. kInitial is the
// value before the first write.
class OperationHistory {
 public:
  static constexpr uint64_t kInitial = 0;

  // Adds an operation that took effect between `start` and `end`. If the id exists, narrows its bounds.
  void AddOperation(uint64_t id, uint64_t start, uint64_t end) {
    Operation& operation = operations_[id];
    operation.earliest = std::max(operation.earliest, start);
    operation.latest = std::min(operation.latest, end);
  }
  // REQUIRES for both: the operation was added, and no other operation wrote this value to the key.
  void AddWrite(uint64_t id, uint32_t key, uint64_t value) {
    Operation& operation = operations_.at(id);
    operation.writes.push_back({key, value});
    keys_[key][value].writer = &operation;
  }
  void AddRead(uint64_t id, uint32_t key, uint64_t value) {
    Operation& operation = operations_.at(id);
    operation.reads.push_back({key, value});
    keys_[key][value].readers.push_back(&operation);
  }

  // Returns a description of the violation, or nothing. Narrows the bounds.
  std::optional<std::string> Violation() {
    constexpr int kMostRounds = 50;  // further rounds might find more violations
    bool changed = true;
    for (int round = 0; round < kMostRounds && changed; ++round) {
      changed = false;
      for (auto& [key, values] : keys_) {
        if (auto wrong = NarrowByReads(key, &values, &changed)) return wrong;
        NarrowByOrder(&values, &changed);
      }
      for (const auto& [id, operation] : operations_) {
        if (!NarrowByBatches(operation, &changed))
          return "operation " + std::to_string(id) + " has read a part of a batch, and of another key what was there before it";
      }
      for (const auto& [id, operation] : operations_) {
        if (operation.earliest > operation.latest) {
          return "operation " + std::to_string(id) + " cannot have taken effect at any time: not before " +
                 std::to_string(operation.earliest) + ", and not after " + std::to_string(operation.latest);
        }
      }
    }
    return std::nullopt;
  }

 private:
  struct Access {
    uint32_t key;
    uint64_t value;
  };
  struct Operation {
    uint64_t earliest = 0, latest = UINT64_MAX;
    std::vector<Access> writes, reads;

    // Whether the operation writes another value to the key.
    bool Overwrites(const Access& access) const {
      return std::any_of(writes.begin(), writes.end(),
                         [&](const Access& own) { return own.key == access.key && own.value != access.value; });
    }
    void NotBefore(uint64_t time, bool* changed) {
      if (time <= earliest) return;
      earliest = time;
      *changed = true;
    }
    void NotAfter(uint64_t time, bool* changed) {
      if (time >= latest) return;
      latest = time;
      *changed = true;
    }
  };
  struct Value {
    Operation* writer = nullptr;
    std::vector<Operation*> readers;
    // Over all operations on the value.
    uint64_t first_latest = 0;
    uint64_t last_earliest = 0;
  };
  using Values = std::map<uint64_t, Value>;
  // The best and the second best value, so that one value can be excluded.
  struct BestTwo {
    const Value* best = nullptr;
    uint64_t time, second;
    explicit BestTwo(uint64_t none) : time(none), second(none) {}
    uint64_t Without(const Value* value) const { return value == best ? second : time; }
  };

  std::optional<std::string> NarrowByReads(uint32_t key, Values* values, bool* changed) {
    for (auto& [number, value] : *values) {
      if (value.writer == nullptr && number == kInitial) value.writer = &before_;
      if (value.writer == nullptr)
        return "value " + std::to_string(number) + " of key " + std::to_string(key) + " was read but never written";
      for (Operation* reader : value.readers) {
        reader->NotBefore(value.writer->earliest, changed);
        value.writer->NotAfter(reader->latest, changed);
      }
      value.first_latest = value.writer->latest;
      value.last_earliest = value.writer->earliest;
      for (const Operation* reader : value.readers) {
        value.first_latest = std::min(value.first_latest, reader->latest);
        value.last_earliest = std::max(value.last_earliest, reader->earliest);
      }
    }
    return std::nullopt;
  }

  // Returns false if the view is impossible.
  bool NarrowByBatches(const Operation& view, bool* changed) {
    for (const Access& one : view.reads) {
      Operation* const batch = keys_[one.key][one.value].writer;
      if (batch->writes.size() < 2) continue;
      for (const Access& other : view.reads) {
        if (!batch->Overwrites(other)) continue;
        // The read value of the other key was written after the batch.
        Operation* const later = keys_[other.key][other.value].writer;
        if (later == &before_ || later->Overwrites(one)) return false;
        later->NotBefore(batch->earliest, changed);
        batch->NotAfter(later->latest, changed);
      }
    }
    return true;
  }

  void NarrowByOrder(Values* values, bool* changed) {
    std::vector<Value*> by_end, by_begin;
    for (auto& [number, value] : *values) {
      by_end.push_back(&value);
      by_begin.push_back(&value);
    }
    const auto ends_before = [](const Value* a, const Value* b) { return a->first_latest < b->first_latest; };
    const auto begins_before = [](const Value* a, const Value* b) { return a->last_earliest < b->last_earliest; };
    std::sort(by_end.begin(), by_end.end(), ends_before);
    std::sort(by_begin.begin(), by_begin.end(), begins_before);
    // The write of a value comes after all operations that must precede it.
    BestTwo latest(0);
    size_t next = 0;
    for (Value* value : by_begin) {
      for (; next < by_end.size() && by_end[next]->first_latest < value->last_earliest; ++next) {
        const Value* const earlier = by_end[next];
        if (earlier->last_earliest >= latest.time) {
          latest.second = latest.time;
          latest.time = earlier->last_earliest;
          latest.best = earlier;
        } else {
          latest.second = std::max(latest.second, earlier->last_earliest);
        }
      }
      value->writer->NotBefore(latest.Without(value), changed);
    }
    // All operations on a value come before the writes that must follow it.
    BestTwo earliest(UINT64_MAX);
    auto last = by_begin.rbegin();
    for (auto at = by_end.rbegin(); at != by_end.rend(); ++at) {
      for (; last != by_begin.rend() && (*last)->last_earliest > (*at)->first_latest; ++last) {
        const Value* const later = *last;
        if (later->writer->latest <= earliest.time) {
          earliest.second = earliest.time;
          earliest.time = later->writer->latest;
          earliest.best = later;
        } else {
          earliest.second = std::min(earliest.second, later->writer->latest);
        }
      }
      const uint64_t bound = earliest.Without(*at);
      (*at)->writer->NotAfter(bound, changed);
      for (Operation* reader : (*at)->readers) reader->NotAfter(bound, changed);
    }
  }

  Operation before_{0, 0, {}, {}};  // wrote all initial values
  std::map<uint64_t, Operation> operations_;
  std::map<uint32_t, Values> keys_;
};

}  // namespace braiddb::stress
