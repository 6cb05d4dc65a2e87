// OperandRuns: cached results of MergeOperator::PartialMerge, one for each key with many operands in a table.
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

// All operands that a table has of one key, combined, and the version below them.
struct OperandRun {
  const LogEntry* newest = nullptr;  // newest operand; readers check its mark in place of the marks of all
  uint64_t oldest = 0;               // sequence number of the oldest operand
  const LogEntry* base = nullptr;    // the version to which the operands apply, if the table has one
  bool is_one = false;               // `operand` is valid; false: the operands cannot be combined, or the result is too long
  std::string operand;
};

// Lives in DRAM only. Readers that have collected the operands of a key store the result here. It is freed with the table.
// Thread safety: all methods may be called concurrently.
class OperandRuns {
 public:
  static constexpr size_t kFewOperands = 64;    // keys with fewer operands are not stored: reading them is cheap
  static constexpr size_t kMostBytes = 65'536;  // limit per table

  // The stored run of the key; null if there is none. The key must have the bytes that the table has.
  std::shared_ptr<const OperandRun> Find(Slice key) const {
    if (!has_some_.load(std::memory_order_relaxed)) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto run = runs_.find(key);
    return run == runs_.end() ? nullptr : run->second;
  }
  // Stores a run, unless the limit is reached. Throws std::bad_alloc.
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
