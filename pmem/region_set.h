// RegionSet: the pools of one database, one per region, mapped and ready to be pointed into.
//
// A region is one libpmemobj pool that grows on demand: a poolset whose only part is a directory. PMDK allocates segments
// and a few metadata objects, each failure-atomically (pmemobj_xalloc into a persistent PMEMoid); nothing per entry.
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
#include "pmem/region_nodes.h"

namespace braiddb {

inline constexpr uint32_t kMaxRegions = RegionNodes::kMaxRegions;
inline constexpr uint64_t kMinRegionSize = 32ull << 20;

// Metadata objects that the layers above keep in a region, by slot in the region's root.
enum class MetadataSlot : uint32_t {
  kManifest = 0,      // region 0 only
  kL1 = 1,            // every region: what the last level needs there (skiplist: a head)
  kMergeJournal = 2,  // region 0 only
  kFamilies = 3,      // and the seven behind it; as kL1, of column families other than the default one
  kManifest2 = 11,    // region 0 only; a MANIFEST that grows moves from kManifest here, and back
  kCount = 16,
};

class RegionSet;
struct RegionSetOptions;

// Where the regions of a database are, or may be: those that the options name; otherwise those that the file in database_path
// names (database_file.h); otherwise as many as `count` inside of it. Of a region on a device: the directory with the link to it.
std::vector<std::string> RegionDirectories(const RegionSetOptions& options, uint32_t count);

struct RegionSetOptions {
  std::string database_path;              // the directory that holds region-0, region-1, … unless region_paths says otherwise
  std::vector<std::string> region_paths;  // empty, or for each region a directory, or a device (dax_device.h)
  // The identity that the database gets, or has; 0: Create draws one, Open and Destroy take that of the first region.
  uint64_t database_id = 0;
  uint32_t regions = 0;           // 0: at creation one per NUMA node, at open as stored
  std::vector<int> region_nodes;  // empty, or one NUMA node per region; -1: that of its device
  uint64_t max_region_size = 0;   // bytes; 0: capacity of the file system
  PersistMode persist_mode = PersistMode::kAuto;
  EmulationOptions emulation;
  bool count_writes = false;                       // Persistence::CountWrites; not where the regions are read only
  std::function<void(std::string_view)> info_log;  // may be empty
  std::string system_root;                         // stands before /proc and /sys where devices and NUMA nodes are looked up
  // May be empty. Called when all pools are mapped, before anything is stored in those of a new database.
  std::function<void(RegionSet*)> on_mapped;
};

// Thread safety: all methods may be called concurrently after Create/Open returned.
class RegionSet {
 public:
  // Create leaves nothing behind when it fails, and touches no directory that has files of another database or of another
  // creation than an unfinished one of database_path. Open tells apart, each with its own message that says what to do:
  //   NotFound          no region files there
  //   Corruption        foreign, truncated, empty or damaged file; a region missing; regions of two databases
  //                     mixed, or in the wrong order
  //   NotSupported      written by another format version
  //   IOError           no permission, or the system refused
  //   InvalidArgument   options that contradict what is stored (number of regions); Create: the place is taken
  //   Busy              open in this or another process
  // Every file is checked (type, size against what was recorded, pool signature) before libpmemobj sees it.
  static Status Create(const RegionSetOptions& options, std::unique_ptr<RegionSet>* result);
  static Status Open(const RegionSetOptions& options, std::unique_ptr<RegionSet>* result);
  // The regions of a database that nobody has open to write, and that nobody can while this lives; others may read it, too. Their
  // files are mapped privately: what is stored stays in this process, and takes DRAM there. Nothing of the files, nor of their
  // directories, changes, and permission to read is enough. Allocations fail. Errors as of Open.
  static Status OpenReadOnly(const RegionSetOptions& options, std::unique_ptr<RegionSet>* result);
  // Whether region files exist there, whole or not. What a crash inside Create left does not count: Create replaces it.
  static bool Exists(const RegionSetOptions& options);
  // How many regions Create makes.
  static uint32_t CountToCreate(const RegionSetOptions& options);
  static uint64_t NewDatabaseId();
  // The identity of the first region that is found, 0 if there is none.
  static Status FindDatabaseId(const RegionSetOptions& options, uint64_t* database_id);
  // Removes the files of all regions; OK if there are none. Directories with files of another database: kRefuse is
  // InvalidArgument before anything is removed, kSkip leaves them as they are. `begin`, if any, is called when all directories
  // are locked and nothing is removed yet; its error is returned.
  enum class Others { kRefuse, kSkip };
  static Status Destroy(const RegionSetOptions& options, Others others = Others::kRefuse,
                        const std::function<Status()>& begin = nullptr);
  ~RegionSet();

