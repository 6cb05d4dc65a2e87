// RegionSet: the regions of one database, open and mapped. It resolves persistent pointers, and creates, opens and removes the
// files of all regions together.
//
// STRUCTURE    A region is one libpmemobj pool that grows on demand: a poolset whose only part is a directory. PMDK allocates
//              segments and a few metadata objects, each failure-atomically (pmemobj_xalloc into a persistent PMEMoid). Entries
// take no PMDK operation. COMMIT POINT Of a creation: the removal of the mark CREATING of region 0. Of a removal: the first
// removed file; a removal that
//              was cut short can only be repeated. [CC-30] [CC-60]
// RECOVERY     Exists returns false while region 0 has its mark, and Create starts over. Open removes the marks of other
//              regions, and finishes the growth and the allocations that a crash has cut short (region_files.h, region.h).
// CONCURRENCY  Each region's directory is locked by flock(2) from Create or Open to the destructor.
// LIFETIME     Addresses of a region are valid until the destructor. Close all readers first.
//
// FILES of this folder, from the bottom up:
//
//   posix.h, device.h, dax_device.h          small files and directories; the device of a path; devices without a file system
//   persistence.h, page_sync.h               flush and fence; msync in their place
//   append_probe.h, write_counter.h          how to append on this CPU; counts of what is written back
//   persist_mode.h                           which way of persisting a file system needs
//   pm_ptr.h, layout.h, layout_check.h       the pointer, the structures on media, and their hashes
//   database_file.h, part_list.h             text files: the state and the identity of a database; the parts of a region
//   device_record.h                          text file: the memory modules of a region and their unsafe shutdowns
//   pool_format.h, pool_maker.h              PMDK's structures in a pool; a small pool made without PMDK
//   pool_repair.h                            what a pool must not have when PMDK opens it
//   pmdk_imports.h, pmdk_lanes.h,            functions of this library that libpmemobj calls in place of the system's: lanes,
//   DRAM,
//   pmdk_memory.h, pmdk_sync.h               syncs
//   part_blocks.h, free_ranges.h             blocks of the parts that the file system takes back; the pages that may lack blocks
//   region_files.h, region_image.h           the directory of a region: checks and growth; its files, mapped privately
//   live_parts.h                             its files, mapped as another process writes them
//   region.h, region_nodes.h, region_set.h   one pool; regions and NUMA nodes; all pools of a database
//   segment_directory.h, segment_map.h,      descriptors on media; from an address to its segment; allocation and release of
//   log
//   segment_allocator.h                      space
//   pool_files.h, metadata_reader.h          the same structures, read from the files of a database that another process has
//   open
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/options.h"
#include "braiddb/status.h"
#include "pmem/persistence.h"
#include "pmem/pm_ptr.h"
#include "pmem/pool_format.h"
#include "pmem/region_nodes.h"

