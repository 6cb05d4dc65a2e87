// RangeRecord: the encoding of a range tombstone as a log entry of a hidden column family.
//
// LAYOUT        key: magic (8 bytes), id of the family whose keys it deletes (u32 BE), number of the record (u64 BE)
//               value: length of begin (u32 LE), begin, end
//               The sequence number of the entry is the tombstone's. The magic tells records from other entries if the MANIFEST
//               is damaged.
// COMMIT POINT  As of every entry: the fence behind its lines. The record and other updates of the batch commit together.
// RECOVERY      As of every entry. Parse refuses records with impossible lengths.
// LIFETIME      A record never changes. It is deleted when no entry is left that the tombstone hides.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "braiddb/slice.h"
#include "index/range_tombstones.h"

namespace braiddb {

// The name of the hidden family; at most 32 bytes. Lists of families do not show it. Copies of a database do not have it, since
// a copy is made of visible entries.
inline constexpr const char* kRangeTombstonesFamilyName = "__braiddb_range_tombstones";

// Static functions only. Thread-safe.
class RangeRecord {
 public:
  // Returns the key of record `number` of a family. Keys sort by family, then by number.
  static std::string Key(uint32_t family, uint64_t number) {
    std::string key(kMagic);
    for (int shift = 24; shift >= 0; shift -= 8) key.push_back(static_cast<char>(family >> shift));
    for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(number >> shift));
    return key;
  }
  // Returns the value for the range [begin, end).
  static std::string Value(Slice begin, Slice end) {
    const auto length = static_cast<uint32_t>(begin.size());
    std::string value(reinterpret_cast<const char*>(&length), sizeof(length));
    return value.append(begin).append(end);
  }

  // Returns true if the key has the size and the magic of a record's key.
  static bool IsKey(Slice key) { return key.size() == kKeySize && key.substr(0, kMagic.size()) == kMagic; }

  // Decodes an entry. Returns false if it is no record. `sequence`: sequence number of the entry.
  static bool Parse(Slice key, Slice value, uint64_t sequence, uint32_t* family, RangeTombstone* tombstone) {
    uint32_t length = 0;
    if (!ParseKey(key, family, &tombstone->record) || value.size() < sizeof(length)) return false;
    std::memcpy(&length, value.data(), sizeof(length));
    value.remove_prefix(sizeof(length));
    if (value.size() < length) return false;
    tombstone->begin.assign(value.substr(0, length));
    tombstone->end.assign(value.substr(length));
    tombstone->sequence = sequence;
    return true;
  }

 private:
  static constexpr std::string_view kMagic{"\0BrdRng\1", 8};
  static constexpr size_t kKeySize = 8 + sizeof(uint32_t) + sizeof(uint64_t);

  static bool ParseKey(Slice key, uint32_t* family, uint64_t* number) {
    if (!IsKey(key)) return false;
    *family = 0;
    *number = 0;
    for (size_t i = 0; i < sizeof(uint32_t); ++i) *family = *family << 8 | static_cast<uint8_t>(key[8 + i]);
    for (size_t i = 0; i < sizeof(uint64_t); ++i) *number = *number << 8 | static_cast<uint8_t>(key[12 + i]);
    return true;
  }
};

}  // namespace braiddb
