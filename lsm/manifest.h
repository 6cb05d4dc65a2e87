// Manifest: the durable root above the log. It names the tables of L0, the log boundary and the running merge.
//
// LAYOUT  One metadata object in region 0 (MetadataSlot::kManifest or kManifest2): a header line, then two slots of equal size.
//           header    0 magic u64, 8 selector u64 (generation of the valid slot), 16 slot_bytes u64, 24 stamp_seed u64 (any
//                     value is valid)
//           slot      ManifestRecord, then table_count × (TableRecord, heads[regions][kMaxHeight]), then family_count ×
//                     (FamilyRecord, name, zeros to a multiple of 8)
//         Generation g lives in slot g mod 2.
//         Format 2 has no families: its ManifestRecord and TableRecord are shorter. The next commit after reading format 2 writes
//         format 3 into a slot of the same size. Format 4 is format 3 with at least one feature flag (kFeatures). A version that
//         does not know a feature must refuse the database.
// COMMIT POINT   P1: the other slot is complete, its lines are flushed, and one fence has passed.
// PERSIST ORDER  P0 after a crash that tore a commit: the checksum in the other slot is cleared  P1 the other slot  P2 the
//                selector
// RECOVERY       Valid if and only if the slot that the selector names has that generation and its checksum matches. Otherwise
//                the MANIFEST is corrupt. A crash cannot cause this, since the slot is durable before the selector names it. If
//                the other slot is valid and one generation newer, the crash came between P1 and P2: the newer slot counts, and
//                open repeats P2 before anything else. Open also persists the slot that counts, which may not be durable if the
//                process was killed [CC-46]. Open invalidates a torn slot, because the next commit uses the same generation and
//                slot. [CC-2]
// GROWTH         If a record does not fit in a slot, the MANIFEST moves to a larger object in the other of its two metadata
//                slots. The new object has the same contents, one generation later.
//                G1: the new object, zeroed, is in its metadata slot. G2: its slot and its selector are durable. G3: its magic,
//                one store, is durable, and the object counts. G4: the old object is freed. The next commit goes to the new
//                object.
// CRASH          Before G3: an object without a magic does not count. Between G3 and G4: both objects are valid and have the same
//                contents; the newer generation counts. Open frees the other object in both cases. No commit happens between G1
//                and G4, so the freed object never has newer contents than the remaining one. [CC-2]
// ROOM           A checkpoint leaves room in the slot for one table of copies per family (a relocation). The creation of a family
//                also reserves room for one flushed table per family. Growth needs free space; relocations, deletions and the
//                merges that free space therefore never need growth.
// CONCURRENCY    One committer at a time (the caller's lock); no readers after open. Another process may read the files of a live
//                database concurrently (db/read_manifest.h); it detects torn reads by checksums and repeats them.
// LIFETIME       As long as the database.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "braiddb/status.h"
#include "log/log_entry.h"
#include "pmem/region_set.h"
#include "util/comparator_name.h"

namespace braiddb {

inline constexpr uint32_t kManifestFormat = 3;
// The format of a database with a feature that older versions would misread, so that they refuse the database.
inline constexpr uint32_t kManifestFormatWithFeatures = 4;
// Limits for a checkpoint: kMaxManifestTables tables in all, and kMaxTablesPerFamily of each family. Each commit writes all
// listed tables. Flushed tables beyond the limits wait for a merge.
inline constexpr uint32_t kMaxManifestTables = 512;
inline constexpr uint32_t kMaxTablesPerFamily = 4;
inline constexpr uint32_t kMaxFamilyName = 255;

// The contents of the MANIFEST, in DRAM.
struct ManifestState {
  struct Table {
    uint64_t id = 0;
    uint64_t boundary = 0;
    uint64_t entries = 0;
    std::vector<uint64_t> heads;  // regions × kMaxHeight
    uint32_t family = 0;
  };
  // A column family other than the default one.
  struct Family {
    uint32_t id = 0;  // 1 … kMaxFamilies - 1
    std::string name;
    std::string comparator;
    uint8_t l1_kind = 0;
    bool dropped = false;     // no handle can reach the family; its contents are being removed
    uint64_t number = 0;      // next_id at creation: distinguishes families that had the same id
    uint64_t l1_entries = 0;  // estimate
  };
  // These two belong to the default family.
  std::string comparator;
  uint8_t l1_kind = 0;
  uint64_t log_boundary = 1;    // all writes with smaller sequence numbers are in listed tables or in the last level
  uint64_t last_sequence = 0;   // after a clean close: at least the largest sequence number; otherwise a hint
  uint64_t next_id = 1;         // next id of a table, merge or family
  uint64_t l1_entries = 0;      // of the default family; estimate
  uint64_t merge_id = 0;        // 0: no merge is running
  uint32_t merging_tables = 0;  // number of the oldest listed tables of merging_family that are being merged
  uint32_t merging_family = 0;
  bool clean = false;            // closed cleanly: no log to replay
  bool may_lose_writes = false;  // open segments may have been written in PersistMode::kPage, where not every write is synced
  ListKind list_kind = ListKind::kBraided;
  bool copying_flush = false;    // entries below the log boundary that are no copies are garbage: flushes copy entries
  bool merge_filters = false;    // a compaction filter may drop newest versions that are puts in the running merge
  std::vector<Table> tables;     // oldest first
  std::vector<Family> families;  // by id

