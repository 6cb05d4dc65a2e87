// Region: one libpmemobj pool, open and mapped. This is the only header with PMDK types; only pmem/ includes it.
//
// GUARANTEE  An object is allocated into an ObjectId on media, failure-atomically: after a crash the id names the complete
//        object, or the id is null and the space is free. The pool grows up to max_bytes when it has no room.
// COMMIT POINT  Of an allocation and of a release: PMDK's redo log, which stores the id together with the state of the heap.
// RECOVERY  PMDK's open finishes an allocation or a release that was cut short. Before that, an open checks what PMDK follows
//        blindly (CheckHeap); after that, it repairs footers (RestoreFooters, CC-37) and metadata slots (FinishMetadata,
//        CC-32).
// GROWTH  An allocation that finds no room adds a part to the pool: UsualGrowth bytes, more if the object needs more, less if
//        the file system is nearly full, and at most up to the end of a zone. region_files.h has the steps and their crashes.
//        PMDK maps the part behind the others, in address space that the open has reserved, so no address changes.
// CREATION  1. The files of the first part (pool_maker.h), or pmemobj_create.
//        2. The pool is opened and mapped.
//        3. PARTS lists the part.
//        4. InitializeRoot stores the root.
//        5. RegionSet removes the mark CREATING, which commits. [CC-30]
// OPEN   1. Reserve address space.
//        2. Check the record of memory modules (device_record.h).
//        3. Repair the pool header (pool_repair.h).
//        4. Check the heap and the lanes, which PMDK would follow blindly.
//        5. PMDK opens the pool and finishes what a crash has cut short.
//        6. Check the sizes of the mapped files.
//        7. Footers, root, metadata slots.
// READ ONLY  OpenReadOnly uses an image of the pool, since PMDK writes to each pool that it opens. Stores of the layers above
//        stay in this process, and allocations fail.
// LIVE   OpenLive maps the files as another process writes them (live_parts.h). The mapping refuses stores, so every method that
//        would store returns ReadOnly or does nothing.
// BLOCKS  Pages inside free segments may have no blocks in the file system; all other pages have (part_blocks.h). [CC-66]
// CONCURRENCY  AllocateObject (also while the region grows), FreeObject, ReserveBytes and PutOnNode hold mutex_.
//        AllocateMetadata and FreeMetadata hold metadata_mutex_ first. Other methods take no lock. The base never moves while
//        the region is open: PMDK reserves max_bytes of address space at open.
// LIFETIME  Pointers into the region are valid until its destructor, which closes the pool and then releases the locks.
#pragma once

#include <libpmemobj.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/status.h"
#include "pmem/device_record.h"
#include "pmem/layout.h"
#include "pmem/live_parts.h"
#include "pmem/part_blocks.h"
#include "pmem/parts_guard.h"
#include "pmem/persistence.h"
#include "pmem/region_files.h"
#include "pmem/region_image.h"
#include "pmem/region_set.h"
#include "util/numa_topology.h"

