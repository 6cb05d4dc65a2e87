#include "pmem/region.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "pmem/dax_device.h"
#include "pmem/part_list.h"
#include "pmem/pmdk_lanes.h"
#include "pmem/pmdk_memory.h"
#include "pmem/pmdk_sync.h"
#include "pmem/pool_format.h"
#include "pmem/pool_maker.h"
#include "pmem/pool_repair.h"
#include "pmem/region_image.h"
#include "util/check.h"
#include "util/deferred_syncs.h"
#include "util/huge_pages.h"
#include "util/mutant.h"
#include "util/numa_topology.h"
#include "util/patience.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

constexpr uint64_t kMaxAddressSpace = 16ull << 40;     // of one region
constexpr uint64_t kMaxAddressSpaceAll = 64ull << 40;  // of all regions of the process: half of its address space
constexpr uint64_t kLeastAddressSpace = 64ull << 30;   // of one region, if the process has so much
// A region without max_bytes reserves one part in so many of the address space that is left, so that other regions find some.
constexpr uint64_t kShareOfAddressSpace = 4;
constexpr size_t kMaxStatBytes = 4096;
constexpr uint64_t kMaxGuardBytes = 4ull << 30;  // behind a live region: more than the bytes of any entry
constexpr uint64_t kRoomToGrow = 4;              // a region reserves at least so many times its present size

// PMDK's own classes of small objects have runs for 200 objects each, up to 4 MiB. BraidDB's class has runs of one chunk for
// small objects of all sizes.
constexpr uint64_t kObjectUnit = 1024;
constexpr uint64_t kMaxClassObject = 64 * kObjectUnit - kObjectHeaderBytes;  // PMDK allows 64 units
constexpr uint64_t kRunOverhead = 4096;                                      // bytes for the header of a run, at most

constexpr uint64_t kZoneBytes = kZoneHeaderBytes + kZoneChunks * kChunkBytes;

constexpr uint64_t RoundDown(uint64_t bytes) { return bytes / kPartAlignment * kPartAlignment; }
constexpr uint64_t RoundUp(uint64_t bytes) { return RoundDown(bytes + kPartAlignment - 1); }

constexpr uint64_t ChunksOf(uint64_t object_bytes) { return (object_bytes + kObjectHeaderBytes + kChunkBytes - 1) / kChunkBytes; }

PMEMoid* AsPmdk(ObjectId* id) { return reinterpret_cast<PMEMoid*>(id); }

// Address space that all open regions of the process reserve; a hint for ChooseMaxBytes.
std::atomic<uint64_t> reserved_address_space{0};

// Returns the address space that the limit of the process (ulimit -v) leaves; UINT64_MAX without a limit.
uint64_t AddressSpaceLeft() {
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  std::string text;
  if (!posix::ReadSmallFile("/proc/self/statm", kMaxStatBytes, &text).ok()) return limit.rlim_cur;
  const uint64_t used = std::strtoull(text.c_str(), nullptr, 10) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<uint64_t>(limit.rlim_cur, used);
}

// PMDK's constructor of an object (pmemobj_constr): 0 lets the allocation commit, -1 cancels it.
int CallPrepare(PMEMobjpool*, void* object, void* prepare) {
  return (*static_cast<const Region::Prepare*>(prepare))(static_cast<uint8_t*>(object)) ? 0 : -1;
}

// Returns the status for an errno of libpmemobj about a pool that it does not create or open.
Status PoolStatus(int error, std::string_view action, const std::string& path) {
  if (error == EWOULDBLOCK) return Status::Busy(path + " is in use; close the database in the process that has it open");
  if (error == EINVAL || error == 0) {  // 0: PMDK found an inconsistency and has no errno for it
    return Status::Corruption("cannot " + std::string(action) + " " + path + ": " + pmemobj_errormsg() +
                              "; a part is damaged or not of this region, restore the region's files from a backup");
  }
  if (error == ENOENT) {  // the parts were there a moment ago; without file descriptors PMDK gives this errno, too
    return Status::IOError("cannot " + std::string(action) + " " + path + ": " + strerror(error) +
                           "; a part has been removed, or the process has too few file descriptors (ulimit -n)");
  }
  if (error == EEXIST) {  // PMDK takes no two pools of one identity, and a copy of the files has that of its original
    return Status::IOError("cannot " + std::string(action) + " " + path +
                           ": this process has the database open of which it is a copy; close that first, or open the copy in "
                           "another process, or copy by CreateCheckpoint (braiddb checkpoint)");
  }
  return posix::ErrnoStatus(error, action, path);
}

}  // namespace

