// A compaction filter that does what values say, and what comes of them.
#pragma once

#include <optional>
#include <string>

#include "braiddb/compaction_filter.h"

namespace braiddb::test {

inline constexpr char kDrops[] = "drop:";   // the key goes
inline constexpr char kChanges[] = "cut:";  // the value goes on without this

// What a value is when it has been asked about; nothing if the key is gone. What has not been asked about yet is as good as that,
// so both the oracle and what is found are compared as this.
inline std::optional<Slice> FilteredValue(Slice value) {
  if (value.starts_with(kDrops)) return std::nullopt;
  return value.starts_with(kChanges) ? value.substr(sizeof(kChanges) - 1) : value;
}

class CrashFilter final : public CompactionFilter {
 public:
  explicit CrashFilter(bool ignores_snapshots) : ignores_snapshots_(ignores_snapshots) {}

  Decision Filter(int, Slice, Slice value, std::string* new_value) const override {
    const std::optional<Slice> filtered = FilteredValue(value);
    if (!filtered) return Decision::kRemove;
    if (filtered->size() == value.size()) return Decision::kKeep;
    new_value->assign(*filtered);
    return Decision::kChangeValue;
  }
  const char* Name() const override { return "crash_test"; }
  bool IgnoreSnapshots() const override { return ignores_snapshots_; }

 private:
  const bool ignores_snapshots_;
};

}  // namespace braiddb::test