namespace braiddb {

inline constexpr uint32_t kMaxRegions = RegionNodes::kMaxRegions;
inline constexpr uint64_t kMinRegionSize = 32ull << 20;

// Metadata objects that other folders keep in a region, by slot in the region's root.
enum class MetadataSlot : uint32_t {
  kManifest = 0,      // region 0 only
  kL1 = 1,            // every region: the last level's object there (skiplist: a head) of the default family
  kMergeJournal = 2,  // region 0 only
  kFamilies = 3,      // this slot and the next seven: as kL1, for the other column families
  kManifest2 = 11,    // region 0 only: a MANIFEST that grows moves from kManifest here, and back
  kCount = 16,
};

// The run ids of the regions of a database. At each open for writing, libpmemobj stores another one into the pool before it
// recovers the pool.
struct WriterRuns {
  uint64_t ids[kMaxRegions] = {};
};

class RegionSet;
struct RegionSetOptions;

// Returns the directories of a database's regions: those that the options name; otherwise those that the file in database_path
// names (database_file.h); otherwise `count` directories inside database_path, which need not exist. A region on a device has
// the directory with the link to the device.
std::vector<std::string> RegionDirectories(const RegionSetOptions& options, uint32_t count);

struct RegionSetOptions {
  std::string database_path;              // has region-0, region-1, … unless region_paths names other directories
  std::vector<std::string> region_paths;  // empty, or a directory or device (dax_device.h) for each region
  // The identity of the database; 0: Create draws one, Open and Destroy use that of the first region.
  uint64_t database_id = 0;
  uint32_t regions = 0;           // 0: a creation makes one per NUMA node, an open takes the stored number
  std::vector<int> region_nodes;  // empty, or one NUMA node per region; -1: the node of the region's device
  uint64_t max_region_size = 0;   // bytes; 0: capacity of the file system
  PersistMode persist_mode = PersistMode::kAuto;
  EmulationOptions emulation;
  bool count_writes = false;                       // Persistence::CountWrites; not where the regions are read only
  std::function<void(std::string_view)> info_log;  // may be empty
  // May be empty. Called when a region has a new part, before anything is allocated in the part.
  std::function<void()> on_growth;
  std::string system_root;  // prefix of /proc and /sys for devices and NUMA nodes, for tests
  // May be empty. Called when all pools are mapped, and before the first store into the pools of a new database.
  std::function<void(RegionSet*)> on_mapped;
};

// Thread safety: all methods may be called concurrently after Create/Open returned.
class RegionSet {
 public:
  // Create makes all regions, or none: when it fails, it removes its files. It refuses a directory with files of another
  // database, and accepts files of an unfinished creation of database_path, which it removes. Open opens all regions. Both
  // return, with a message that says what to do:
  //   NotFound          no region files there
  //   Corruption        foreign, truncated, empty or damaged file; a region missing; regions of two databases
  //                     mixed, or in the wrong order
  //   NotSupported      written by another format version
  //   IOError           no permission, or the system refused
  //   InvalidArgument   options that contradict what is stored (number of regions); Create: the place is taken
  //   Busy              open in this or another process
  // Open checks every file (type, recorded size, pool signature) before libpmemobj sees the file.
  static Status Create(const RegionSetOptions& options, std::unique_ptr<RegionSet>* result);
  static Status Open(const RegionSetOptions& options, std::unique_ptr<RegionSet>* result);
  // Opens the regions for reading only. Until the destructor no process can open them to write; others may open them for
  // reading only. The files are mapped privately: stores stay in this process and take DRAM. Files and directories do not
  // change, so read permission is enough. Allocations fail. Errors as of Open.
  static Status OpenReadOnly(const RegionSetOptions& options, std::unique_ptr<RegionSet>* result);
  // Opens the regions of a database that another process may have open to write, or open later. Takes no lock and changes no
  // file, so read permission is enough. The mappings are shared and read only: a load sees each store of the writer, and a store
  // ends this process. So all methods that store return ReadOnly. A load behind the mapped parts reads zeros (live_parts.h has
  // the limits). For each region, address space for max_region_size is reserved, or for the capacity of its file system, as far
  // as the process has it. Errors as of Open, except Busy; NotSupported also if a device refuses such a mapping. What PMDK's
  // open or recovery would finish stays unfinished.
  static Status OpenLive(const RegionSetOptions& options, std::unique_ptr<RegionSet>* result);
  bool is_live() const { return is_live_; }
  // Of a live set: maps the parts that the regions have grown by; Holds and Contains then accept pointers into them. Costs a few
  // loads if there are none. Readers may run meanwhile; one thread at a time calls this method. Corruption: a new part is missing
  // or has a wrong size. NoSpace: a region has outgrown its address space. NotFound: as of CheckInPlace. After an error the other
  // new parts are mapped, and a later call tries again. Other sets: OK.
  Status MapNewParts();
  // Of a live set: NotFound if the files of a region were removed, moved or replaced since they were mapped, for example by a
  // restored backup. The old files stay mapped then. One system call for each region. Other sets: OK.
  Status CheckInPlace() const;
  // Returns the run ids at this moment.
  WriterRuns ReadWriterRuns() const;
  // Returns true if an open for writing has begun since `runs` were read. The run id changes before the open stores to the heap
  // or to a structure of BraidDB, and region 0 is opened first. One load for each region. All loads of this thread before the
  // call are ordered before the check. So a reader that gets false has read no store of an open that began after `runs`.
  bool WriterChanged(const WriterRuns& runs) const {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // for the compiler; x86 keeps the order of loads
    for (uint32_t i = 0; i < count_; ++i) {
      if (LoadAcquire(RunId(i)) != runs.ids[i]) return true;
    }
    return false;
  }
  // Returns true if one of the directories has files of a region, complete or not. Files that a crash in Create has left do not
  // count, since Create replaces them. A directory that cannot be read counts, so that Open reports the error.
  static bool Exists(const RegionSetOptions& options);
  // Returns the number of regions that Create makes.
  static uint32_t CountToCreate(const RegionSetOptions& options);
  // Returns a random number other than 0, from the system.
  static uint64_t NewDatabaseId();
  // Finds the identity in the first directory that has files of a region; 0 if there is none.
  static Status FindDatabaseId(const RegionSetOptions& options, uint64_t* database_id);
  // Removes the files of all regions; OK if there are none. Files of another database: with kRefuse the result is
  // InvalidArgument, before anything is removed; with kSkip they stay. `begin`, if any, is called when all directories are
  // locked and nothing is removed yet; if it fails, its error is the result.
  enum class Others { kRefuse, kSkip };
  static Status Destroy(const RegionSetOptions& options, Others others = Others::kRefuse,
                        const std::function<Status()>& begin = nullptr);
  ~RegionSet();