Region::Region(std::shared_ptr<RegionFiles> files, const RegionConfig& config)
    : files_(std::move(files)), config_(config), devices_(files_->directory(), config_.info_log) {
  BRAIDDB_DCHECK(config_.persistence != nullptr && config_.index < config_.count);
}

// ORDER: PMDK closes the pool before the record of memory modules says `closed`. [CC-39]
Region::~Region() {
  reserved_address_space.fetch_sub(counted_reservation_, std::memory_order_relaxed);
  if (pool_ == nullptr) return;
  parts_guard_.Release();
  {
    const PmdkSyncScope sync(persistence(), files_->directory(), PmdkSyncScope::Kind::kNothing);
    const PmdkCloseScope close;
    pmemobj_close(pool_);
  }
  if (!persistence()->failed()) devices_.Leave();
}

std::string Region::Name() const { return "region " + std::to_string(config_.index) + " (" + files_->directory() + ")"; }

uint64_t Region::ChooseMaxBytes(uint64_t total) const {
  const uint64_t limit = std::min(kMaxAddressSpace, RoundDown(kMaxAddressSpaceAll / config_.count));
  if (!files_->device().empty()) return files_->CapacityBytes();  // the pool takes the whole device
  if (config_.max_bytes != 0) return RoundDown(std::min(config_.max_bytes, limit));
  const uint64_t capacity = std::max(files_->CapacityBytes(), kMinRegionSize);
  const uint64_t reserved = reserved_address_space.load(std::memory_order_relaxed);
  uint64_t share = (kMaxAddressSpaceAll - std::min(reserved, kMaxAddressSpaceAll)) / kShareOfAddressSpace / config_.count;
  // A power of two, so that most opens compute the same value and need not rewrite region.set.
  share = std::max({std::bit_floor(share), kLeastAddressSpace, kRoomToGrow * total});
  const uint64_t left = AddressSpaceLeft() / kShareOfAddressSpace / config_.count;
  return RoundDown(std::max(std::min({capacity, limit, share, left}), kMinRegionSize));
}

uint64_t Region::ChooseGuardBytes() {
  return RoundDown(std::min(kMaxGuardBytes, AddressSpaceLeft() / kShareOfAddressSpace / kMaxRegions));
}

void Region::CountReservation() {
  BRAIDDB_DCHECK(counted_reservation_ == 0);
  counted_reservation_ = max_bytes_;
  reserved_address_space.fetch_add(max_bytes_, std::memory_order_relaxed);
}

// ---- Creating and opening

Status Region::Create(std::shared_ptr<RegionFiles> files, const RegionConfig& config, std::unique_ptr<Region>* result) {
  std::unique_ptr<Region> region(new Region(std::move(files), config));
  region->max_bytes_ = region->ChooseMaxBytes(0);
  region->CountReservation();
  RegionFiles::PoolSet set;
  if (Status status = region->files_->MakeSet(region->max_bytes_, &set); !status.ok()) return status;
  if (Status status = region->devices_.Enter(); !status.ok()) return status;
  if (Status status = region->CreatePool(set.path); !status.ok()) return status;
  if (Status status = region->files_->CommitFirstPart(config.database_id, config.index, config.count); !status.ok())
    return status;
  if (Status status = region->OnMapped(); !status.ok()) return status;
  *result = std::move(region);
  return Status::OK();
}

