// The keys that a database may ever hold: by number, and in the order of their column families.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braiddb/comparator.h"
#include "braiddb/slice.h"

namespace braiddb::stress {

// Three kinds, by number:
//   shared    all threads read and write them at once: histories are recorded
//   grouped   each group is always written as a whole, in one batch, so that any view shows one generation of it
//   single    the others
// Grouped and single ones belong to a lane. A lane has one writer at a time, so that its writes have an order. All kinds are
// spread over the column families, and groups of several keys over most of them.
class KeyTable {
 public:
  static constexpr uint32_t kLanes = 8;
  static constexpr uint32_t kShared = 24;
  static constexpr uint32_t kGroups = 32;
  static constexpr uint32_t kGroupSize = 4;
  static constexpr uint32_t kFirstGrouped = kShared;
  static constexpr uint32_t kFirstSingle = kFirstGrouped + kGroups * kGroupSize;
  static constexpr uint32_t kMinKeys = kFirstSingle + kLanes * 16;

  // Keys of every shape, which follow from the seed. `comparators`: of each family, the default one first. REQUIRES: count >=
  // kMinKeys.
  KeyTable(uint64_t seed, uint32_t count, std::vector<const Comparator*> comparators);

  uint32_t size() const { return static_cast<uint32_t>(keys_.size()); }
  uint32_t families() const { return static_cast<uint32_t>(comparators_.size()); }
  const Comparator* comparator(uint32_t family) const { return comparators_[family]; }
  uint32_t family_of(uint32_t id) const { return (id + id / kLanes) % families(); }
  const std::string& key(uint32_t id) const { return keys_[id]; }
  uint32_t id_at(uint32_t position) const { return order_[position]; }
  uint32_t position_of(uint32_t id) const { return positions_[id]; }
  // Positions of a family's keys, which follow each other: from `begin` on, and before `end`.
  uint32_t begin(uint32_t family) const { return begins_[family]; }
  uint32_t end(uint32_t family) const { return begins_[family + 1]; }
  // The position of the family's first key that is not before `target`; end(family) if there is none.
  uint32_t LowerBound(uint32_t family, Slice target) const;

  static bool IsShared(uint32_t id) { return id < kShared; }
  static uint32_t GroupedKey(uint32_t group, uint32_t member) { return kFirstGrouped + group * kGroupSize + member; }
  uint32_t singles_of_lane() const { return (size() - kFirstSingle) / kLanes; }
  static uint32_t SingleKey(uint32_t lane, uint32_t i) { return kFirstSingle + i * kLanes + lane; }

 private:
  const std::vector<const Comparator*> comparators_;
  std::vector<std::string> keys_;    // by id
  std::vector<uint32_t> order_;      // ids, sorted by family, then key
  std::vector<uint32_t> positions_;  // the inverse
  std::vector<uint32_t> begins_;     // of each family, and the end
};

}  // namespace braiddb::stress
