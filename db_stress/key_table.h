// KeyTable: all keys that a database may have, by number and in the order of their column families.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braiddb/comparator.h"
#include "braiddb/slice.h"

namespace braiddb::stress {

// Three kinds, by number:
//   shared    all threads read and write them concurrently; histories are recorded
//   grouped   each group is always written as a whole, in one batch, so any view shows one generation of the group
//   single    all others
// Grouped and single keys belong to a lane. A lane has one writer at a time, so its writes are ordered. All kinds are spread over
// the column families, and large groups span most families.
class KeyTable {
 public:
  static constexpr uint32_t kLanes = 8;
  static constexpr uint32_t kShared = 24;
  static constexpr uint32_t kGroups = 32;
  static constexpr uint32_t kGroupSize = 4;
  static constexpr uint32_t kFirstGrouped = kShared;
  static constexpr uint32_t kFirstSingle = kFirstGrouped + kGroups * kGroupSize;
  static constexpr uint32_t kMinKeys = kFirstSingle + kLanes * 16;

  // Draws keys of many shapes from the seed. `comparators`: one per family, the default family first. REQUIRES: count >=
  // kMinKeys.
  KeyTable(uint64_t seed, uint32_t count, std::vector<const Comparator*> comparators);

  uint32_t size() const { return static_cast<uint32_t>(keys_.size()); }
  uint32_t families() const { return static_cast<uint32_t>(comparators_.size()); }
  const Comparator* comparator(uint32_t family) const { return comparators_[family]; }
  uint32_t family_of(uint32_t id) const { return (id + id / kLanes) % families(); }
  const std::string& key(uint32_t id) const { return keys_[id]; }
  uint32_t id_at(uint32_t position) const { return order_[position]; }
  uint32_t position_of(uint32_t id) const { return positions_[id]; }
  // The positions of a family's keys are [begin, end).
  uint32_t begin(uint32_t family) const { return begins_[family]; }
  uint32_t end(uint32_t family) const { return begins_[family + 1]; }
  // The position of the family's first key that is not before `target`, or end(family).
  uint32_t LowerBound(uint32_t family, Slice target) const;

  static bool IsShared(uint32_t id) { return id < kShared; }
  static uint32_t GroupedKey(uint32_t group, uint32_t member) { return kFirstGrouped + group * kGroupSize + member; }
  uint32_t singles_of_lane() const { return (size() - kFirstSingle) / kLanes; }
  static uint32_t SingleKey(uint32_t lane, uint32_t i) { return kFirstSingle + i * kLanes + lane; }

 private:
  const std::vector<const Comparator*> comparators_;
  std::vector<std::string> keys_;    // by id
  std::vector<uint32_t> order_;      // ids, sorted by family, then by key
  std::vector<uint32_t> positions_;  // the inverse of order_
  std::vector<uint32_t> begins_;     // of each family, followed by the end
};

}  // namespace braiddb::stress