  uint32_t count() const { return count_; }
  // The random identity that the regions of one database share.
  uint64_t database_id() const;
  Persistence* persistence() const { return persistence_.get(); }

  // The address at which the region's pool is mapped. REQUIRES: region < count().
  uint8_t* base(uint32_t region) const { return bases_[region]; }
  // Returns the address of p. REQUIRES: p is not null, and it was written by this process or Holds or Contains has checked it.
  template <class T = uint8_t>
  T* Resolve(PmPtr p) const {
    return reinterpret_cast<T*>(bases_[p.region()] + p.offset());
  }
  // Returns the pointer to an address in `region`. REQUIRES: the address lies in that region.
  PmPtr ToPmPtr(uint32_t region, const void* address) const {
    return PmPtr(region, static_cast<uint64_t>(static_cast<const uint8_t*>(address) - bases_[region]));
  }
  // Returns the pointer to an address in the mapped part of any region; null for every other address.
  PmPtr Find(const void* address) const;
  // Returns true if p is not null and aligned to 8 bytes, and [p, p + bytes) lies in the mapped part of an existing region.
  bool Contains(PmPtr p, uint64_t bytes) const;

  // Returns true if p lies in the mapped part of an existing region. Cheap enough to check each pointer of a list before a walk
  // follows it.
  bool Holds(PmPtr p) const { return p.region() < count_ && p.offset() < ends_[p.region()]->load(std::memory_order_relaxed); }
  // Returns the region whose upper lists link the entries of `region`, and from whose heads its readers search: the region
  // itself, or region 0 if the lists are oblivious of regions (ListKind).
  uint32_t ListRegion(uint32_t region) const { return region & list_mask_; }
  bool lists_are_braided() const { return list_mask_ != 0; }
  // Sets the kind of the lists; kBraided by default. REQUIRES: no list has an entry or a reader yet.
  void SetListKind(ListKind kind) { list_mask_ = kind == ListKind::kBraided ? ~uint32_t{0} : 0; }
  // Returns the pointer to an entry that an upper list of `list_region` links.
  PmPtr PointerInList(uint32_t list_region, const void* entry) const {
    return lists_are_braided() ? ToPmPtr(list_region, entry) : Find(entry);
  }
  // Returns the bytes of all parts of all regions.
  uint64_t MappedBytes() const;
  // Records that a walk has found a damaged pointer. Walks end there and return "not found", since they have no Status; callers
  // then check damage_seen().
  void NoteDamage() const { damage_seen_.store(true, std::memory_order_release); }
  bool damage_seen() const { return damage_seen_.load(std::memory_order_acquire); }
  // Lets damage_seen() return false again. Of a live set: a pointer into a part that is not mapped yet, or words that the writer
  // was changing, look like damage. Another thread's damage is forgotten, too: call this method while no other thread reads.
  void ClearDamage() const { damage_seen_.store(false, std::memory_order_release); }
  // Returns the Corruption of a list with a damaged pointer.
  static Status DamagedList();

