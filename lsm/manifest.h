// Manifest: the root of what is durable above the log. It names the tables of L0, the log boundary and the running merge.
//
// LAYOUT  One metadata object in region 0 (MetadataSlot::kManifest or kManifest2): a header line, then two slots of equal size.
//           header    0 magic u64, 8 selector u64 (generation of the valid slot), 16 slot_bytes u64
//           slot      ManifestRecord, then table_count × (TableRecord, heads[regions][kMaxHeight]), then family_count ×
//                     (FamilyRecord, name, zeros to a multiple of 8)
//         Generation g lives in slot g mod 2. Format 2 had no families: a shorter ManifestRecord and TableRecord. It is read, and
//         the next commit is of format 3, in a slot of the size that it has. Format 4 is 3 with a flag that has to be understood:
//         lists are oblivious of regions, or flushes copy entries.
// COMMIT POINT   The other slot is whole: its lines are flushed and one fence has passed.
// PERSIST ORDER  P0 after a crash that tore a commit: no checksum in the other slot  P1 the other slot, whole  P2 the selector
// RECOVERY       Valid if and only if the slot that the selector names has that generation and its checksum matches. Anything
//                else is corruption: a crash cannot cause it, since the slot was durable before the selector named it. If the
//                other slot is valid and one generation newer, the crash came before P2: it counts, and open makes up for P2
//                before anything else. The slot that counts is made durable, which it need not be when a process was killed
//                [CC-46]. What was torn is made invalid for good: the next commit has its number. [CC-2]
// GROWTH         A MANIFEST whose slots are too small moves to a larger object in the other one of the two metadata slots. The
//                new object says the same as the old one, one generation later.
//                G1 the new object, zeroed, is in its metadata slot  G2 its slot and its selector are durable  G3 its magic, one
//                store, is durable: it counts  G4 the old object is freed. The next commit goes to the new object.
//                CRASH before G3: an object without a magic does not count. Between G3 and G4: two objects, which say the same;
//                the one of the newer generation counts. Open frees the other one in both cases. No commit comes between G1 and
//                G4, so the object that is freed never knows more than the one that stays. [CC-2]
// ROOM           A checkpoint leaves room in the slot for a table of copies of each family (a relocation). The creation of a
//                family makes room for one flushed table of each family as well. So relocations, deletions and the merges that
//                make room never need growth, which needs space.
// CONCURRENCY    One committer at a time (the caller's lock); no readers after open. Another process may read the files of a live
//                database meanwhile (db/read_manifest.h): checksums tell it what to read again.
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
// Of a database with a feature that older versions would misread: they have to refuse it.
inline constexpr uint32_t kManifestFormatWithFeatures = 4;
// A checkpoint lists no more tables than kMaxManifestTables and kMaxTablesPerFamily of each family; each commit writes all of
// them. Flushed tables beyond that wait for a merge.
inline constexpr uint32_t kMaxManifestTables = 512;
inline constexpr uint32_t kMaxTablesPerFamily = 4;
inline constexpr uint32_t kMaxFamilyName = 255;

// What the MANIFEST says, in DRAM.
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
    bool dropped = false;     // nobody can reach it any more; what it has is being taken away
    uint64_t number = 0;      // next_id when it was created: tells it from those that had the id before
    uint64_t l1_entries = 0;  // estimate
  };
  // Of the default family.
  std::string comparator;
  uint8_t l1_kind = 0;
  uint64_t log_boundary = 1;    // writes with a smaller sequence number are in a listed table or in the last level
  uint64_t last_sequence = 0;   // at least the largest sequence number before a clean close; a hint otherwise
  uint64_t next_id = 1;         // of tables, merges and families
  uint64_t l1_entries = 0;      // of the default family; estimate
  uint64_t merge_id = 0;        // 0: no merge is running
  uint32_t merging_tables = 0;  // this many of the oldest listed tables of merging_family are being merged
  uint32_t merging_family = 0;
  bool clean = false;            // closed cleanly: nothing to replay
  bool may_lose_writes = false;  // open segments may have been written in PersistMode::kPage, where not every write is synced
  ListKind list_kind = ListKind::kBraided;
  bool copying_flush = false;    // entries below the log boundary that are no copies are garbage
  bool merge_filters = false;    // the running merge may drop newest versions that are puts, as a compaction filter says
  std::vector<Table> tables;     // oldest first
  std::vector<Family> families;  // by id

  // Null if there is none with this id, or it is the default one.
  const Family* FindFamily(uint32_t id) const {
    for (const Family& family : families) {
      if (family.id == id) return &family;
    }
    return nullptr;
  }
  Family* FindFamily(uint32_t id) { return const_cast<Family*>(std::as_const(*this).FindFamily(id)); }
};

// The id of tables of copies, at most one for each family: older than all others, and merged like them. See relocation.h.
inline constexpr uint64_t kRelocationId = 0;
inline bool HasRelocation(const ManifestState& state) {
  return !state.tables.empty() && state.tables.front().id == kRelocationId;
}

// A metadata object in memory that may hold a MANIFEST; null: there is none.
struct ManifestObject {
  const void* data = nullptr;
  uint64_t bytes = 0;
};
inline constexpr MetadataSlot kManifestPlaces[] = {MetadataSlot::kManifest, MetadataSlot::kManifest2};

class Manifest {
 public:
  // Allocates the object and commits `state`.
  static Status Create(RegionSet* regions, const ManifestState& state);
  // Corruption if there is none or it is damaged; NotSupported for a newer format.
  static Status Open(RegionSet* regions, Manifest* manifest, ManifestState* state);

  // What a MANIFEST says that lies in `object`, `bytes` long, for so many regions; as Open, without a change of anything.
  static Status Read(const void* object, uint64_t bytes, uint32_t regions, ManifestState* state, uint64_t* generation);

  // The same of the two objects of a database, in the order of kManifestPlaces. *which: the index of the one that counts.
  static Status ReadNewest(const ManifestObject (&objects)[2], uint32_t regions, ManifestState* state, uint64_t* generation,
                           size_t* which);

  // What a slot is to have room for beside `state`: a table of copies of each family, and then a flushed table of each.
  enum class Room : uint8_t { kNone, kCopies, kCopiesAndFlush };
  // Returns OK when a slot has that room. Grows the MANIFEST for it. NoSpace: the region has no room, and nothing has changed.
  Status Reserve(const ManifestState& state, Room room);
  // Whether a slot has room for it.
  bool Fits(const ManifestState& state, Room room = Room::kNone) const;
  // Durable when it returns OK. Grows if it must; NoSpace if it cannot, which changes nothing. A state that needs no more bytes
  // than that of the commit before never needs growth.
  Status Commit(const ManifestState& state);
  // The last commit before a close. On a disk it saves the sync of P2, which the next open makes up for (RECOVERY).
  Status CommitLast(const ManifestState& state);
  // Whether the newest commit was of a clean close.
  bool is_clean() const { return is_clean_; }

  // Bytes of the object.
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
  size_t place_ = 0;  // of kManifestPlaces
  uint64_t slot_bytes_ = 0;
  uint64_t generation_ = 0;
  bool is_clean_ = false;
};

}  // namespace braiddb