namespace braiddb {

static_assert(sizeof(ObjectId) == sizeof(PMEMoid) && offsetof(PMEMoid, off) == offsetof(ObjectId, offset));

struct RegionConfig {
  uint64_t database_id = 0;
  uint64_t secret = 0;     // for Create: RegionRoot::secret
  uint32_t index = 0;      // number of this region
  uint32_t count = 0;      // number of regions of the database
  uint64_t max_bytes = 0;  // 0: the capacity of the file system, or as much address space as the process can spare
  Persistence* persistence = nullptr;
  std::function<void(std::string_view)> info_log;  // may be empty
  std::function<void()> on_growth;                 // RegionSetOptions::on_growth
};

// Thread safety: all methods may be called concurrently after Create/Open returned.
class Region {
 public:
  // Create makes a pool in a directory without a region; the caller calls InitializeRoot next. Open opens an existing region.
  // Busy: another process has the pool. Corruption: a file or the pool is damaged, or flushed stores may be lost
  // (device_record.h). NoSpace, IOError, NotSupported: as the message says. REQUIRES: `files` is locked; for Open,
  // files->CheckParts() has returned OK.
  static Status Create(std::shared_ptr<RegionFiles> files, const RegionConfig& config, std::unique_ptr<Region>* result);
  static Status Open(std::shared_ptr<RegionFiles> files, const RegionConfig& config, std::unique_ptr<Region>* result);
  // Opens a region for reading only. `image`: of the directory of `files`, which need not be locked. Corruption: as of Open.
  static Status OpenReadOnly(std::unique_ptr<RegionImage> image, std::shared_ptr<RegionFiles> files, const RegionConfig& config,
                             std::unique_ptr<Region>* result);
  // Opens a region that another process may have open to write. `parts` has read its list, and maps nothing yet. `files` is of
  // the same directory, and need not be locked. Corruption: as of Open, and also damage that a writer does not explain. IOError,
  // NotSupported: as of LiveParts.
  static Status OpenLive(std::unique_ptr<LiveParts> parts, std::shared_ptr<RegionFiles> files, const RegionConfig& config,
                         std::unique_ptr<Region>* result);
  // Maps the parts that the region has grown by, and then raises reserved_bytes(). Errors as of LiveParts::MapNewParts. One
  // thread at a time. REQUIRES: is_live().
  Status MapNewParts();
  // Allocates and fills the root object, durably. REQUIRES: called once, after Create.
  Status InitializeRoot();
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  uint32_t index() const { return config_.index; }
  uint64_t database_id() const { return config_.database_id; }
  Persistence* persistence() const { return config_.persistence; }
  RegionFiles* files() const { return files_.get(); }
  uint8_t* base() const {
    if (live_ != nullptr) return live_->base();
    return image_ != nullptr ? image_->base() : reinterpret_cast<uint8_t*>(pool_);
  }
  bool is_live() const { return live_ != nullptr; }
  const LiveParts* live_parts() const { return live_.get(); }
  // Null if the region is open for reading only, or live.
  PMEMobjpool* pool() const { return pool_; }
  RegionRoot* root() const { return root_; }
  uint64_t max_bytes() const { return max_bytes_; }
  // Bytes that are mapped and may be accessed; only grows. acquire: pairs with the release in Extend; the part is mapped.
  uint64_t reserved_bytes() const { return reserved_bytes_.load(std::memory_order_acquire); }
  const std::atomic<uint64_t>* reserved_bytes_word() const { return &reserved_bytes_; }

  // Allocates an object of at least `bytes` bytes and stores its id in *id, durably and atomically. `prepare`, if any, gets the
  // zeroed object before *id names it, makes its stores durable, and returns false if that fails. NoSpace: the region cannot
  // grow, or the file system is full; nothing has changed, except that the region may have grown. ReadOnly: the region is open
  // for reading only. REQUIRES: *id lies in this region and is null.
  using Prepare = std::function<bool(uint8_t* object)>;
  Status AllocateObject(ObjectId* id, uint64_t bytes, PoolObject type, const Prepare& prepare = nullptr);
  // Frees the object and makes *id null, durably and atomically. Does nothing after Persistence has failed, since media must
  // stay as they are. In a region that is open for reading only, makes *id null in this process.
  // Does nothing in a live region.
  void FreeObject(ObjectId* id);
  // Returns true if the id can name an object of `bytes` bytes: its pool, bounds and alignment are right. Null is not valid.
  // The heap is not asked.
  bool IsValidObject(const ObjectId& id, uint64_t bytes) const;
  // Completes an id that a crash has left without its first word: PMDK stores the two words of an id one after the other, and
  // finishes that at its next open. In a region that is open for reading only, this method does so, in this process.
  void CompleteId(ObjectId* id) const {
    if (__builtin_expect(redo_pending_, 0) && id->pool == 0 && id->offset != 0) id->pool = pool_id_;
  }
  // Allocates the zeroed metadata object of a slot, durably and atomically. Errors as of AllocateObject. REQUIRES: the slot is
  // empty.
  Status AllocateMetadata(uint32_t slot, uint64_t bytes);
  // Frees the metadata object and empties the slot, durably and atomically. REQUIRES: the slot has an object.
  Status FreeMetadata(uint32_t slot);

