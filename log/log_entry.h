// LogEntry: a record of the write-ahead log that is also a node of the braided skiplists (index-unified logging, ListDB 3.2).
//
// LAYOUT (bytes; little endian; entries are 8-byte aligned)
//     0  checksum     u64   see below, never 0
//     8  tag          u64   sequence number << 8 | flags | type
//    16  value_size   u32   0 … 2^30
//    20  shape        u32   bits 0–16 key size (0 … 65536), bits 17–21 height (1 … kMaxHeight), bits 22–31 column family
//    24  next[height] u64   PmPtr to the successor per layer, 0 = end; low bits of next[0]: 0 dead, a newer version hides the
//                           entry; 1 moved, a copy with the same sequence number took its place
//     …  key, then value, then zero to seven bytes of padding
//   PLACEMENT An entry begins where the one before it ended, unless that is more than kLastStart bytes into a cache line; then
//   it begins at the next line. With 8-byte keys and values nearly every entry is one line, and a search touches one line per
//   node.
// COMMIT POINT  All lines of the entry (of a batch: of all its entries) are flushed and one fence has passed.
// PERSIST ORDER None inside an entry: the checksum covers everything that has to be there.
// RECOVERY      An entry is valid if and only if its sizes fit the segment and the checksum matches. The checksum is seeded with
//               a random number of this use of the segment (Segment::entry_seed), so bytes of an earlier use of the space do not
//               match, whoever chose them. A batch is valid if and only if
//               its entries follow each other, all but the last carry kMoreFollows, and each is valid. In a segment the valid
//               entries are a prefix.
// CONCURRENCY   Everything but next[] is immutable once published. next[] is written by the flush job, then by the one merge
//               at a time; readers load it with acquire. The writer's next[] is all null.
// LIFETIME      The bytes are reused only after the entry is marked dead or moved durably, no durable list reaches it, the
//               MANIFEST no longer lists a table that may contain it, and every reader that may see it has left (epoch).
#pragma once

#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "braiddb/slice.h"
#include "index/key_hash.h"
#include "index/key_order.h"
#include "pmem/persistence.h"
#include "pmem/pm_ptr.h"
#include "pmem/region_set.h"
#include "pmem/segment_allocator.h"
#include "util/mutant.h"

namespace braiddb {

// kMerge: an operand, which is applied to the next older version of its key (ColumnFamilyOptions::merge_operator).
enum class EntryType : uint8_t { kDelete = 0, kPut = 1, kMerge = 2 };
inline constexpr EntryType kLastEntryType = EntryType::kMerge;

// Column families have the ids below; 0 is the default one.
inline constexpr uint32_t kMaxFamilies = 1024;
inline constexpr uint32_t kMaxHeight = 20;
// A put whose tag has LogEntry::kByFilter; as a LogUpdate's type only.
inline constexpr auto kPutByFilter = static_cast<EntryType>(0x21);

// One entry in kBranching reaches the next layer.
inline constexpr uint32_t kBranching = 3;

struct LogEntry {
  uint64_t checksum;
  uint64_t tag;
  uint32_t value_size;
  uint32_t shape;
  uint64_t next[];

  static constexpr uint64_t kTypeMask = 0x0f;
  static constexpr uint64_t kCopy = 0x10;         // a copying flush wrote it: a table has it, and the log does not
  static constexpr uint64_t kByFilter = 0x20;     // a compaction filter made the value: merges do not ask about it again
  static constexpr uint64_t kBatchMember = 0x40;  // one of several entries of a batch
  static constexpr uint64_t kMoreFollows = 0x80;  // … and not its last
  static constexpr uint32_t kKeyBits = 17;
  static constexpr uint32_t kHeightBits = 5;
  static constexpr uint32_t kFamilyShift = kKeyBits + kHeightBits;
  static constexpr uint64_t kTagBits = 7;  // low bits of a next word that are not address
  static constexpr uint64_t kDeadBit = 1;
  static constexpr uint64_t kMovedBit = 2;
  static constexpr uint64_t kMarks = kDeadBit | kMovedBit;  // in next[0] only

  uint64_t sequence() const { return tag >> 8; }
  EntryType type() const { return static_cast<EntryType>(tag & kTypeMask); }
  bool is_operand() const { return type() == EntryType::kMerge; }
  bool is_batch_member() const { return (tag & kBatchMember) != 0; }
  bool is_by_filter() const { return (tag & kByFilter) != 0; }
  bool is_copy() const { return (tag & kCopy) != 0; }
  bool more_follows() const { return (tag & kMoreFollows) != 0; }
  uint32_t key_size() const { return shape & ((1u << kKeyBits) - 1); }
  uint32_t height() const { return shape >> kKeyBits & ((1u << kHeightBits) - 1); }
  uint32_t family() const { return shape >> kFamilyShift; }
  // Key size and family: what keys that are the same have in common.
  uint32_t key_shape() const { return shape & ~(((1u << kHeightBits) - 1) << kKeyBits); }
  static uint32_t MakeKeyShape(size_t key_size, uint32_t family) {
    return static_cast<uint32_t>(key_size) | family << kFamilyShift;
  }
  const char* key_data() const { return reinterpret_cast<const char*>(next + height()); }
  Slice key() const { return Slice(key_data(), key_size()); }
  Slice value() const { return Slice(key_data() + key_size(), value_size); }

