#include "pmem/region.h"

#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "pmem/pmdk_memory.h"
#include "util/check.h"
#include "util/numa_topology.h"

namespace braiddb {
namespace {

constexpr char kPoolLayout[] = "braiddb";
constexpr uint64_t kMinGrowth = 8ull << 20;
constexpr uint64_t kMaxGrowth = 1ull << 30;
constexpr uint64_t kMaxAddressSpace = 16ull << 40;     // of one region
constexpr uint64_t kMaxAddressSpaceAll = 64ull << 40;  // of all regions, half of what a process has

// PMDK's heap: a header of 1 KiB, then zones of 512 KiB of chunk headers and up to 65528 chunks.
constexpr uint64_t kHeapHeaderBytes = 1024;
constexpr uint64_t kZoneHeaderBytes = 512ull << 10;
constexpr uint64_t kZoneBytes = kZoneHeaderBytes + 65528 * kChunkBytes;

constexpr uint64_t RoundDown(uint64_t bytes) { return bytes / kPartAlignment * kPartAlignment; }
constexpr uint64_t RoundUp(uint64_t bytes) { return RoundDown(bytes + kPartAlignment - 1); }

PMEMoid* AsPmdk(ObjectId* id) { return reinterpret_cast<PMEMoid*>(id); }

uint64_t EncodeGenerationLimit(uint64_t limit) { return limit << 16 | (XXH3_64bits(&limit, sizeof(limit)) & 0xffff); }

uint64_t RootChecksum(const RegionRoot& root) { return XXH3_64bits(&root, offsetof(RegionRoot, checksum)); }

// What libpmemobj says about a pool that it will not create or open.
Status PoolStatus(int error, std::string_view action, const std::string& path) {
  if (error == EWOULDBLOCK) return Status::Busy(path + " is in use; close the database in the process that has it open");
  if (error == EINVAL) {
    return Status::Corruption("cannot " + std::string(action) + " " + path + ": " + pmemobj_errormsg() +
                              "; a part is damaged or not of this region, restore the region's files from a backup");
  }
  return posix::ErrnoStatus(error, action, path);
}

}  // namespace

Region::Region(std::shared_ptr<RegionFiles> files, const RegionConfig& config) : files_(std::move(files)), config_(config) {}

Region::~Region() {
  if (pool_ != nullptr) pmemobj_close(pool_);
}

std::string Region::Name() const { return "region " + std::to_string(config_.index) + " (" + files_->directory() + ")"; }

uint64_t Region::ChooseMaxBytes() const {
  const uint64_t limit = std::min(kMaxAddressSpace, RoundDown(kMaxAddressSpaceAll / config_.count));
  const uint64_t wanted = config_.max_bytes != 0 ? config_.max_bytes : std::max(files_->CapacityBytes(), kMinRegionSize);
  return RoundDown(std::min(wanted, limit));
}

// ---- Creating and opening

Status Region::Create(std::shared_ptr<RegionFiles> files, const RegionConfig& config, std::unique_ptr<Region>* result) {
  std::unique_ptr<Region> region(new Region(std::move(files), config));
  region->max_bytes_ = region->ChooseMaxBytes();
  const std::string set = region->files_->set_path();
  if (Status status = region->files_->WriteSetFile(region->max_bytes_); !status.ok()) return status;
  {
    const PmdkOpenScope scope(1);
    region->pool_ = pmemobj_create(set.c_str(), kPoolLayout, 0, 0600);
  }
  if (region->pool_ == nullptr) return PoolStatus(errno, "create pool", set);
  if (Status status = region->files_->CommitFirstPart(config.database_id, config.index, config.count); !status.ok()) return status;
  if (Status status = region->OnMapped(); !status.ok()) return status;
  if (Status status = region->InitializeRoot(); !status.ok()) return status;
  *result = std::move(region);
  return Status::OK();
}

Status Region::Open(std::shared_ptr<RegionFiles> files, const RegionConfig& config, std::unique_ptr<Region>* result) {
  std::unique_ptr<Region> region(new Region(std::move(files), config));
  const uint64_t total = region->files_->list().TotalBytes();
  region->max_bytes_ = std::max(region->ChooseMaxBytes(), total);
  const std::string set = region->files_->set_path();
  if (Status status = region->files_->WriteSetFile(region->max_bytes_); !status.ok()) return status;
  {
    const PmdkOpenScope scope(1 + total / kZoneBytes);
    region->pool_ = pmemobj_open(set.c_str(), kPoolLayout);
  }
  if (region->pool_ == nullptr) return PoolStatus(errno, "open pool", set);
  if (Status status = region->OnMapped(); !status.ok()) return status;
  if (Status status = region->FindRoot(); !status.ok()) return status;
  if (Status status = region->CheckRoot(); !status.ok()) return status;
  *result = std::move(region);
  return Status::OK();
}

// The pool is mapped and its parts are listed.
Status Region::OnMapped() {
  long long no_growth = 0;  // we extend explicitly: PMDK would do so in steps of 128 MiB and past what is free
  BRAIDDB_CHECK(pmemobj_ctl_set(pool_, "heap.size.granularity", &no_growth) == 0);
  reserved_bytes_.store(files_->list().TotalBytes(), std::memory_order_release);
  if (NumaNodeCount() > 1) BindToNumaNode(base(), reserved_bytes(), config_.index % NumaNodeCount());
  PoolExtent extent;
  Status status = ReadPoolExtent(files_->part_path(0), &extent);
  heap_begin_ = extent.heap_begin;
  return status;
}

Status Region::InitializeRoot() {
  const PMEMoid id = pmemobj_root(pool_, sizeof(RegionRoot));
  if (OID_IS_NULL(id)) return PoolStatus(errno, "allocate the root of", files_->set_path());
  pool_id_ = id.pool_uuid_lo;
  root_ = reinterpret_cast<RegionRoot*>(base() + id.off);
  root_->magic = RegionRoot::kMagic;
  root_->format_version = kRegionFormatVersion;
  root_->region = config_.index;
  root_->database_id = config_.database_id;
  root_->region_count = config_.count;
  root_->checksum = RootChecksum(*root_);
  root_->generation_word = EncodeGenerationLimit(1);  // 0 stays free to mean none
  // The whole creation commits later, when the mark CREATING goes: one persist, no order inside.
  return persistence()->Persist(root_, sizeof(*root_)) ? Status::OK() : persistence()->error();
}

Status Region::FindRoot() {
  const std::string restore = "; restore its files from a backup";
  if (pmemobj_root_size(pool_) < sizeof(RegionRoot)) return Status::Corruption(Name() + " has no root object" + restore);
  const PMEMoid id = pmemobj_root(pool_, sizeof(RegionRoot));
  pool_id_ = id.pool_uuid_lo;
  if (!IsValidObject(ObjectId{id.pool_uuid_lo, id.off}, sizeof(RegionRoot))) {
    return Status::Corruption(Name() + " has a damaged root pointer" + restore);
  }
  root_ = reinterpret_cast<RegionRoot*>(base() + id.off);
  return Status::OK();
}

Status Region::CheckRoot() const {
  const std::string restore = "; restore its files from a backup";
  if (root_->magic != RegionRoot::kMagic) return Status::Corruption(Name() + " is not a BraidDB pool, or its root is damaged" + restore);
  if (root_->format_version > kRegionFormatVersion) {
    return Status::NotSupported(Name() + " has format version " + std::to_string(root_->format_version) +
                                ", this program knows versions up to " + std::to_string(kRegionFormatVersion) +
                                "; use a newer BraidDB");
  }
  if (root_->checksum != RootChecksum(*root_)) return Status::Corruption(Name() + " has a wrong checksum in its root" + restore);
  if (root_->database_id != config_.database_id || root_->region != config_.index || root_->region_count != config_.count) {
    return Status::Corruption(Name() + " holds a pool of another database or region; put each region's files back in their place");
  }
  for (uint32_t i = 0; i < RegionRoot::kMetadataSlots; ++i) {
    const ObjectId& id = root_->metadata[i];
    if (id.offset != 0 && !(root_->metadata_bytes[i] < reserved_bytes() && IsValidObject(id, root_->metadata_bytes[i] + kCacheLine))) {
      return Status::Corruption(Name() + " has a damaged pointer to metadata object " + std::to_string(i) + restore);
    }
  }
  return Status::OK();
}

Status Region::RaiseGenerationLimit(uint64_t by, uint64_t* first) {
  const uint64_t word = LoadRelaxed(&root_->generation_word);
  const uint64_t limit = word >> 16;
  if (word != EncodeGenerationLimit(limit)) {
    return Status::Corruption(Name() + " has a damaged generation counter in its root; restore its files from a backup");
  }
  *first = limit;
  if (by == 0) return Status::OK();
  // ORDER: the limit before any use of a generation below it, so that none is ever used twice. [CC-33]
  StoreRelaxed(&root_->generation_word, EncodeGenerationLimit(limit + by));
  return persistence()->Persist(&root_->generation_word, sizeof(uint64_t)) ? Status::OK() : persistence()->error();
}

// ---- Objects

bool Region::IsValidObject(const ObjectId& id, uint64_t bytes) const {
  const uint64_t end = reserved_bytes();
  return id.pool == pool_id_ && id.offset % kObjectHeaderBytes == 0 && id.offset >= heap_begin_ + kObjectHeaderBytes &&
         id.offset < end && bytes <= end - id.offset;
}

Status Region::AllocateObject(ObjectId* id, uint64_t bytes, PoolObject type, bool zeroed) {
  BRAIDDB_CHECK(id->offset == 0);
  if (bytes > PMEMOBJ_MAX_ALLOC_SIZE) {
    return Status::InvalidArgument("one object of " + std::to_string(bytes) + " bytes is more than the " +
                                   std::to_string(PMEMOBJ_MAX_ALLOC_SIZE) + " that a pool can give; split it");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  // The first growth may only fill up a zone, where an object of this size need not fit; the second starts the next zone.
  for (int growths = 0;; ++growths) {
    const uint64_t flags = zeroed ? POBJ_XALLOC_ZERO : 0;
    if (pmemobj_xalloc(pool_, AsPmdk(id), bytes, static_cast<uint64_t>(type), flags, nullptr, nullptr) == 0) return Status::OK();
    if (errno != ENOMEM) return PoolStatus(errno, "allocate from pool", files_->set_path());
    if (growths == 3) return Status::NoSpace(Name() + " is too fragmented for " + std::to_string(bytes) + " bytes; delete data");
    if (Status status = Grow(bytes); !status.ok()) return status;
  }
}

void Region::FreeObject(ObjectId* id) { pmemobj_free(AsPmdk(id)); }

// ---- Growing

Status Region::GrowthStep(uint64_t bytes, uint64_t* step) const {
  const uint64_t reserved = reserved_bytes();
  const uint64_t needed = RoundUp(bytes + kObjectHeaderBytes + kZoneHeaderBytes + 2 * kChunkBytes);
  if (needed > max_bytes_ - reserved) {
    return Status::NoSpace(Name() + " has reached its largest size of " + std::to_string(max_bytes_) +
                           " bytes; delete data, or open the database with a larger max_region_size");
  }
  *step = std::max(needed, RoundDown(std::clamp(reserved / 4, kMinGrowth, kMaxGrowth)));
  *step = std::min(*step, RoundDown(max_bytes_ - reserved));
  if (*step > files_->AvailableBytes()) *step = needed;
  if (*step > files_->AvailableBytes()) {
    return Status::NoSpace("the file system of " + Name() + " is full; free space on it or delete data");
  }
  // A part ends where a zone does, or less than one alignment before: PMDK leaves what a part adds to the last zone
  // unused until the next open if the same part also starts a new zone.
  const uint64_t heap = reserved - heap_begin_ - kHeapHeaderBytes;
  const uint64_t zone_end = RoundDown(heap_begin_ + kHeapHeaderBytes + (heap / kZoneBytes + 1) * kZoneBytes);
  if (reserved < zone_end && reserved + *step > zone_end) *step = zone_end - reserved;
  return Status::OK();
}

// See region_files.h for the steps and for what a crash leaves.
Status Region::Grow(uint64_t bytes) {
  if (growth_broken_) return Status::NoSpace(Name() + " cannot grow any more before the database is opened again");
  uint64_t step = 0;
  if (Status status = GrowthStep(bytes, &step); !status.ok()) return status;
  return Extend(step);
}

Status Region::Extend(uint64_t step) {
  // ORDER: the part is whole and durable before the heap's size includes it. [CC-31]
  if (Status status = files_->AddPart(step); !status.ok()) return status;
  long long extend_by = static_cast<long long>(step);
  if (pmemobj_ctl_exec(pool_, "heap.size.extend", &extend_by) != 0) {
    growth_broken_ = true;
    return Status::NoSpace(Name() + " could not map a new part: " + pmemobj_errormsg() +
                           "; raise vm.max_map_count if it is exhausted and open the database again");
  }
  const uint64_t reserved = reserved_bytes();
  if (NumaNodeCount() > 1) BindToNumaNode(base() + reserved, step, config_.index % NumaNodeCount());
  // release: pairs with the acquire in reserved_bytes(); the part is mapped.
  reserved_bytes_.store(reserved + step, std::memory_order_release);
  if (Status status = files_->CommitPart(); !status.ok()) Log(Name() + ": part list not written yet: " + status.ToString());
  Log(Name() + " grew by " + std::to_string(step) + " to " + std::to_string(reserved + step) + " bytes");
  return Status::OK();
}

}  // namespace braiddb
