// The keys that a database may ever hold: by number, and in the database's order.
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
// Grouped and single ones belong to a lane. A lane has one writer at a time, so that its writes have an order.
class KeyTable {
 public:
  static constexpr uint32_t kLanes = 8;
  static constexpr uint32_t kShared = 24;
  static constexpr uint32_t kGroups = 32;
  static constexpr uint32_t kGroupSize = 4;
  static constexpr uint32_t kFirstGrouped = kShared;
  static constexpr uint32_t kFirstSingle = kFirstGrouped + kGroups * kGroupSize;
  static constexpr uint32_t kMinKeys = kFirstSingle + kLanes * 16;

  // Keys of every shape, which follow from the seed. REQUIRES: count >= kMinKeys.
  KeyTable(uint64_t seed, uint32_t count, const Comparator* comparator);

  uint32_t size() const { return static_cast<uint32_t>(keys_.size()); }
  const Comparator* comparator() const { return comparator_; }
  const std::string& key(uint32_t id) const { return keys_[id]; }
  uint32_t id_at(uint32_t position) const { return order_[position]; }
  uint32_t position_of(uint32_t id) const { return positions_[id]; }
  // The position of the first key that is not before `target`; size() if there is none.
  uint32_t LowerBound(Slice target) const;

  static bool IsShared(uint32_t id) { return id < kShared; }
  static uint32_t GroupedKey(uint32_t group, uint32_t member) { return kFirstGrouped + group * kGroupSize + member; }
  uint32_t singles_of_lane() const { return (size() - kFirstSingle) / kLanes; }
  static uint32_t SingleKey(uint32_t lane, uint32_t i) { return kFirstSingle + i * kLanes + lane; }

 private:
  const Comparator* const comparator_;
  std::vector<std::string> keys_;    // by id
  std::vector<uint32_t> order_;      // ids, sorted by key
  std::vector<uint32_t> positions_;  // the inverse
};

}  // namespace braiddb::stress