  PmPtr Next(uint32_t layer) const { return PmPtr(LoadAcquire(&next[layer]) & ~kTagBits); }
  // acquire: what was marked before this entry is seen as marked.
  bool is_dead() const { return (LoadAcquire(&next[0]) & kDeadBit) != 0; }
  // Takes space for nothing. To readers an entry that was moved is as good as its copy.
  bool is_obsolete() const { return (LoadAcquire(&next[0]) & kMarks) != 0; }

  static uint64_t MakeTag(uint64_t sequence, EntryType type, uint64_t flags) {
    return sequence << 8 | flags | static_cast<uint64_t>(type);
  }
  static uint32_t MakeShape(uint32_t key_size, uint32_t height, uint32_t family) {
    return key_size | height << kKeyBits | family << kFamilyShift;
  }

  // REQUIRES: tag, sizes, key and value are in place.
  uint64_t ComputeChecksum(uint64_t entry_seed) const {
    // Odd multipliers: a change of either header word alone always changes the seed.
    const uint64_t sizes = uint64_t{shape} << 32 | value_size;
    const uint64_t seed = entry_seed * 0x9e3779b97f4a7c15ull + tag * 0xc2b2ae3d27d4eb4full + sizes * 0x165667b19e3779f9ull;
    const uint64_t values = BRAIDDB_MUTANT("value-not-in-checksum") ? 0 : value_size;
    const uint64_t sum = XXH3_64bits_withSeed(key_data(), uint64_t{key_size()} + values, seed);
    return sum == 0 ? 1 : sum;
  }
};

static_assert(sizeof(LogEntry) == 24 && offsetof(LogEntry, next) == 24 && offsetof(LogEntry, shape) == 20);
static_assert(kMaxHeight < (1u << LogEntry::kHeightBits) && kMaxFamilies == 1u << (32 - LogEntry::kFamilyShift));
static_assert(static_cast<uint64_t>(kPutByFilter) == (LogEntry::kByFilter | static_cast<uint64_t>(EntryType::kPut)));

inline uint64_t KeyHash(const LogEntry& entry) { return KeyHash(entry.family(), entry.key()); }

// Bytes of an entry, a multiple of 8.
inline constexpr uint64_t LogEntrySize(uint32_t height, uint64_t key_size, uint64_t value_size) {
  return (sizeof(LogEntry) + 8ull * height + key_size + value_size + 7) & ~7ull;
}
inline uint64_t LogEntrySize(const LogEntry& entry) { return LogEntrySize(entry.height(), entry.key_size(), entry.value_size); }

// Whether what a list leads to has the sizes of an entry that is linked on `layer`. REQUIRES: regions.Holds(place).
inline bool IsEntryOnLayer(const RegionSet& regions, PmPtr place, uint32_t layer) {
  const auto* entry = regions.Resolve<LogEntry>(place);
  return entry->height() > layer && entry->height() <= kMaxHeight &&
         regions.Holds(place + (LogEntrySize(entry->height(), entry->key_size(), 0) - 8));
}

// Whether a walk along a list has taken more steps than the regions have room for entries, each on all its layers: then a damaged
// pointer leads in a circle. Looked at once in a million steps.
inline bool InACircle(const RegionSet& regions, uint64_t steps) {
  constexpr uint64_t kStepsBetween = uint64_t{1} << 20;
  if (__builtin_expect(steps % kStepsBetween != kStepsBetween - 1, 1)) return false;
  return steps / kMaxHeight > regions.MappedBytes() / LogEntrySize(1, 0, 0);
}

// The farthest into a cache line that an entry may begin. With it, tall entries (a little over a line) and short ones
// share lines, and 8-byte keys and values take 64 bytes on average.
inline constexpr uint64_t kLastStart = 32;

// Where the entry after one that ends at `end` begins; offsets are from a line-aligned start.
inline constexpr uint64_t NextEntryOffset(uint64_t end) {
  return end % kCacheLine > kLastStart ? (end + kCacheLine - 1) & ~(kCacheLine - 1) : end;
}

// Log space that an entry at `offset` takes, with what the next one leaves free.
inline constexpr uint64_t LogSpace(uint64_t offset, uint64_t size) { return NextEntryOffset(offset + size) - offset; }

// To be called when an entry of this segment, at `place`, has just been marked.
inline void CountObsolete(Segment* segment, PmPtr place, const LogEntry& entry) {
  segment->dead_entries.fetch_add(1, std::memory_order_relaxed);
  segment->dead_bytes.fetch_add(LogSpace(segment->OffsetOf(place), LogEntrySize(entry)), std::memory_order_relaxed);
}

// < 0, 0, > 0 as the entry is before, at, after the target in entry order.
inline int CompareEntry(const KeyOrder& order, const LogEntry& entry, const SearchKey& target) {
  const Slice key = entry.key();
  const uint64_t prefix = order.Prefix(key);
  if (prefix != target.prefix) return prefix < target.prefix ? -1 : 1;
  const bool same = order.PrefixIsWhole(key) && target.key.size() == key.size();
  const int by_key = same ? 0 : order.Compare(key, target.key);
  if (by_key != 0) return by_key;
  const uint64_t sequence = entry.sequence();
  return sequence == target.sequence ? 0 : sequence > target.sequence ? -1 : 1;
}

inline int CompareEntries(const KeyOrder& order, const LogEntry& a, const LogEntry& b) {
  return CompareEntry(order, a, SearchKey(order, b.key(), b.sequence()));
}

}  // namespace braiddb