  uint32_t count() const { return count_; }
  // Random 64-bit identity shared by the regions of one database.
  uint64_t database_id() const;
  Persistence* persistence() const { return persistence_.get(); }

  uint8_t* base(uint32_t region) const { return bases_[region]; }
  template <class T = uint8_t>
  T* Resolve(PmPtr p) const {
    return reinterpret_cast<T*>(bases_[p.region()] + p.offset());
  }
  PmPtr ToPmPtr(uint32_t region, const void* address) const {
    return PmPtr(region, static_cast<uint64_t>(static_cast<const uint8_t*>(address) - bases_[region]));
  }
  // The pointer to an address in the mapped part of any region; null for every other address.
  PmPtr Find(const void* address) const;
  // True if the pointer is 8-byte aligned and [p, p + bytes) lies inside the mapped part of an existing region.
  bool Contains(PmPtr p, uint64_t bytes) const;

  // Whether something may begin there: cheap enough to look at a pointer of a list before it is followed.
  bool Holds(PmPtr p) const { return p.region() < count_ && p.offset() < ends_[p.region()]->load(std::memory_order_relaxed); }
  // The region in whose upper lists entries of `region` are linked, and from whose heads its readers search: the region itself,
  // or region 0 where lists are oblivious of regions (ListKind).
  uint32_t ListRegion(uint32_t region) const { return region & list_mask_; }
  bool lists_are_braided() const { return list_mask_ != 0; }
  // REQUIRES: nothing is linked or searched yet. Braided until then.
  void SetListKind(ListKind kind) { list_mask_ = kind == ListKind::kBraided ? ~uint32_t{0} : 0; }
  // The pointer to an entry that an upper list of `list_region` leads to.
  PmPtr PointerInList(uint32_t list_region, const void* entry) const {
    return lists_are_braided() ? ToPmPtr(list_region, entry) : Find(entry);
  }
  // Bytes of files that all regions take.
  uint64_t MappedBytes() const;
  // What follows pointers tells here that one is damaged: Status has no place on the way.
  void NoteDamage() const { damage_seen_.store(true, std::memory_order_release); }
  bool damage_seen() const { return damage_seen_.load(std::memory_order_acquire); }
  static Status DamagedList();

  // The region that the calling thread writes to, and begins its searches in: one of its NUMA node, see RegionNodes.
  uint32_t HomeRegion() const { return count_ == 1 ? 0 : FindHomeRegion(); }
  // Bit i says that region i is on another NUMA node than the calling thread, whose HomeRegion is `home`.
  uint32_t RemoteRegions(uint32_t home) const { return nodes_.stands() ? ~(uint32_t{1} << home) : FindRemoteRegions(home); }
  static bool IsRemote(uint32_t remote_regions, uint32_t region) { return ((remote_regions >> (region % kMaxRegions)) & 1) != 0; }
  const RegionNodes& nodes() const { return nodes_; }

  // The metadata object in that slot, null if there is none. 64-byte aligned.
  void* Metadata(uint32_t region, MetadataSlot slot, uint64_t* bytes = nullptr) const;
  // Allocates it zeroed, durably and failure-atomically. REQUIRES: the slot is empty. NoSpace if the region is full.
  Status AllocateMetadata(uint32_t region, MetadataSlot slot, uint64_t bytes, void** object);

  // Gives the object back, durably and failure-atomically; afterwards the slot is empty. REQUIRES: nobody uses the object.
  Status FreeMetadata(uint32_t region, MetadataSlot slot);

  // Every region has at least so many bytes then, or as many below as a multiple of 2 MiB allows. NoSpace if one cannot: if that
  // can be seen before, nothing has changed.
  Status ReserveBytes(uint64_t bytes);

  // Bytes of files that the region takes.
  uint64_t ReservedBytes(uint32_t region) const;

  // The part of the RegionSet that only the segment allocator uses; defined in pmem/region.h, the only header here with PMDK
  // types.
  class Impl;
  Impl* impl() const { return impl_.get(); }

 private:
  RegionSet();
  void OnRegionsReady(const RegionSetOptions& options, bool is_new);
  // Looks up where the regions are. Puts the memory of those that are in memory on NUMA nodes, if there are several.
  void FindNodes(const RegionSetOptions& options, bool is_new);
  uint32_t FindHomeRegion() const;
  uint32_t FindRemoteRegions(uint32_t home) const;

  uint32_t count_ = 0;
  uint32_t list_mask_ = ~uint32_t{0};
  uint8_t* bases_[kMaxRegions] = {};
  const std::atomic<uint64_t>* ends_[kMaxRegions] = {};  // of what is mapped
  mutable std::atomic<bool> damage_seen_{false};
  std::unique_ptr<Persistence> persistence_;
  RegionNodes nodes_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace braiddb
