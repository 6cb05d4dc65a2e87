// LeafWalk: follows the leaves of a LeafTree of a database that is not open.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/level_media.h"
#include "leaf_tree/leaf_tree.h"

namespace braiddb {

// Reads leaves without trust. Each kind of leaf implements this class.
class LeafReader {
 public:
  virtual ~LeafReader() = default;
  // Of the tree, for messages: "NV-Tree".
  virtual const char* name() const = 0;
  virtual BlockStart start() const = 0;
  // True if the bytes are a valid leaf of the tree. Reads only the leaf.
  virtual bool IsValid(const uint8_t* leaf, PmPtr place) const = 0;
  virtual uint64_t LinkOf(const uint8_t* leaf) const = 0;
  // Appends the live elements of a valid leaf to *elements, in any order. Their key words are those of the leaf.
  virtual void Collect(const uint8_t* leaf, std::vector<Element>* elements) const = 0;
  // True if an element of the leaf fits the key of its entry.
  virtual bool Fits(const KeyOrder& order, const uint8_t* leaf, const Element& element, Slice key) const = 0;
  // True if an image of the inner nodes may have this hint of the leaf.
  virtual bool IsHint(const uint8_t* leaf, uint32_t hint) const = 0;
};

// GOAL   Finds every violation of these rules. The headers of segments of leaves, and all leaves in the list, are valid; no
//        leaf is in the list twice. Each element names a valid entry of the family below the log boundary, and fits its key.
//        Entries ascend along the list. No entry is marked; during a merge or sweep, versions that a newer one hides may be
//        marked, and newest tombstones that hide no other version. An image of the inner nodes has exactly these leaves, and its
//        borders lie between them.
// STEPS  One walk along the list of leaves, then the image.
// COST   One visit of each leaf and of each entry; one bit of DRAM per block.
// Adds the entries that are not marked to *check.reached.
LevelCounts CheckLeafTree(const LevelCheck& check, const LeafReader& reader, const LeafTreeRoot& root);

}  // namespace braiddb
