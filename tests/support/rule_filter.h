// Test support: a compaction filter that does what values say.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "braiddb/compaction_filter.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {

// "drop…": the key goes. "to:X": the value becomes X. "throw…": it throws. "more…": the value gets one character more each time.
// Everything else stays.
class RuleFilter : public CompactionFilter {
 public:
  explicit RuleFilter(bool ignores_snapshots = true) : ignores_snapshots_(ignores_snapshots) {}

  Decision Filter(int level, Slice key, Slice value, std::string* new_value) const override {
    if (during_) during_(key);
    {
      const std::lock_guard lock(mutex_);
      ++asked_[{std::string(key), level}];
    }
    if (value.starts_with("drop")) return Decision::kRemove;
    if (value.starts_with("throw")) throw std::runtime_error("a filter of the test");
    if (value.starts_with("more")) {
      *new_value = std::string(value) + "+";
      return Decision::kChangeValue;
    }
    if (!value.starts_with("to:")) return Decision::kKeep;
    *new_value = std::string(value.substr(3));
    return Decision::kChangeValue;
  }
  const char* Name() const override { return "rules"; }
  bool IgnoreSnapshots() const override { return ignores_snapshots_; }

  // Called first, by whatever thread asks. To be set while nothing is compacted.
  void SetDuring(std::function<void(Slice key)> during) { during_ = std::move(during); }
  int Asked(const std::string& key, int level) const {
    const std::lock_guard lock(mutex_);
    const auto found = asked_.find({key, level});
    return found == asked_.end() ? 0 : found->second;
  }
  int Asked(const std::string& key) const { return Asked(key, 0) + Asked(key, 1); }
  void Forget() {
    const std::lock_guard lock(mutex_);
    asked_.clear();
  }

  // What such a value is in the end; nothing if the key goes.
  static std::optional<std::string> Outcome(const std::string& value) {
    if (value.starts_with("drop")) return std::nullopt;
    return value.starts_with("to:") ? value.substr(3) : value;
  }
  // Whether these hold the same once the filter has seen everything.
  static std::map<std::string, std::string> Outcomes(const std::map<std::string, std::string>& content) {
    std::map<std::string, std::string> result;
    for (const auto& [key, value] : content) {
      if (auto outcome = Outcome(value)) result[key] = *outcome;
    }
    return result;
  }

 private:
  const bool ignores_snapshots_;
  std::function<void(Slice)> during_;
  mutable std::mutex mutex_;
  mutable std::map<std::pair<std::string, int>, int> asked_;
};

}  // namespace braiddb::test