Status Region::Open(std::shared_ptr<RegionFiles> files, const RegionConfig& config, std::unique_ptr<Region>* result) {
  std::unique_ptr<Region> region(new Region(std::move(files), config));
  const uint64_t total = region->files_->list().TotalBytes();
  region->max_bytes_ = std::max(region->ChooseMaxBytes(total), total);
  region->CountReservation();
  RegionFiles::PoolSet set;
  if (Status status = region->files_->MakeSet(region->max_bytes_, &set); !status.ok()) return status;
  if (Status status = region->devices_.Enter(); !status.ok()) return status;
  std::string repaired;
  if (Status status = PreparePool(region->files_->part_path(0), &repaired); !status.ok()) return status;
  if (!repaired.empty()) region->Log(region->Name() + ": " + repaired);
  bool is_finished = false;
  if (Status status = region->CheckHeap(&is_finished); !status.ok()) return status;
  BRAIDDB_SYNC_POINT("Region::Open:Checked");
  if (Status status = region->OpenPool(set.path, is_finished); !status.ok()) return status;
  if (Status status = region->files_->CheckSizes(); !status.ok()) return status;
  if (Status status = region->OnMapped(); !status.ok()) return status;
  region->born_chunks_ = kBornChunks;  // the room in the first chunks is unknown, so the next allocation fills the holes
  region->RestoreFooters();
  if (Status status = region->FindRoot(); !status.ok()) return status;
  if (Status status = region->CheckRoot(); !status.ok()) return status;
  if (Status status = region->FinishMetadata(); !status.ok()) return status;
  *result = std::move(region);
  return Status::OK();
}

Status Region::CreatePool(const std::string& set_path) {
  bool makes_pool = files_->device().empty() && LaneLimitScope::IsPossible();
  BRAIDDB_SYNC_POINT_ARG("Region::CreatePool", &makes_pool);
  if (makes_pool) {
    // Bad blocks exist on persistent memory only. The crash test opens pools too often for the check.
    const PersistMode mode = persistence()->mode();
    const bool is_persistent_memory = mode != PersistMode::kEmulated && mode != PersistMode::kPage && !kCrashTest;
    // If the thread defers its syncs, the pages of the head are synced together with those that PMDK stores to.
    const bool syncs_later = mode == PersistMode::kPage && DeferredSyncs::active();
    Status status = files_->MakeFirstPart(is_persistent_memory, !syncs_later);
    if (status.ok()) status = OpenPool(set_path, true);
    if (status.ok() && syncs_later) persistence()->Flush(base(), kSmallHeadEnd);
    return status;
  }
  const PmdkOpenScope scope(1);
  const PmdkSyncScope sync(persistence(), files_->directory());
  const NoShutdownStateScope no_shutdown_state;
  pool_ = pmemobj_create(set_path.c_str(), kPoolLayout, 0, 0600);
  has_zone_room_ = scope.HasRoom();
  if (pool_ == nullptr) return PoolStatus(errno, "create pool", files_->directory());
  return persistence()->failed() ? persistence()->error() : DefineObjectClass();
}

Status Region::OpenPool(const std::string& set_path, bool is_finished) {
  BRAIDDB_DCHECK(pool_ == nullptr && image_ == nullptr);
  PoolExtent extent{.lanes = kPmdkLanes};
  Status status = ReadPoolExtent(files_->part_path(0), &extent);
  if (!status.ok() && !status.IsNotSupported()) {  // PMDK reports a version that it does not support
    const Status sizes = files_->CheckSizes();
    return sizes.ok() ? status : sizes;
  }
  const bool has_few_lanes = extent.lanes < kPmdkLanes;
  if (has_few_lanes && !LaneLimitScope::IsPossible()) {
    return Status::NotSupported(Name() +
                                " needs a libpmemobj that is linked dynamically, since its pool has few lanes; "
                                "link the program with libpmemobj.so");
  }
  const PmdkOpenScope scope(1 + files_->list().TotalBytes() / kZoneBytes);
  using Kind = PmdkSyncScope::Kind;
  const PmdkSyncScope sync(persistence(), files_->directory(), is_finished ? Kind::kPutsOff : Kind::kSyncs);
  const LaneLimitScope lanes(extent.lanes);
  const int error = RetryWhileLocked([&] {
    pool_ = pmemobj_open(set_path.c_str(), has_few_lanes ? kFewLanesLayout : kPoolLayout);
    return pool_ != nullptr ? 0 : errno;
  });
  if (pool_ == nullptr) return PoolStatus(error, "open pool", files_->directory());
  if (has_few_lanes && !lanes.WasAsked()) {
    pmemobj_close(std::exchange(pool_, nullptr));
    return Status::NotSupported(Name() +
                                " cannot be opened: another library has taken over what libpmemobj asks about its lanes; " +
                                "use one copy of BraidDB in the process");
  }
  has_zone_room_ = scope.HasRoom();
  return persistence()->failed() ? persistence()->error() : DefineObjectClass();
}