  // Returns the region that the calling thread writes to and begins its searches in (RegionNodes, HOME).
  uint32_t HomeRegion() const { return count_ == 1 ? 0 : FindHomeRegion(); }
  // Returns a mask: bit i is set if region i is on another NUMA node than the calling thread, whose HomeRegion is `home`.
  uint32_t RemoteRegions(uint32_t home) const { return nodes_.stands() ? ~(uint32_t{1} << home) : FindRemoteRegions(home); }
  static bool IsRemote(uint32_t remote_regions, uint32_t region) { return ((remote_regions >> (region % kMaxRegions)) & 1) != 0; }
  const RegionNodes& nodes() const { return nodes_; }

  // Returns the metadata object in that slot, aligned to 64 bytes, and its size in *bytes; null if there is none. Of a live set
  // also null if the object lies in a part that is not mapped yet, or if the writer allocates or frees it at this moment.
  // The writer may free the object afterwards, so its owner verifies what it reads.
  void* Metadata(uint32_t region, MetadataSlot slot, uint64_t* bytes = nullptr) const;
  // Allocates a zeroed metadata object, durably and failure-atomically. NoSpace: the region or the file system is full.
  // REQUIRES: the slot is empty.
  Status AllocateMetadata(uint32_t region, MetadataSlot slot, uint64_t bytes, void** object);

  // Frees the object and empties the slot, durably and failure-atomically. REQUIRES: the slot has an object that no thread
  // uses.
  Status FreeMetadata(uint32_t region, MetadataSlot slot);

  // Grows every region to at least `bytes` bytes, or to its largest size if that is less than 2 MiB smaller. NoSpace: a
  // region
  // cannot grow so far. Limits and free space are checked before the first region grows.
  Status ReserveBytes(uint64_t bytes);

  // Returns the bytes of the parts of the region.
  uint64_t ReservedBytes(uint32_t region) const;

  // The part of the RegionSet that only the segment allocator uses; defined in pmem/region.h, the only header here with PMDK
  // types.
  class Impl;
  Impl* impl() const { return impl_.get(); }

 private:
  RegionSet();
  // Sets the fields that follow from impl_, and calls on_mapped.
  void OnRegionsReady(const RegionSetOptions& options, bool is_new);
  // Sets nodes_. On a machine with several NUMA nodes, puts the memory of regions in memory on nodes.
  void FindNodes(const RegionSetOptions& options, bool is_new);
  uint32_t FindHomeRegion() const;
  uint32_t FindRemoteRegions(uint32_t home) const;
  // The word of a mapped pool that has the run id.
  const uint64_t* RunId(uint32_t region) const { return reinterpret_cast<const uint64_t*>(bases_[region] + kPoolRunIdOffset); }

  uint32_t count_ = 0;
  uint32_t list_mask_ = ~uint32_t{0};  // all ones: braided lists; 0: lists oblivious of regions
  uint8_t* bases_[kMaxRegions] = {};
  const std::atomic<uint64_t>* ends_[kMaxRegions] = {};  // mapped bytes of each region
  mutable std::atomic<bool> damage_seen_{false};
  bool is_live_ = false;
  std::unique_ptr<Persistence> persistence_;
  RegionNodes nodes_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace braiddb
