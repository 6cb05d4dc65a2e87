// Test support: user-defined timestamps.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {

// A timestamp of BytewiseComparatorWithU64Ts.
inline std::string Ts(uint64_t number) { return {reinterpret_cast<const char*>(&number), sizeof number}; }
inline uint64_t NumberOf(Slice timestamp) {
  uint64_t number = 0;
  memcpy(&number, timestamp.data(), sizeof number);
  return number;
}

// Read options whose timestamp they own.
class ReadAt {
 public:
  explicit ReadAt(uint64_t timestamp, const Snapshot* snapshot = nullptr) : timestamp_(Ts(timestamp)) {
    options_.timestamp = timestamp_;
    options_.snapshot = snapshot;
  }
  ReadAt(uint64_t start, uint64_t timestamp, const Snapshot* snapshot = nullptr) : ReadAt(timestamp, snapshot) {
    start_ = Ts(start);
    options_.iter_start_ts = start_;
  }
  ReadAt(const ReadAt&) = delete;
  ReadAt& operator=(const ReadAt&) = delete;
  ReadOptions* operator->() { return &options_; }
  operator const ReadOptions&() const { return options_; }

 private:
  std::string timestamp_;
  std::string start_;
  ReadOptions options_;
};

// "value@timestamp", "<not found>" or "<error text>".
inline std::string GetAtOrText(DB* db, Slice key, const ReadOptions& options, ColumnFamilyHandle* family = nullptr) {
  std::string value;
  std::string timestamp;
  const Status status = db->GetAt(options, family == nullptr ? db->DefaultColumnFamily() : family, key, &value, &timestamp);
  if (status.IsNotFound()) return timestamp.empty() ? "<not found>" : "<not found, but with a timestamp>";
  if (!status.ok()) return "<" + status.ToString() + ">";
  return value + "@" + std::to_string(NumberOf(timestamp));
}

// The iterator's current entry as "key=value@timestamp". Of an iterator over versions, "key-@timestamp" for a deletion and
// "key~@timestamp" for a single deletion.
inline std::string Shown(const Iterator& iterator, bool shows_versions) {
  const std::string at = "@" + std::to_string(NumberOf(iterator.timestamp()));
  std::string key(iterator.key());
  if (!shows_versions) return key + "=" + std::string(iterator.value()) + at;
  const char type = key[key.size() - 8];
  key.resize(key.size() - 16);
  if (type == 0x14) return key + "-" + at;
  if (type == 0x07) return key + "~" + at;
  return key + "=" + std::string(iterator.value()) + at;
}

inline std::vector<std::string> ScanAt(DB* db, const ReadOptions& options, bool forward = true,
                                       ColumnFamilyHandle* family = nullptr) {
  std::vector<std::string> shown;
  const auto iterator = family == nullptr ? db->NewIterator(options) : db->NewIterator(options, family);
  for (forward ? iterator->SeekToFirst() : iterator->SeekToLast(); iterator->Valid();
       forward ? iterator->Next() : iterator->Prev()) {
    shown.push_back(Shown(*iterator, options.iter_start_ts.has_value()));
  }
  if (!iterator->status().ok()) shown.push_back(iterator->status().ToString());
  return shown;
}

}  // namespace braiddb::test