Status Region::DefineObjectClass() {
  pobj_alloc_class_desc description{kObjectUnit, 0, (kChunkBytes - kRunOverhead) / kObjectUnit, POBJ_HEADER_COMPACT, 0};
  if (pmemobj_ctl_set(pool_, "heap.alloc_class.new.desc", &description) == 0) {
    object_class_ = description.class_id;
    return Status::OK();
  }
  return PoolStatus(errno, "define a class of objects in pool", files_->directory());
}

Status Region::CheckHeap(bool* is_finished) const {
  std::unique_ptr<RegionImage> image;
  DaxDevice device;
  const auto ignore = [](const std::string&, const std::string&) {};  // RegionFiles::CheckParts has checked the files
  Status mapped = files_->device().empty() ? RegionImage::MapLocked(files_->directory(), ignore, &image)
                                           : DaxDevice::Map(files_->device(), DaxDevice::Access::kRead, &device);
  if (!mapped.ok()) return mapped;
  const PoolView pool = image != nullptr ? PoolView(image->base(), image->bytes()) : PoolView(device.base(), device.bytes());
  // PMDK reports a damaged header, and finishes an operation that a crash has cut short.
  if (pool.FindDamage() != nullptr) return Status::OK();
  const char* damage = pool.FindLaneDamage();
  *is_finished = damage == nullptr && !pool.RedoPending();
  if (*is_finished) damage = pool.ForEachChunks([](PoolView::Chunks, uint64_t, uint64_t) {});
  if (damage == nullptr) return Status::OK();
  return Status::Corruption(Name() + ": " + damage + "; restore the region's files from a backup");
}

Status Region::OnMapped() {
  BRAIDDB_DCHECK(pool_ != nullptr && !files_->list().parts.empty());
  uint64_t begin = 0;
  for (size_t i = 0; i < files_->list().parts.size(); begin += files_->list().parts[i++]) {
    // PMDK maps the first part over the whole reserved address space, and maps further parts over that mapping.
    parts_guard_.Guard(files_->part_path(i), base() + begin, i == 0 ? max_bytes_ : files_->list().parts[i]);
  }
  long long no_growth = 0;  // Extend grows the pool: PMDK would grow by 128 MiB, also if the file system is full
  BRAIDDB_CHECK(pmemobj_ctl_set(pool_, "heap.size.granularity", &no_growth) == 0);
  reserved_bytes_.store(files_->list().TotalBytes(), std::memory_order_release);
  PoolExtent extent;
  Status status = ReadPoolExtent(files_->part_path(0), &extent);
  heap_begin_ = extent.heap_begin;
  blocks_.Start(files_->directory(), files_->list().parts);
  const std::vector<uint64_t>& parts = files_->list().parts;
  first_part_has_holes_ =
      parts.size() == 1 && parts[0] == kSmallPartBytes && heap_begin_ == kSmallHeapBegin && files_->device().empty();
  if (status.ok() && first_part_has_holes_) status = files_->HoldFirstPart();
  return status;
}

void Region::PutOnNode(int system_node, bool move) {
  const std::lock_guard<std::mutex> lock(mutex_);
  memory_node_ = system_node;
  BindToNumaNode(base(), reserved_bytes(), memory_node_, move);
}

// File systems with DAX use huge pages without help. Files on a disk are synced by small pages, so huge ones would write more.
RegionFiles::Fill Region::PartFill() const {
  if (persistence()->mode() != PersistMode::kEmulated) return nullptr;
  return [this](int fd, uint64_t bytes) {
    FillWithHugePages(fd, bytes, [&](void* address) {
      if (memory_node_ != kUnknownNumaNode) BindToNumaNode(address, bytes, memory_node_);
    });
  };
}

