// Media: the structures of a database that is not open, read from its files without PMDK and without trust.
//
// GOAL   One view of the media for check, dump and repair. Every pointer is checked before it is followed.
// STEPS  1 map the files of each region privately  2 find root and metadata objects  3 read the segment directories  4 read the
//        MANIFEST  5 do the newest journal batch of an interrupted merge again, in the private mapping only  6 find, for each
//        column family, the structures of its last level (LevelMedia).
// DAMAGE A damaged structure is a finding, and is missing in the view. Its users continue with the other structures.
// CRASH  A state that a crash may leave is no finding: a pending redo log of PMDK, an allocation that was cut short, a merge in
//        progress.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/options.h"
#include "check/findings.h"
#include "check/level_media.h"
#include "index/level_kind.h"
#include "log/log_entry.h"
#include "lsm/manifest.h"
#include "pmem/layout.h"
#include "pmem/pm_ptr.h"
#include "pmem/pool_format.h"
#include "pmem/region_image.h"
#include "pmem/region_set.h"
#include "pmem/segment_allocator.h"
#include "util/format.h"

namespace braiddb {

// A segment with an intact descriptor.
struct MediaSegment {
  uint32_t region = 0;
  SegmentState state = SegmentState::kUnused;
  uint64_t chunks = 0;
  uint64_t object = 0;  // offset of the pool object, from the start of the pool
  uint64_t data = 0;    // offset of the first entry, from the start of the pool
  uint64_t capacity = 0;
  uint64_t generation = 0;
  uint64_t entry_seed = 0;
  uint64_t sealed_bytes = 0;
  uint64_t sealed_last_sequence = 0;
  uint64_t level_bytes = 0;  // if a last level took the segment (TakeSegment): its bytes of entries; else 0

  bool used() const { return IsUsed(state); }
  // Returns true if the segment may have entries that count: log entries, or copies of a last level that was found.
  bool holds_log() const {
    return level_bytes != 0 || state == SegmentState::kOpen || state == SegmentState::kSealed || state == SegmentState::kCopies;
  }
  // Returns the bytes that may have entries, or data of a last level.
  uint64_t limit() const {
    if (level_bytes != 0) return level_bytes;
    return state == SegmentState::kSealed ? sealed_bytes : capacity;
  }
  PmPtr start() const { return PmPtr(region, data); }
};

// A column family that the MANIFEST lists as not dropped, or the default family.
struct MediaFamily {
  uint32_t id = 0;
  uint64_t number = 0;
  std::string name;
  std::string comparator;
  L1Kind l1 = {};
  const LevelKind* kind = nullptr;              // of the last level; null if this version does not have it
  std::unique_ptr<LevelMedia> level = nullptr;  // null if `kind` is null
  // True if the level, and the journal if its merges use one, are sound, so that the last level can be followed.
  bool level_is_there = false;

  // Returns the name of the family for findings; "" for the default family.
  std::string suffix() const { return id == 0 ? "" : ", column family '" + Escaped(name) + "'"; }
};

// What the MANIFEST says about a family id.
enum class Listed : uint8_t {
  kNo,       // not listed: entries with this id belong to a family that was dropped, and are marked dead
  kDropped,  // listed as dropped: its entries may not be marked yet
  kYes,
};

// Thread safety: immutable after Load.
class Media {
 public:
  // Loads what can be read; adds a finding for each damage. Errors: NotFound, there is no database. Busy, a process has it
  // open. IOError, the files cannot be read. NotSupported, another format version.
  static Status Load(const std::string& path, const std::vector<std::string>& region_paths, Findings* findings,
                     std::unique_ptr<Media>* result);

