// Media: all that is on the media of a database that is not open, found without PMDK and without trust.
//
// GOAL   One picture for those who verify, print and salvage. Every pointer is checked before it is followed.
// STEPS  1 map the files of each region privately  2 root and metadata  3 segment directories  4 MANIFEST  5 the journal: do the
//        newest batch of an interrupted merge again, in the private mapping only  6 of each column family the heads of its last
//        level, the root of its NV-Tree, or the records of its runs.
// What is damaged is a finding and is then missing here: whoever goes on looks at what is there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/options.h"
#include "check/findings.h"
#include "log/log_entry.h"
#include "lsm/manifest.h"
#include "nvtree/nv_tree.h"
#include "pmem/layout.h"
#include "pmem/pm_ptr.h"
#include "pmem/pool_format.h"
#include "pmem/region_image.h"
#include "pmem/region_set.h"
#include "pmem/segment_allocator.h"
#include "skiplist/braided_skiplist.h"
#include "skiplist/sorted_runs.h"
#include "util/format.h"

namespace braiddb {

// A segment as its descriptor says, which is intact.
struct MediaSegment {
  uint32_t region = 0;
  SegmentState state = SegmentState::kUnused;
  uint64_t chunks = 0;
  uint64_t object = 0;  // offset of the pool object
  uint64_t data = 0;    // offset of the first entry
  uint64_t capacity = 0;
  uint64_t generation = 0;
  uint64_t entry_seed = 0;
  uint64_t sealed_bytes = 0;
  uint64_t sealed_last_sequence = 0;
  uint64_t run_bytes = 0;  // of a sorted run: bytes of entries

  bool used() const { return IsUsed(state); }
  // Entries that may count: of the log, or copies in a run that is there.
  bool holds_log() const {
    return run_bytes != 0 || state == SegmentState::kOpen || state == SegmentState::kSealed || state == SegmentState::kCopies;
  }
  // Bytes that may hold entries, or what an index keeps there.
  uint64_t limit() const {
    if (run_bytes != 0) return run_bytes;
    return state == SegmentState::kSealed ? sealed_bytes : capacity;
  }
  PmPtr start() const { return PmPtr(region, data); }
};

// A column family that the MANIFEST lists and nobody has dropped, or the default one.
struct MediaFamily {
  uint32_t id = 0;
  uint64_t number = 0;
  std::string name;
  std::string comparator;
  L1Kind l1 = L1Kind::kBraidedSkipList;
  // Of a braided skiplist: its heads, by region, each null if it is damaged. Of an NV-Tree: its root.
  std::vector<const SkipListHead*> heads;
  const NvTreeRoot* tree_root = nullptr;
  // Of sorted runs: their records.
  std::vector<RunRecord*> runs = {};
  // Whether heads and journal, or the root, are sound, so that its lists can be followed.
  bool level_is_there = false;

  // What follows a place to say whose it is: nothing for the default one.
  std::string suffix() const { return id == 0 ? "" : ", column family '" + Escaped(name) + "'"; }
};

// Whether a column family is there.
enum class Listed : uint8_t {
  kNo,       // entries of it are of one that was dropped, and marked dead
  kDropped,  // … and may not be marked yet
  kYes,
};

// Thread safety: immutable after Load.
class Media {
 public:
  // An error only if nothing can be seen: NotFound, Busy, IOError, NotSupported.
  static Status Load(const std::string& path, const std::vector<std::string>& region_paths, Findings* findings,
                     std::unique_ptr<Media>* result);

  uint32_t regions() const { return static_cast<uint32_t>(images_.size()); }
  // Null if the region is missing.
  const RegionImage* image(uint32_t region) const { return images_[region].get(); }
  // Null if it is damaged.
  const RegionRoot* root(uint32_t region) const { return roots_[region]; }
  // Of all regions, by place.
  const std::vector<MediaSegment>& segments() const { return segments_; }
  bool directories_are_sound() const { return directories_are_sound_; }
  bool manifest_is_sound() const { return manifest_is_sound_; }
  const ManifestState& manifest() const { return manifest_; }
  // By id, the default one first. Empty if the MANIFEST is damaged.
  const std::vector<MediaFamily>& families() const { return families_; }
  // Of the default family: a head, or the root of an NV-Tree; null if there is none.
  const SkipListHead* l1_head(uint32_t region) const { return families_.empty() ? nullptr : families_[0].heads[region]; }
  const NvTreeRoot* tree_root() const { return families_.empty() ? nullptr : families_[0].tree_root; }
  // Of a family that an entry names. While the MANIFEST is damaged: every one may be.
  Listed IsListed(uint32_t family) const { return listed_[family]; }
  // Whether what kCopies segments hold is in a table: else it is as if they were free.
  bool copies_count() const { return HasRelocation(manifest_); }
  // Whether it is where the log was before a copying flush, or a copy of a flush that did not come to its end.
  bool IsGarbage(const LogEntry& entry) const {
    const bool is_replayed = entry.sequence() >= manifest_.log_boundary;
    return manifest_.copying_flush && entry.is_copy() == is_replayed;
  }
  uint64_t manifest_generation() const { return manifest_generation_; }
  // The family of the merge or sweep that was running; null: there was none, or its family was dropped.
  const MediaFamily* merging_family() const { return merging_family_; }
  // Of that merge, into a braided skiplist: from this entry on all is merged. Null: nothing is.
  PmPtr progress() const { return progress_; }
  // Whether the last levels of all families are there, and MANIFEST and directories.
  bool lists_are_there() const;
  // The object in the slot; null if there is none or it is damaged.
  uint8_t* Metadata(uint32_t region, MetadataSlot slot, uint64_t* bytes) const;

  template <class T = uint8_t>
  T* Resolve(PmPtr p) const {
    return reinterpret_cast<T*>(images_[p.region()]->base() + p.offset());
  }
  bool Contains(PmPtr p, uint64_t bytes) const;
  // The log segment that has this place below its limit; its index, SIZE_MAX if there is none.
  size_t FindSegment(PmPtr p) const;
  // The entry at p if its sizes fit the segment, else null. *segment: index of that segment.
  LogEntry* EntryAt(PmPtr p, size_t* segment) const;
  std::string Place(PmPtr p) const;

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
  bool LoadHeads(MediaFamily* family, Findings* findings) const;
  bool LoadTreeRoot(MediaFamily* family, Findings* findings) const;
  bool LoadLevel(MediaFamily* family, bool journal_is_sound, Findings* findings);
  bool LoadRuns(MediaFamily* family, Findings* findings);
  bool TakeRunSegments(RunRecord* record);
  MediaSegment* SegmentAround(PmPtr p);
  const uint8_t* FindPlace(const MediaFamily& family, uint32_t region, uint64_t bytes) const;
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