// The header of the last chunk of a free run is a footer with the length of the run, by which PMDK finds the begin of the run.
// PMDK stores footers without a flush and rebuilds them at open, but libpmemobj 1.12 rebuilds those of used runs only. After a
// power cut it would follow a stale footer of a free run. The walk stops at a header without a valid length. [CC-37]
void Region::RestoreFooters() {
  for (uint64_t zone = heap_begin_ + kHeapHeaderBytes; zone + kZoneHeaderBytes <= reserved_bytes(); zone += kZoneBytes) {
    const auto* const header = reinterpret_cast<const ZoneHeader*>(base() + zone);
    if (header->magic != ZoneHeader::kMagic) continue;  // not in use yet
    auto* const chunks = reinterpret_cast<ChunkHeader*>(base() + zone + sizeof(ZoneHeader));
    const uint32_t count = std::min(header->chunks, static_cast<uint32_t>(kZoneChunks));
    for (uint32_t i = 0; i < count && chunks[i].chunks != 0 && chunks[i].chunks <= count - i; i += chunks[i].chunks) {
      if (chunks[i].type != ChunkHeader::kFree || chunks[i].chunks == 1) continue;
      chunks[i + chunks[i].chunks - 1] = {ChunkHeader::kFooter, 0, chunks[i].chunks};
    }
  }
}

// ---- Objects

bool Region::IsValidObject(const ObjectId& id, uint64_t bytes) const {
  const uint64_t end = reserved_bytes();
  return id.pool == pool_id_ && id.offset % kObjectHeaderBytes == 0 && id.offset >= heap_begin_ + kObjectHeaderBytes &&
         id.offset < end && bytes <= end - id.offset;
}

