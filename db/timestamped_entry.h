// Entries of families with user-defined timestamps.
//
// LAYOUT  An entry is a put of the engine. Key: the user's key · timestamp (Comparator::timestamp_size() bytes). Value: the
//         user's value · kind (1 byte). The comparator orders keys ascending, and newer timestamps of one key first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braiddb/comparator.h"
#include "braiddb/db.h"
#include "braiddb/status.h"

namespace braiddb {

// RocksDB's numbers of value types. Iterators that show versions return them.
enum class VersionKind : uint8_t { kPut = 0x01, kSingleDelete = 0x07, kDelete = 0x14 };

inline bool HasTimestamps(const Comparator* comparator) { return comparator != nullptr && comparator->timestamp_size() != 0; }

// Whether an open with these options has a family with timestamps.
inline bool HasTimestamps(const Options& options, const std::vector<ColumnFamilyDescriptor>& families) {
  bool is_default_named = false;
  for (const ColumnFamilyDescriptor& family : families) {
    if (HasTimestamps(family.options.comparator)) return true;
    is_default_named |= family.name == kDefaultColumnFamilyName;
  }
  return !is_default_named && HasTimestamps(options.comparator);
}

// For opens that do not support families with timestamps. `what`: their name for users.
inline Status RefuseTimestamps(const Options& options, const std::vector<ColumnFamilyDescriptor>& families, const char* what) {
  if (!HasTimestamps(options, families)) return Status::OK();
  return Status::NotSupported(std::string(what) + " with a comparator that has timestamps; open the database with DB::Open");
}

// A stored key or value as its two parts. REQUIRES of SplitKey: key.size() >= timestamp_size. Of SplitValue: !value.empty().
struct SplitKey {
  SplitKey(Slice stored, size_t timestamp_size)
      : key(stored.substr(0, stored.size() - timestamp_size)), timestamp(stored.substr(stored.size() - timestamp_size)) {}
  Slice key;
  Slice timestamp;
};
struct SplitValue {
  explicit SplitValue(Slice stored)
      : value(stored.substr(0, stored.size() - 1)), kind(static_cast<VersionKind>(static_cast<uint8_t>(stored.back()))) {}
  Slice value;
  VersionKind kind;
};

inline bool IsTimestamped(Slice key, Slice value, size_t timestamp_size) {
  return key.size() >= timestamp_size && !value.empty();
}
inline Status NotTimestamped() {
  return Status::Corruption("an entry of a column family with timestamps has no timestamp or no kind; restore a backup");
}

inline std::string StoredKey(Slice key, Slice timestamp) {
  std::string stored;
  stored.reserve(key.size() + timestamp.size());
  return stored.append(key).append(timestamp);
}
inline std::string StoredValue(Slice value, VersionKind kind) {
  std::string stored;
  stored.reserve(value.size() + 1);
  return stored.append(value).append(1, static_cast<char>(kind));
}
// The stored key before all versions of `key`, and the one that is not before any of them.
inline std::string FirstStoredKey(Slice key, size_t timestamp_size) { return std::string(key).append(timestamp_size, '\xff'); }
inline std::string LastStoredKey(Slice key, size_t timestamp_size) { return std::string(key).append(timestamp_size, '\0'); }

// Errors, with RocksDB's texts.
inline Status NeedsTimestamp(const ColumnFamilyHandle& family) {
  return Status::InvalidArgument("cannot call this method on column family " + family.GetName() + " that enables timestamp");
}
inline Status TakesNoTimestamp(const std::string& family) {
  return Status::InvalidArgument("cannot call this method on column family " + family + " that does not enable timestamp");
}
inline Status CheckTimestampSize(const Comparator& comparator, Slice timestamp) {
  if (timestamp.size() == comparator.timestamp_size()) return Status::OK();
  return Status::InvalidArgument("Timestamp sizes mismatch: expect " + std::to_string(comparator.timestamp_size()) + ", " +
                                 std::to_string(timestamp.size()) + " given");
}

}  // namespace braiddb
