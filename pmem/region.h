// Region: one pool of persistent memory, open and mapped. The only header with PMDK types; only pmem/ includes it.
//
// GOAL   Objects are allocated into an ObjectId on media, failure-atomically: after a crash the object is there and the id
//        names it, or neither. The pool grows when it has no room, in steps that keep the number of parts small, up to max_bytes.
// READ ONLY  OpenReadOnly takes an image of the pool in its place: PMDK, which writes to each pool that it opens, is not used.
//        All that the layers above store stays in this process, and nothing can be allocated.
// CONCURRENCY  AllocateObject (also while it grows the region) and FreeObject hold the mutex; everything else takes no lock.
//        The base never moves while the region is open: PMDK reserves max_bytes of address space at open.
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
  uint64_t secret = 0;  // of a creation
  uint32_t index = 0;
  uint32_t count = 0;
  uint64_t max_bytes = 0;  // 0: the capacity of the file system, or what the process has address space for
  Persistence* persistence = nullptr;
  std::function<void(std::string_view)> info_log;  // may be empty
};

// Thread safety: all methods may be called concurrently after Create/Open returned.
class Region {
 public:
  // `files` is locked. Create REQUIRES that its directory holds no region; InitializeRoot comes next. Open REQUIRES
  // files->CheckParts() was OK.
  static Status Create(std::shared_ptr<RegionFiles> files, const RegionConfig& config, std::unique_ptr<Region>* result);
  static Status Open(std::shared_ptr<RegionFiles> files, const RegionConfig& config, std::unique_ptr<Region>* result);
  // `image`: of the directory of `files`, which need not be locked by it. Damage is Corruption, as in Open.
  static Status OpenReadOnly(std::unique_ptr<RegionImage> image, std::shared_ptr<RegionFiles> files, const RegionConfig& config,
                             std::unique_ptr<Region>* result);
  Status InitializeRoot();
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  uint32_t index() const { return config_.index; }
  uint64_t database_id() const { return config_.database_id; }
  Persistence* persistence() const { return config_.persistence; }
  RegionFiles* files() const { return files_.get(); }
  uint8_t* base() const { return image_ != nullptr ? image_->base() : reinterpret_cast<uint8_t*>(pool_); }
  // Null if it is open for reading only.
  PMEMobjpool* pool() const { return pool_; }
  RegionRoot* root() const { return root_; }
  uint64_t max_bytes() const { return max_bytes_; }
  // Bytes that are mapped and may be touched; only grows.
  uint64_t reserved_bytes() const { return reserved_bytes_.load(std::memory_order_acquire); }
  const std::atomic<uint64_t>* reserved_bytes_word() const { return &reserved_bytes_; }

  // Allocates at least `bytes` into *id, which lies in this region, durably. NoSpace changes nothing. `prepare`, if any, gets
  // the zeroed object and makes it durable before *id names it; false if it cannot. REQUIRES: *id is null.
  using Prepare = std::function<bool(uint8_t* object)>;
  Status AllocateObject(ObjectId* id, uint64_t bytes, PoolObject type, const Prepare& prepare = nullptr);
  // Gives the object back and makes *id null, in one failure-atomic step. Does nothing after Persistence has failed.
  void FreeObject(ObjectId* id);
  // Whether the id can name an object of `bytes` bytes, judged by the id alone: pool, place and alignment. Null is not valid.
  bool IsValidObject(const ObjectId& id, uint64_t bytes) const;
  // An allocation that a crash cut short, and that PMDK finishes where it opens the pool, may have stored half of an id. Open for
  // reading only: this is the other half.
  void CompleteId(ObjectId* id) const {
    if (__builtin_expect(redo_pending_, 0) && id->pool == 0 && id->offset != 0) id->pool = pool_id_;
  }
  // Allocates the zeroed metadata object of an empty slot.
  Status AllocateMetadata(uint32_t slot, uint64_t bytes);
  // Gives the metadata object back and empties the slot. REQUIRES: the slot has an object.
  Status FreeMetadata(uint32_t slot);