  // The family with this id; null for the default family and for unknown ids.
  const Family* FindFamily(uint32_t id) const {
    for (const Family& family : families) {
      if (family.id == id) return &family;
    }
    return nullptr;
  }
  Family* FindFamily(uint32_t id) { return const_cast<Family*>(std::as_const(*this).FindFamily(id)); }
};

// The id of tables of copies, at most one per family. Such a table is older than all others and merged like them (relocation.h).
inline constexpr uint64_t kRelocationId = 0;
inline bool HasRelocation(const ManifestState& state) {
  return !state.tables.empty() && state.tables.front().id == kRelocationId;
}

// A metadata object in memory that may hold a MANIFEST; null: no object.
struct ManifestObject {
  const void* data = nullptr;
  uint64_t bytes = 0;
};
inline constexpr MetadataSlot kManifestPlaces[] = {MetadataSlot::kManifest, MetadataSlot::kManifest2};

class Manifest {
 public:
  // Creates the object and commits `state`.
  static Status Create(RegionSet* regions, const ManifestState& state);
  // Returns Corruption if the MANIFEST is missing or damaged, NotSupported if its format is newer.
  static Status Open(RegionSet* regions, Manifest* manifest, ManifestState* state);

  // Decodes the MANIFEST in `object` of `bytes` bytes, for `regions` regions. Checks the same as Open, but changes nothing.
  static Status Read(const void* object, uint64_t bytes, uint32_t regions, ManifestState* state, uint64_t* generation);

  // Reads both objects, given in the order of kManifestPlaces, and returns the newest state. *which: the index of its object.
  static Status ReadNewest(const ManifestObject (&objects)[2], uint32_t regions, ManifestState* state, uint64_t* generation,
                           size_t* which);

  // The room a slot must have beside `state`: none; a table of copies per family; this and a flushed table per family.
  enum class Room : uint8_t { kNone, kCopies, kCopiesAndFlush };
  // Ensures that the slots have this room, by growth if needed. NoSpace: the region has no room; nothing has changed.
  Status Reserve(const ManifestState& state, Room room);
  // Returns true if a slot has room for `state` and `room`.
  bool Fits(const ManifestState& state, Room room = Room::kNone) const;
  // Durable when it returns OK. Grows if the state does not fit. NoSpace: growth failed; nothing has changed. A state that needs
  // no more bytes than the last committed one never needs growth.
  Status Commit(const ManifestState& state);
  // The last commit before a close. On a disk it saves the sync of P2, which the next open makes up for (RECOVERY).
  Status CommitLast(const ManifestState& state);
  // Whether the newest commit was of a clean close.
  bool is_clean() const { return is_clean_; }

  // A number that tells the newest record from all others of this database, and from those of its copies: records of the same
  // shape would have one checksum, so a random number belongs to it.
  uint64_t stamp() const;
  // Gives the newest record another stamp. Durable when it returns true; on a disk not before the next sync.
  bool DrawStamp();

  // Size of the object in bytes.
  uint64_t bytes() const;

 private:
  uint64_t BytesFor(const ManifestState& state, Room room) const;
  Status Grow(uint64_t least_slot_bytes);
  Status MoveTo(size_t place, uint64_t slot_bytes);
  void Use(size_t place, void* object, uint64_t slot_bytes, uint64_t generation);
  uint8_t* SlotAt(uint64_t generation) const;
  Status CommitSlot(const ManifestState& state);
  void StoreSelector(uint64_t generation);
  Status Select(uint64_t generation);
  Status ForgetTornCommit();

  RegionSet* regions_ = nullptr;
  uint8_t* object_ = nullptr;
  size_t place_ = 0;  // index in kManifestPlaces
  uint64_t slot_bytes_ = 0;
  uint64_t generation_ = 0;
  bool is_clean_ = false;
};

}  // namespace braiddb
