// LogEntry: a record of the write-ahead log that is also a node of the braided skiplists (index-unified logging, ListDB 3.2).
//
// LAYOUT (bytes; little endian; entries are 8-byte aligned)
//     0  checksum     u64   see below, never 0
//     8  tag          u64   sequence number << 8 | flags | type
//    16  value_size   u32   0 … 2^30
//    20  shape        u32   bits 0–16 key size (0 … 65536), bits 17–21 height (1 … kMaxHeight), bits 22–31 column family
//    24  next[height] u64   PmPtr to the successor on each layer, 0 = end; low bits of next[0]: bit 0 dead, a newer version
//    hides
//                           the entry; bit 1 moved, a copy with the same sequence number has replaced it
//     …  key, then value, then zero to seven bytes of padding
//   PLACEMENT An entry begins at the end of its predecessor in the segment, or at the next line if the end lies more than
//   kLastStart bytes into a line. With 8-byte keys and values nearly every entry fits one line, and a search touches one line
//   per node.
// COMMIT POINT  All lines of the entry (of a batch: of all its entries) are flushed and one fence has passed.
// PERSIST ORDER None inside an entry: the checksum covers tag, sizes, key and value. It does not cover next[], which a
// checkpoint
//               makes durable later [CC-3].
// RECOVERY      An entry is valid if and only if its sizes fit the segment and the checksum matches. The checksum is seeded
//               with a random number of this use of the segment (Segment::entry_seed), so bytes of an earlier use do not match,
//               even if a user has chosen them. A batch is valid if and only if its entries follow each other, all but the last
//               carry kMoreFollows, and each is valid. The valid entries of a segment are a prefix of it. [CC-6]
// CONCURRENCY   A published entry is immutable, except next[]. The flush job stores next[] first, and later one merge at a
//               time. Readers load next[] with acquire. The writer leaves next[] all null.
// LIFETIME      The bytes are reused only when all of these hold: the entry is durably marked dead or moved; no durable list
//               reaches it; the MANIFEST lists no table that may contain it; every reader that may see it has left (epoch).
//               [CC-7]
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
#include "util/check.h"
#include "util/long_hash.h"
#include "util/mutant.h"

namespace braiddb {

// The type of an update, in the low bits of the tag. kMerge: an operand, which is applied to the next older version of its key
// (ColumnFamilyOptions::merge_operator).
enum class EntryType : uint8_t { kDelete = 0, kPut = 1, kMerge = 2 };
inline constexpr EntryType kLastEntryType = EntryType::kMerge;

// Ids of column families are 0 … kMaxFamilies - 1; 0 is the default family.
inline constexpr uint32_t kMaxFamilies = 1024;
inline constexpr uint32_t kMaxHeight = 20;
// The type of a LogUpdate that writes a put with LogEntry::kByFilter in its tag. No other function accepts this value.
inline constexpr auto kPutByFilter = static_cast<EntryType>(0x21);

// On average one entry in kBranching of a layer also belongs to the next layer.
inline constexpr uint32_t kBranching = 3;

struct LogEntry {
  uint64_t checksum;
  uint64_t tag;
  uint32_t value_size;
  uint32_t shape;
  uint64_t next[];

  static constexpr uint64_t kTypeMask = 0x0f;
  static constexpr uint64_t kCopy = 0x10;         // written by a copying flush: belongs to a table, not to the log
  static constexpr uint64_t kByFilter = 0x20;     // a compaction filter made the value, so merges do not filter the entry again
  static constexpr uint64_t kBatchMember = 0x40;  // one of several entries of a batch
  static constexpr uint64_t kMoreFollows = 0x80;  // not the last entry of its batch
  static constexpr uint32_t kKeyBits = 17;
  static constexpr uint32_t kHeightBits = 5;
  static constexpr uint32_t kFamilyShift = kKeyBits + kHeightBits;
  static constexpr uint64_t kTagBits = 7;  // low bits of a next word, which are no part of the address
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
  // Key size and family: two entries with different key shapes have different keys, so a comparison of one word decides.
  uint32_t key_shape() const { return shape & ~(((1u << kHeightBits) - 1) << kKeyBits); }
  static uint32_t MakeKeyShape(size_t key_size, uint32_t family) {
    return static_cast<uint32_t>(key_size) | family << kFamilyShift;
  }
  const char* key_data() const { return reinterpret_cast<const char*>(next + height()); }
  Slice key() const { return Slice(key_data(), key_size()); }
  Slice value() const { return Slice(key_data() + key_size(), value_size); }

  // The successor on a layer, without marks. REQUIRES: layer < height(). acquire: pairs with the release of the store that
  // linked the successor.
  PmPtr Next(uint32_t layer) const { return PmPtr(LoadAcquire(&next[layer]) & ~kTagBits); }
  // Returns true if a newer version hides the entry. acquire: marks that were set before this one are visible as well.
  bool is_dead() const { return (LoadAcquire(&next[0]) & kDeadBit) != 0; }
  // Returns true if the entry is dead or moved, so that its space is garbage. A reader may still use a moved entry: its copy
  // has the same content.
  bool is_obsolete() const { return (LoadAcquire(&next[0]) & kMarks) != 0; }

  // REQUIRES: sequence <= kMaxSequence, `flags` consists of the flag constants above.
  static uint64_t MakeTag(uint64_t sequence, EntryType type, uint64_t flags) {
    return sequence << 8 | flags | static_cast<uint64_t>(type);
  }
  static uint32_t MakeShape(uint32_t key_size, uint32_t height, uint32_t family) {
    return key_size | height << kKeyBits | family << kFamilyShift;
  }