  // Of a region whose files are in memory: what it takes of memory from here on comes from that NUMA node; with `move` its
  // present memory moves there. A hint.
  void PutOnNode(int system_node, bool move);

  // By how much the region can grow, as far as is known.
  uint64_t Headroom();
  // What is missing for the region to have so many bytes, of which a part is the pool's own; NoSpace if it can never have them.
  Status MissingBytes(uint64_t bytes, uint64_t* missing) const;
  // Grows to that. NoSpace may have grown a part of the way.
  Status ReserveBytes(uint64_t bytes);

  // Sets *first to the limit of generations and raises it durably: [*first, *first + by) were never used before and are the
  // caller's. Corruption if the stored limit is damaged. One thread at a time.
  Status RaiseGenerationLimit(uint64_t by, uint64_t* first);

  void Log(std::string_view line) const {
    if (config_.info_log) config_.info_log(line);
  }

 private:
  Region(std::shared_ptr<RegionFiles> files, const RegionConfig& config);

  // The address space to reserve for a region of `total` bytes.
  uint64_t ChooseMaxBytes(uint64_t total) const;
  void CountReservation();
  Status CreatePool(const std::string& set_path);
  Status OpenPool(const std::string& set_path, bool is_finished);
  Status DefineObjectClass();
  // Makes sure that the pool has blocks for an allocation. NoSpace if the file system is full. REQUIRES: mutex_, or that nobody
  // else has the region yet.
  Status FillBefore(uint64_t bytes);
  // PMDK follows the chunk headers of its heap, and the logs in its lanes, without a look at where they lead.
  // *is_finished: PMDK has nothing to finish at its open.
  Status CheckHeap(bool* is_finished) const;
  Status OnMapped();
  RegionFiles::Fill PartFill() const;
  void RestoreFooters();
  Status FindRoot();
  Status CheckRoot() const;
  [[gnu::noinline]] Status FinishMetadata();  // its fence is one place, whoever calls
  Status Grow(uint64_t bytes);
  Status GrowthStep(uint64_t bytes, uint64_t* step) const;
  uint64_t UpToZoneEnd(uint64_t step) const;
  uint64_t ZonesOf(uint64_t bytes) const;
  Status Extend(uint64_t step);
  std::string Name() const;

  const std::shared_ptr<RegionFiles> files_;
  const RegionConfig config_;
  RegionDevices devices_;
  PMEMobjpool* pool_ = nullptr;
  PartsGuard parts_guard_;
  std::unique_ptr<RegionImage> image_;  // in place of a pool
  bool redo_pending_ = false;           // of the image
  RegionRoot* root_ = nullptr;
  uint64_t pool_id_ = 0;
  uint64_t heap_begin_ = 0;
  uint64_t max_bytes_ = 0;
  uint64_t counted_reservation_ = 0;  // address space that the process's sum has of this region
  bool has_zone_room_ = false;        // see pmdk_memory.h
  std::atomic<uint64_t> reserved_bytes_{0};

  std::mutex metadata_mutex_;  // one change of the metadata slots at a time; taken before mutex_
  std::mutex mutex_;           // guards what follows, and allocation
  int memory_node_ = kUnknownNumaNode;
  bool first_part_has_holes_ = false;  // where chunks may be allocated; see pool_maker.h
  unsigned object_class_ = 0;          // of small objects, as PMDK numbers it
  uint64_t born_object_bytes_ = 0;     // of small objects since the creation
  uint64_t born_chunks_ = 0;           // of other objects since the creation
  bool growth_broken_ = false;         // PMDK failed to map a part: its own list of parts cannot be trusted until the next open
};

class RegionSet::Impl {
 public:
  Region* region(uint32_t index) const { return regions[index].get(); }

  std::vector<std::unique_ptr<Region>> regions;
};

}  // namespace braiddb