  // Returns the metadata object of a slot of a live region, and its size in *bytes if that is not null. Null if there is none, or
  // the object is being allocated or freed, or lies in a part that is not mapped yet. REQUIRES: is_live().
  void* FindLiveMetadata(uint32_t slot, uint64_t* bytes) const;

  // Lets a region whose files are in memory take its memory from that NUMA node (the system's number). `move`: moves its
  // present memory there. A hint, whose failure is ignored.
  void PutOnNode(int system_node, bool move);

  // Returns the bytes by which the region can grow, as far as is known: max_bytes and the free space of the file system bound
  // it.
  uint64_t Headroom();
  // Sets *missing to the bytes by which a region has to grow to have `bytes` bytes, rounded to parts. NoSpace: `bytes` is more
  // than max_bytes.
  Status MissingBytes(uint64_t bytes, uint64_t* missing) const;
  // Grows the region until it has `bytes` bytes. After NoSpace the region may have grown by a part of them.
  Status ReserveBytes(uint64_t bytes);

  // Returns true if blocks of free segments may be given back: the region has files, has grown beyond its first small part, is
  // open to write, no persist has failed, and the file system has not refused.
  bool MayGiveBack() const;
  // Gives the blocks of pages back to the file system. A refusal is written to the log once, and ends MayGiveBack; some pages may
  // have lost their blocks. REQUIRES: MayGiveBack(), and the pages lie inside a segment that is kFree on media, which no other
  // thread can take.
  Status GiveBack(PoolRange pages);
  // Takes blocks for pages that may have none. NoSpace: the file system is full. IOError: the system refused. REQUIRES: the
  // pages lie inside a segment that is kFree on media, which no other thread can take.
  Status TakeBlocks(PoolRange pages);
  // Returns the pages of a free segment after an open: kAll, kNone or kUnknown.
  PartBlocks::Found FindBlocks(PoolRange pages) const {
    return files_->has_free_holes() ? blocks_.Find(pages) : PartBlocks::Found::kAll;
  }

  // Reserves `by` generations: sets *first to the limit and raises the limit durably. No use of a segment has had one of
  // [*first, *first + by). With 0 only reads the limit. Corruption: the stored limit is damaged. One thread at a time.
  Status RaiseGenerationLimit(uint64_t by, uint64_t* first);

  void Log(std::string_view line) const {
    if (config_.info_log) config_.info_log(line);
  }

 private:
  Region(std::shared_ptr<RegionFiles> files, const RegionConfig& config);

