// MemtableType: the description of one kind of memtable, and the list of all kinds.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "braiddb/options.h"
#include "lsm/memtable.h"

namespace braiddb {

// What a memtable is made of.
struct MemtableParts {
  uint64_t id;
  const RegionSet* regions;
  const KeyOrder* order;
  std::unique_ptr<Arena> arena;
  uint32_t block_bytes;
  uint64_t entries;  // estimated number of entries
};

// All code outside of lsm/ learns of a kind through this description.
struct MemtableType {
  MemtableKind kind;
  std::string_view name;  // in options files and flags
  bool hashes_keys;       // equal keys must have the same bytes (KeyOrder::equal_means_same)
  // Returns null if the arena has no room.
  std::unique_ptr<Memtable> (*create)(MemtableParts parts);
  // Returns a memtable for reading only over another process' arena (Arena::Attach).
  std::unique_ptr<Memtable> (*attach)(MemtableParts parts);
};

// Returns all kinds, in the order of their numbers.
std::span<const MemtableType> MemtableTypes();
// Returns the description; null if there is no such kind.
const MemtableType* FindMemtableType(MemtableKind kind);
const MemtableType* FindMemtableType(std::string_view name);
// Creates a memtable of the kind. If the kind cannot have keys of this order, creates one of the first kind that can.
// REQUIRES: the kind exists.
std::unique_ptr<Memtable> CreateMemtable(MemtableKind kind, MemtableParts parts);
// Attaches to a memtable that CreateMemtable has made in another process with the same kind and an equivalent order.
std::unique_ptr<Memtable> AttachMemtable(MemtableKind kind, MemtableParts parts);

}  // namespace braiddb