  // Computes the checksum; never 0, which marks unwritten space. REQUIRES: tag, sizes, key and value are in place, and the
  // sizes are within their limits.
  uint64_t ComputeChecksum(uint64_t entry_seed) const {
    const uint64_t seed = ChecksumSeed(entry_seed);
    const uint64_t values = BRAIDDB_MUTANT("value-not-in-checksum") ? 0 : value_size;
    const uint64_t bytes = uint64_t{key_size()} + values;
    return ChecksumOf(bytes > kMaxShortHash ? HashLong(key_data(), bytes, seed) : XXH3_64bits_withSeed(key_data(), bytes, seed));
  }
  // The parts of ComputeChecksum, for a writer that hashes key and value while it copies them. The seed needs tag and sizes.
  uint64_t ChecksumSeed(uint64_t entry_seed) const {
    // Odd multipliers: a change of either header word alone always changes the seed.
    const uint64_t sizes = uint64_t{shape} << 32 | value_size;
    return entry_seed * 0x9e3779b97f4a7c15ull + tag * 0xc2b2ae3d27d4eb4full + sizes * 0x165667b19e3779f9ull;
  }
  static uint64_t ChecksumOf(uint64_t hash) { return hash == 0 ? 1 : hash; }
};

static_assert(sizeof(LogEntry) == 24 && offsetof(LogEntry, next) == 24 && offsetof(LogEntry, shape) == 20);
// The distance from an entry to its tower.
inline constexpr uint64_t kTowerOffset = offsetof(LogEntry, next);
static_assert(offsetof(LogEntry, checksum) == 0 && offsetof(LogEntry, tag) == 8 && offsetof(LogEntry, value_size) == 16);
static_assert(alignof(LogEntry) == 8, "next words are stored atomically");
static_assert(LogEntry::kMarks <= LogEntry::kTagBits, "marks lie in bits that an address does not use");
static_assert((static_cast<uint64_t>(kLastEntryType) & ~LogEntry::kTypeMask) == 0);
static_assert(kMaxHeight < (1u << LogEntry::kHeightBits) && kMaxFamilies == 1u << (32 - LogEntry::kFamilyShift));
static_assert(static_cast<uint64_t>(kPutByFilter) == (LogEntry::kByFilter | static_cast<uint64_t>(EntryType::kPut)));

// The hash of family and key, as used by caches, filters and indexes.
inline uint64_t KeyHash(const LogEntry& entry) { return KeyHash(entry.family(), entry.key()); }

// Returns the bytes of an entry, padded to a multiple of 8.
inline constexpr uint64_t LogEntrySize(uint32_t height, uint64_t key_size, uint64_t value_size) {
  return (sizeof(LogEntry) + 8ull * height + key_size + value_size + 7) & ~7ull;
}
inline uint64_t LogEntrySize(const LogEntry& entry) { return LogEntrySize(entry.height(), entry.key_size(), entry.value_size); }

// Returns true if the bytes at `place` have the sizes of an entry that can be linked on `layer`. A walk over a list that may be
// damaged asks this before it reads the key. REQUIRES: regions.Holds(place).
inline bool IsEntryOnLayer(const RegionSet& regions, PmPtr place, uint32_t layer) {
  const auto* entry = regions.Resolve<LogEntry>(place);
  return entry->height() > layer && entry->height() <= kMaxHeight &&
         regions.Holds(place + (LogEntrySize(entry->height(), entry->key_size(), 0) - 8));
}

// Returns true if a walk has taken more steps than the regions have room for entries on all layers. Then a damaged pointer has
// made a cycle. The size of the regions is read once in 2^20 steps; otherwise the result is false.
inline bool InACircle(const RegionSet& regions, uint64_t steps) {
  constexpr uint64_t kStepsBetween = uint64_t{1} << 20;
  if (__builtin_expect(steps % kStepsBetween != kStepsBetween - 1, 1)) return false;
  return steps / kMaxHeight > regions.MappedBytes() / LogEntrySize(1, 0, 0);
}

// The largest offset in a cache line at which an entry may begin. A tall entry, a little longer than a line, and a short one
// then share lines, so entries with 8-byte keys and values take about a line each.
inline constexpr uint64_t kLastStart = 32;

// Returns the offset of the entry that follows one that ends at `end`. Offsets count from a line-aligned start.
inline constexpr uint64_t NextEntryOffset(uint64_t end) {
  return end % kCacheLine > kLastStart ? (end + kCacheLine - 1) & ~(kCacheLine - 1) : end;
}

// Returns the log space of an entry at `offset`: its size and the gap before the next entry.
inline constexpr uint64_t LogSpace(uint64_t offset, uint64_t size) { return NextEntryOffset(offset + size) - offset; }

// Adds an entry to the segment's counts of dead entries. Call once, when the entry at `place` has been marked dead or moved.
inline void CountObsolete(Segment* segment, PmPtr place, const LogEntry& entry) {
  BRAIDDB_DCHECK(segment->Contains(place));
  segment->dead_entries.fetch_add(1, std::memory_order_relaxed);
  segment->dead_bytes.fetch_add(LogSpace(segment->OffsetOf(place), LogEntrySize(entry)), std::memory_order_relaxed);
}

// Compares in entry order: ascending keys, then descending sequence numbers. Returns < 0, 0 or > 0 if the entry is before, at
// or after the target. The prefix decides for most keys, without a comparison of bytes.
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