  uint32_t regions() const { return static_cast<uint32_t>(images_.size()); }
  // Null if the region is missing.
  const RegionImage* image(uint32_t region) const { return images_[region].get(); }
  // Null if it is damaged.
  const RegionRoot* root(uint32_t region) const { return roots_[region]; }
  // The segments of all regions, sorted by address.
  const std::vector<MediaSegment>& segments() const { return segments_; }
  bool directories_are_sound() const { return directories_are_sound_; }
  bool manifest_is_sound() const { return manifest_is_sound_; }
  const ManifestState& manifest() const { return manifest_; }
  // Sorted by id, the default family first. Empty if the MANIFEST is damaged.
  const std::vector<MediaFamily>& families() const { return families_; }
  // Returns whether a family id is listed; kYes for all ids if the MANIFEST is damaged.
  Listed IsListed(uint32_t family) const { return listed_[family]; }
  // Returns true if a listed table has the copies in kCopies segments. Otherwise these copies do not count.
  bool copies_count() const { return HasRelocation(manifest_); }
  // Returns true if a copying flush has replaced the entry by a copy, or if the entry is a copy by an unfinished flush.
  bool IsGarbage(const LogEntry& entry) const {
    const bool is_replayed = entry.sequence() >= manifest_.log_boundary;
    return manifest_.copying_flush && entry.is_copy() == is_replayed;
  }
  uint64_t manifest_generation() const { return manifest_generation_; }
  // The family of the running merge or sweep; null if there is none, or if its family was dropped.
  const MediaFamily* merging_family() const { return merging_family_; }
  // For a merge that relinks entries: the entry from which on the tables have been merged; null if none was.
  PmPtr progress() const { return progress_; }
  // Returns true if MANIFEST, directories and the last levels of all families are sound.
  bool lists_are_there() const;
  // Returns the metadata object in the slot, and its size in *bytes; null if there is none, or if it is damaged.
  uint8_t* Metadata(uint32_t region, MetadataSlot slot, uint64_t* bytes) const;

  // Returns the address of p. REQUIRES: Contains(p, bytes that are read).
  template <class T = uint8_t>
  T* Resolve(PmPtr p) const {
    return reinterpret_cast<T*>(images_[p.region()]->base() + p.offset());
  }
  // Returns true if p is aligned, and [p, p + bytes) lies in the image of its region.
  bool Contains(PmPtr p, uint64_t bytes) const;
  // Returns the index of the segment that holds_log() and has p below its limit; SIZE_MAX if there is none.
  size_t FindSegment(PmPtr p) const;
  // Returns the entry at p if its sizes fit its segment; else null. *segment: the index of the segment. The checksum is not
  // verified.
  LogEntry* EntryAt(PmPtr p, size_t* segment) const;
  // Returns file and byte of p, for findings.
  std::string Place(PmPtr p) const;

  // ---- For LevelMedia

  // Returns the family's place (LevelPlace) in its metadata object; null if the object is missing or too small.
  const uint8_t* FindPlace(const MediaFamily& family, uint32_t region, uint64_t bytes) const;
  // Returns the kIndex segment that contains p; null if there is none.
  const MediaSegment* FindIndexSegment(PmPtr p) const;
  // The first `bytes` bytes of the kIndex segment that begins at `start` have entries that count. Returns false if there is no
  // such segment, if it has another generation or less room, or if it was taken before. Only LevelMedia::Load calls this.
  bool TakeSegment(PmPtr start, uint64_t generation, uint64_t bytes);

 private:
  Media() = default;

  Status MapRegions(const std::string& path, const std::vector<std::string>& region_paths, Findings* findings);
  Status LoadRoot(uint32_t region, Findings* findings);
  void CheckMetadata(uint32_t region, Findings* findings) const;
  void LoadDirectory(uint32_t region, Findings* findings);
  void LoadDescriptor(uint32_t region, const SegmentDescriptor& descriptor, Findings* findings);
  void CheckOverlap(Findings* findings);
  void CheckHeap(uint32_t region, Findings* findings) const;
  Status LoadManifest(Findings* findings);
  void ListFamilies();
  void LoadLevels(Findings* findings);
  bool LoadLevel(MediaFamily* family, bool journal_is_sound, Findings* findings);
  void AddFamily(MediaFamily family);
  bool RedoJournal(Findings* findings);
  bool IsObject(uint32_t region, const ObjectId& id, uint64_t bytes) const;
  ObjectId Complete(uint32_t region, const ObjectId& id) const;

  std::vector<std::unique_ptr<RegionImage>> images_;
  std::vector<const RegionRoot*> roots_;
  std::vector<MediaSegment> segments_;
  bool directories_are_sound_ = true;
  bool manifest_is_sound_ = false;
  ManifestState manifest_;
  uint64_t manifest_generation_ = 0;
  std::vector<MediaFamily> families_;
  std::vector<Listed> listed_ = std::vector<Listed>(kMaxFamilies, Listed::kYes);  // by id
  const MediaFamily* merging_family_ = nullptr;
  PmPtr progress_;
};

}  // namespace braiddb