  // Chooses the address space to reserve for a region that has `total` bytes now.
  uint64_t ChooseMaxBytes(uint64_t total) const;
  // Chooses the address space behind a live region that reads as zeros.
  static uint64_t ChooseGuardBytes();
  // Adds max_bytes_ to the process's sum, which ChooseMaxBytes of later regions considers.
  void CountReservation();
  // Makes the pool by MakeFirstPart and opens it. If libpmemobj cannot be limited to few lanes (pmdk_lanes.h), or the region is
  // on a device, pmemobj_create makes the pool.
  Status CreatePool(const std::string& set_path);
  // Opens the pool with PMDK. `is_finished`: PMDK has nothing to finish, so the syncs of its open may be deferred.
  Status OpenPool(const std::string& set_path, bool is_finished);
  // Tells PMDK the class of small objects, which lives in DRAM, at each open.
  Status DefineObjectClass();
  // Fills the holes of the first part if an allocation of `bytes` bytes may need them (CC-61). NoSpace: the file system is
  // full. REQUIRES: the caller holds mutex_, or no other thread has the region yet.
  Status FillBefore(uint64_t bytes);
  // Checks the chunk headers of the heap and the logs in the lanes, which PMDK follows blindly. Corruption: one is damaged.
  // *is_finished: no redo log is pending, so PMDK has nothing to finish at its open.
  Status CheckHeap(bool* is_finished) const;
  // Sets the state that follows from the mapped pool: guards, reserved_bytes_, heap_begin_, holes of the first part.
  Status OnMapped();
  // Returns the function that fills a new part with huge pages; null unless the files are in memory.
  RegionFiles::Fill PartFill() const;
  // Writes the footers of free runs of chunks. [CC-37]
  void RestoreFooters();
  // Sets root_ to the root object. Corruption: the pool has no valid one.
  Status FindRoot();
  // Checks the root and its metadata slots against the configuration. Changes nothing.
  Status CheckRoot() const;
  // The part of CheckRoot about bytes that never change.
  Status CheckIdentity() const;
  // The state of a metadata slot of a live region. kEmpty: also an object that is being allocated or freed.
  enum class LiveSlot : uint8_t { kEmpty, kObject, kNotMapped, kDamaged };
  // Reads a slot that the writer may change meanwhile. *id and *bytes are set for kObject.
  LiveSlot ReadLiveSlot(uint32_t slot, ObjectId* id, uint64_t* bytes) const;
  // Corruption: a slot is damaged. Maps new parts if a slot needs one.
  Status CheckLiveSlots();
  // Stores the check of each metadata object that has none (region_root.cc). Not inlined: crash tests count its fence as one
  // place.
  [[gnu::noinline]] Status FinishMetadata();
  // Grows the region for an allocation of `bytes` bytes. NoSpace: it cannot. REQUIRES: mutex_.
  Status Grow(uint64_t bytes);
  // Chooses the bytes to grow by: UsualGrowth, or less if the file system is nearly full. REQUIRES: mutex_.
  Status GrowthStep(uint64_t bytes, uint64_t* step) const;
  // Shortens a step so that the new part ends with the present zone, if it would cross the zone's end.
  uint64_t UpToZoneEnd(uint64_t step) const;
  // Returns the number of zones that libpmemobj counts in a pool of `bytes` bytes.
  uint64_t ZonesOf(uint64_t bytes) const;
  // Adds a part of `step` bytes (region_files.h, STEPS 1 to 5). REQUIRES: mutex_.
  Status Extend(uint64_t step);
  // "region <index> (<directory>)", for messages.
  std::string Name() const;

  const std::shared_ptr<RegionFiles> files_;
  const RegionConfig config_;
  RegionDevices devices_;
  PMEMobjpool* pool_ = nullptr;
  PartsGuard parts_guard_;
  PartBlocks blocks_;
  std::atomic<bool> gives_back_{true};  // false: the file system has refused to take blocks back
  std::unique_ptr<RegionImage> image_;  // in place of pool_ if the region is open for reading only
  bool redo_pending_ = false;           // image_ has a pending redo log
  std::unique_ptr<LiveParts> live_;     // in place of pool_ if another process may write
  RegionRoot* root_ = nullptr;
  uint64_t pool_id_ = 0;
  uint64_t heap_begin_ = 0;
  uint64_t max_bytes_ = 0;
  uint64_t counted_reservation_ = 0;  // this region's share of the process's sum of address space
  bool has_zone_room_ = false;        // the pool may grow into further zones (pmdk_memory.h, ROOM)
  std::atomic<uint64_t> reserved_bytes_{0};

  std::mutex metadata_mutex_;  // one change of the metadata slots at a time; taken before mutex_
  std::mutex mutex_;           // guards the fields below, and PMDK's allocator
  int memory_node_ = kUnknownNumaNode;
  bool first_part_has_holes_ = false;  // chunks of the first part may lie in holes (pool_maker.h)
  unsigned object_class_ = 0;          // PMDK's number of the class of small objects
  uint64_t born_object_bytes_ = 0;     // bytes of small objects since the creation
  uint64_t born_chunks_ = 0;           // chunks of other objects since the creation
  bool growth_broken_ = false;         // PMDK failed to map a part; its list of parts is wrong until the next open
  Status growth_error_;                // why
};

// The regions of a RegionSet, for the segment allocator.
class RegionSet::Impl {
 public:
  Region* region(uint32_t index) const { return regions[index].get(); }

  std::vector<std::unique_ptr<Region>> regions;
};

}  // namespace braiddb