Status Region::AllocateObject(ObjectId* id, uint64_t bytes, PoolObject type, const Prepare& prepare) {
  if (persistence()->failed()) return persistence()->error();  // *id may name an object that is not on media
  if (is_live()) return Status::ReadOnly(Name() + " is open for reading only");
  BRAIDDB_CHECK(id->offset == 0);
  BRAIDDB_DCHECK(bytes > 0 && reinterpret_cast<uintptr_t>(id) % alignof(ObjectId) == 0);
  if (pool_ == nullptr) return Status::ReadOnly(Name() + " is open for reading only");
  if (bytes > PMEMOBJ_MAX_ALLOC_SIZE) {
    return Status::InvalidArgument("one object of " + std::to_string(bytes) + " bytes is more than the " +
                                   std::to_string(PMEMOBJ_MAX_ALLOC_SIZE) + " that a pool can give; split it");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (Status status = FillBefore(bytes); !status.ok()) return status;
  // The first growth may only fill the last zone, where the object need not fit. The second one starts the next zone.
  const bool is_small = bytes <= kMaxClassObject;
  const uint64_t flags = (prepare ? POBJ_XALLOC_ZERO : 0) | (is_small ? POBJ_CLASS_ID(object_class_) : 0);
  if (!is_small)  // an object of whole chunks belongs to no class
    bytes = std::min<uint64_t>(ChunksOf(bytes) * kChunkBytes - kObjectHeaderBytes, PMEMOBJ_MAX_ALLOC_SIZE);
  const pmemobj_constr constructor = prepare ? CallPrepare : nullptr;
  void* const argument = const_cast<Prepare*>(&prepare);
  const PmdkSyncScope sync(persistence(), files_->directory());
  const PmdkMemoryScope memory;
  for (int growths = 0;; ++growths) {
    if (pmemobj_xalloc(pool_, AsPmdk(id), bytes, static_cast<uint64_t>(type), flags, constructor, argument) == 0)
      return persistence()->failed() ? persistence()->error() : Status::OK();
    if (errno == ECANCELED) return persistence()->error();
    if (errno != ENOMEM) return PoolStatus(errno, "allocate from pool", files_->set_path());
    if (growths == 3) return Status::NoSpace(Name() + " is too fragmented for " + std::to_string(bytes) + " bytes; delete data");
    if (Status status = Grow(bytes); !status.ok()) return status;
  }
}

// The first kBornChunks chunks have blocks from the start: the root takes one, small objects take one, and one is left. PMDK
// takes chunks from the front. So the fields born_* count the allocations, and the holes are filled before these chunks are
// used up. A FreeObject makes PMDK's next choice unknown, so it counts as if all chunks were used. [CC-61]
Status Region::FillBefore(uint64_t bytes) {
  if (!first_part_has_holes_) return Status::OK();
  if (bytes <= kMaxClassObject) {
    born_object_bytes_ += bytes + kObjectHeaderBytes + kObjectUnit;
  } else {
    born_chunks_ += ChunksOf(bytes);
  }
  if (born_object_bytes_ <= kMaxClassObject && born_chunks_ + 2 <= kBornChunks) return Status::OK();
  if (Status status = files_->FillFirstPart(RegionFiles::Filled::kChunks); !status.ok()) return status;
  first_part_has_holes_ = false;
  return Status::OK();
}

// The mutex is needed: libpmemobj 1.12 crashes if a large object is freed while another thread grows the heap, since it joins
// the freed chunks with their neighbours.
void Region::FreeObject(ObjectId* id) {
  if (is_live()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (pool_ == nullptr) {
    StoreRelaxed(&id->offset, 0);  // the image is private to this process
    return;
  }
  if (persistence()->failed()) return;  // media stay as they are
  BRAIDDB_DCHECK(id->offset != 0);
  const PmdkSyncScope sync(persistence(), files_->directory());
  born_chunks_ = kBornChunks;
  pmemobj_free(AsPmdk(id));
}

// ---- Growing

Status Region::GrowthStep(uint64_t bytes, uint64_t* step) const {
  const uint64_t reserved = reserved_bytes();
  BRAIDDB_DCHECK(reserved <= max_bytes_);
  const uint64_t needed = RoundUp(bytes + kObjectHeaderBytes + kZoneHeaderBytes + 2 * kChunkBytes);
  if (needed > max_bytes_ - reserved && !files_->device().empty())
    return Status::NoSpace(Name() + " fills its device; delete data");
  if (needed > max_bytes_ - reserved) {
    const char* const advice = config_.max_bytes != 0 ? "open the database with a larger max_region_size"
                                                      : "open the database again, which reserves more address space";
    return Status::NoSpace(Name() + " has reached its largest size of " + std::to_string(max_bytes_) +
                           " bytes; delete data, or " + advice);
  }
  *step = std::max(needed, RoundDown(UsualGrowth(reserved)));
  *step = std::min(*step, RoundDown(max_bytes_ - reserved));
  if (*step > files_->AvailableBytes()) *step = needed;
  if (*step > files_->AvailableBytes()) {
    return Status::NoSpace("the file system of " + Name() + " is full; free space on it or delete data");
  }
  BRAIDDB_DCHECK(*step >= needed);
  *step = UpToZoneEnd(*step);
  return Status::OK();
}

// If a part both fills the last zone and starts a new one, PMDK leaves the space in the last zone unused until the next open.
// So a part ends with the zone, or less than one alignment before its end.
uint64_t Region::UpToZoneEnd(uint64_t step) const {
  const uint64_t reserved = reserved_bytes();
  const uint64_t heap = reserved - heap_begin_ - kHeapHeaderBytes;
  const uint64_t zone_end = RoundDown(heap_begin_ + kHeapHeaderBytes + (heap / kZoneBytes + 1) * kZoneBytes);
  return reserved < zone_end && reserved + step > zone_end ? zone_end - reserved : step;
}

uint64_t Region::Headroom() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return growth_broken_ || is_live() ? 0 : std::min(max_bytes_ - reserved_bytes(), files_->AvailableBytes());
}

// libpmemobj does not count a zone without room for a chunk.
uint64_t Region::ZonesOf(uint64_t bytes) const {
  const uint64_t heap = bytes - heap_begin_ - kHeapHeaderBytes;
  return heap / kZoneBytes + (heap % kZoneBytes >= kZoneHeaderBytes + kChunkBytes ? 1 : 0);
}

Status Region::MissingBytes(uint64_t bytes, uint64_t* missing) const {
  if (RoundDown(bytes) > max_bytes_) {
    return Status::NoSpace(Name() + " can have " + std::to_string(max_bytes_) + " bytes, not the " + std::to_string(bytes) +
                           " of initial_region_size; lower it");
  }
  const uint64_t wanted = std::min(RoundUp(bytes), max_bytes_);
  *missing = wanted - std::min(wanted, reserved_bytes());
  return Status::OK();
}

Status Region::ReserveBytes(uint64_t bytes) {
  if (is_live()) return Status::ReadOnly(Name() + " is open for reading only");
  const std::lock_guard<std::mutex> lock(mutex_);
  for (;;) {
    uint64_t missing = 0;
    if (Status status = MissingBytes(bytes, &missing); !status.ok() || missing == 0) return status;
    if (growth_broken_) return growth_error_;
    if (Status status = Extend(UpToZoneEnd(missing)); !status.ok()) return status;
  }
}

Status Region::Grow(uint64_t bytes) {
  if (growth_broken_) return growth_error_;
  uint64_t step = 0;
  if (Status status = GrowthStep(bytes, &step); !status.ok()) return status;
  return Extend(step);
}

// STEPS 1 to 5 and their crashes: region_files.h. PMDK's store of the heap size is step 4. If PMDK cannot map the part, the
// part stays in PMDK's own list, so the region does not grow again before the next open.
Status Region::Extend(uint64_t step) {
  BRAIDDB_DCHECK(step > 0 && pool_ != nullptr && !growth_broken_);
  const uint64_t begin = reserved_bytes();
  if (!has_zone_room_ && ZonesOf(begin + step) > ZonesOf(begin)) {
    return Status::NoSpace(Name() + " cannot grow beyond " + std::to_string(begin) +
                           " bytes while another user of libpmemobj in this process has set its memory functions; "
                           "open the database again");
  }
  if (Status status = devices_.BeforeGrowth(); !status.ok()) return status;
  // ORDER: the part is complete and durable before the heap's size includes it. [CC-31]
  if (Status status = files_->AddPart(step, PartFill()); !status.ok()) return status;
  long long extend_by = static_cast<long long>(step);
  const PmdkSyncScope sync(persistence(), files_->directory());
  if (pmemobj_ctl_exec(pool_, "heap.size.extend", &extend_by) != 0) {
    growth_broken_ = true;
    growth_error_ =
        Status::NoSpace(Name() + " cannot grow any more, since a new part could not be mapped: " + pmemobj_errormsg() +
                        "; close and open the database, before that raise the limit of open files (ulimit -n) or " +
                        "vm.max_map_count if it is exhausted");
    return growth_error_;
  }
  if (persistence()->failed()) {
    growth_broken_ = true;
    growth_error_ = persistence()->error();
    return growth_error_;
  }
  parts_guard_.Guard(files_->part_path(files_->list().parts.size() - 1), base() + begin, step);
  if (memory_node_ != kUnknownNumaNode) BindToNumaNode(base() + begin, step, memory_node_);
  blocks_.AddPart(step);
  // release: pairs with the acquire in reserved_bytes(); the part is mapped.
  reserved_bytes_.store(begin + step, std::memory_order_release);
  if (config_.on_growth != nullptr) config_.on_growth();
  // AddPart has filled the holes of the small first part, so it can have huge pages.
  if (begin == kSmallPartBytes && persistence()->mode() == PersistMode::kEmulated) (void)CollapseHugePages(base(), begin);
  if (Status status = files_->CommitPart(); !status.ok()) Log(Name() + ": part list not written yet: " + status.ToString());
  Log(Name() + " grew by " + std::to_string(step) + " to " + std::to_string(begin + step) + " bytes");
  return Status::OK();
}

// ---- Blocks

// The first small part has holes of its own until the region grows (pool_maker.h), which must not mix with those of segments.
bool Region::MayGiveBack() const {
  return pool_ != nullptr && files_->device().empty() && reserved_bytes() > kSmallPartBytes && !persistence()->failed() &&
         gives_back_.load(std::memory_order_relaxed);
}

Status Region::GiveBack(PoolRange pages) {
  BRAIDDB_DCHECK(pool_ != nullptr && files_->device().empty());
  if (pages.empty()) return Status::OK();
  // The crash test maps the files of an image privately, and looks at one image after the other in the same files.
  if (kCrashTest) std::memset(base() + pages.begin, 0, pages.end - pages.begin);
  Status status = kCrashTest ? Status::OK() : blocks_.GiveBack(pages);
  if (status.ok()) {
    persistence()->NoteHole(base() + pages.begin, pages.end - pages.begin);
  } else if (gives_back_.exchange(false, std::memory_order_relaxed)) {
    Log(Name() + " keeps the blocks of free segments until the next open: " + status.ToString());
  }
  return status;
}

// Without access to the files by their names, the pages get blocks through the mapping. That takes longer, and a new kernel.
Status Region::TakeBlocks(PoolRange pages) {
  if (pages.empty()) return Status::OK();
  Status status = blocks_.Take(pages);
  if (status.ok() || status.IsNoSpace()) return status;
  const int error = PopulatePages(base() + pages.begin, pages.end - pages.begin);
  if (error == 0) return Status::OK();
  return error == EFAULT ? Status::NoSpace("the file system of " + files_->directory() + " has no blocks for " + Name()) : status;
}

}  // namespace braiddb
