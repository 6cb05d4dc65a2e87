// LevelKind: the description of one kind of last level, and the registry of all kinds.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/options.h"
#include "braiddb/status.h"
#include "index/level_place.h"
#include "pmem/segment_allocator.h"

namespace braiddb {

class LastLevel;        // compaction/last_level.h
class KeyOrder;         // index/key_order.h
class LevelMedia;       // check/level_media.h
class OrderedLevel;     // index/ordered_level.h
class SharedMemory;     // util/shared_memory.h
struct LastLevelParts;  // compaction/last_level.h

// How the DRAM of a level is charged in a database with a DRAM budget.
enum class LevelDram : uint8_t {
  kIndexShare,  // Options::l1_index_size bounds the level's DRAM, and the budget has a share for it
  kGrows,       // the DRAM grows with the number of entries, at the expense of lookup cache and filter
};

// GUARANTEE  All code outside of a kind's folder learns of the kind through this description. No other code compares L1Kind.
// LIFETIME   Immutable. A registered description must live until the process ends.
struct LevelKind {
  L1Kind id;                  // stored in the MANIFEST; never reused for another kind
  std::string_view name;      // in options files, flags, environment variables and reports: "sorted_runs"
  std::string_view constant;  // the enumerator of L1Kind, for messages: "kSortedRuns"

  // ---- Traits. The default is the more frequent value.

  // A merge copies entries into segments of the level. Otherwise the level refers to the entries in the log, where all live
  // entries of the database are found.
  bool copies_entries = false;
  // A merge or sweep allocates space for the entries that it rewrites, before it releases the space of the old ones. If there is
  // no space, a sweep may end early; the rest of the level is unchanged then.
  bool needs_space_to_merge = false;
  // A merge moves entries from the tables' lists to the level by changes of their `next` words, through the merge journal of the
  // database. Otherwise the tables' lists stay as they are until the merge has ended.
  bool relinks_entries = false;
  // The level has an index of all its nodes, so with one region a merge follows a sorted run of all its tables, if there is one.
  bool indexes_all_nodes = false;
  LevelDram dram = LevelDram::kIndexShare;
  // A feature flag that the MANIFEST of a database with such a level has: 0, or 64 or 128, since lsm/manifest.cc has the other
  // bits. Versions without the flag refuse the database. Needed if such versions would misread entries.
  uint8_t manifest_flag = 0;

  // ---- Functions

  // See LastLevel::Create and LastLevel::Open.
  Status (*create)(const Options& options, RegionSet* regions, SegmentAllocator* segments, const LevelPlace& place);
  Status (*open)(const Options& options, const LastLevelParts& parts, uint64_t job, std::unique_ptr<LastLevel>* result);
  // Returns an object that reads a level which another process changes, through regions that are mapped for reading only
  // (RegionSet::OpenLive). Null: the kind cannot be read so.
  Status (*attach)(const RegionSet& regions, const KeyOrder& order, const LevelPlace& place,
                   std::shared_ptr<const OrderedLevel>* level) = nullptr;
  // Returns an object that reads the same level as `attached`, a result of `attach`, by the index of the other process. `memory`
  // maps the SharedHeap of that process, and must outlive the object. `shared`: OrderedLevel::Shared() there; what does not fit
  // is not used. Null: the kind has no index that can be used so. May throw std::bad_alloc.
  std::shared_ptr<const OrderedLevel> (*attach_index)(const OrderedLevel& attached, const SharedMemory& memory,
                                                      std::span<const uint64_t> shared) = nullptr;
  // Returns an object that reads one level of the kind from a database that is not open, for check, dump and repair.
  std::unique_ptr<LevelMedia> (*new_media)();
};

// Returns the description; null if no such kind is registered. Thread-safe, without locks.
const LevelKind* FindLevelKind(L1Kind id);
inline const LevelKind* FindLevelKind(uint8_t stored_id) { return FindLevelKind(static_cast<L1Kind>(stored_id)); }
const LevelKind* FindLevelKind(std::string_view name);
// Returns all kinds, sorted by id. Thread-safe.
std::vector<const LevelKind*> LevelKinds();
// Returns the names of all kinds for messages, each behind `prefix`: "braided_skiplist nor nv_tree nor sorted_runs".
std::string LevelKindNames(std::string_view separator, std::string_view prefix = "");
// Returns the kind's name in options.h. An unknown kind yields a text with its number.
std::string NameOfL1(uint8_t kind);

// Adds a kind beside the built-in ones. Thread-safe. REQUIRES: no kind has its id or name. To be called before a database with a
// level of this kind is created, opened or checked.
void RegisterLevelKind(const LevelKind* kind);

// The kinds that are part of the library. Defined in levels/built_in_kinds.cc, which is above this folder and sees all kinds.
std::span<const LevelKind* const> BuiltInLevelKinds();

}  // namespace braiddb
