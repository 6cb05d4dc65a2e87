// OperandRuns: of keys that have many operands in one table, what these amount to, as one operand (MergeOperator::PartialMerge).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "log/log_entry.h"

namespace braiddb {

// All operands that a table has of one key, and what they lie on.
struct OperandRun {
  const LogEntry* newest = nullptr;  // of the operands; what is asked for marks in place of them all
  uint64_t oldest = 0;               // sequence number
  const LogEntry* base = nullptr;    // the version below them, if the table has one
  bool is_one = false;               // false: there is no such operand, or it is too long; they stay many
  std::string operand;
};

// In DRAM only, made by readers that have collected the operands anyway, and gone with the table: media do not know of it.
// Thread safety: all methods may be called concurrently.
class OperandRuns {
 public:
  static constexpr size_t kFewOperands = 64;    // of so many none are made: reading them is soon done
  static constexpr size_t kMostBytes = 65'536;  // of a table

  // Null if nothing is known of the key, which has to be given in the bytes that the table has.
  std::shared_ptr<const OperandRun> Find(Slice key) const {
    if (!has_some_.load(std::memory_order_relaxed)) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto run = runs_.find(key);
    return run == runs_.end() ? nullptr : run->second;
  }
  // Throws std::bad_alloc. When there is no room, nothing is remembered.
  void Remember(Slice key, OperandRun run) {
    auto shared = std::make_shared<const OperandRun>(std::move(run));
    const std::lock_guard lock(mutex_);
    const size_t bytes = sizeof(OperandRun) + 2 * key.size() + shared->operand.size();
    if (bytes_ + bytes > kMostBytes) return;
    bytes_ += bytes;
    runs_.emplace(key, std::move(shared));
    has_some_.store(true, std::memory_order_relaxed);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const OperandRun>, std::less<>> runs_;
  size_t bytes_ = 0;
  std::atomic<bool> has_some_{false};
};

}  // namespace braiddb
