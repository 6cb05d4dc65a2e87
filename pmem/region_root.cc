#include <xxhash.h>

#include <cerrno>

#include "pmem/layout_check.h"
#include "pmem/pmdk_memory.h"
#include "pmem/pmdk_sync.h"
#include "pmem/region.h"
#include "util/check.h"
#include "util/mutant.h"

// The part of Region that reads and writes the root object.

namespace braiddb {
namespace {

// A generation has 48 bits. The first one of a region has at most 40, so 2^48 − 2^40 uses are left.
constexpr uint32_t kGenerationHeadroom = 24;

}  // namespace

// CRASH  Before the persist: the mark CREATING stands, so the region is removed and created again.
Status Region::InitializeRoot() {
  BRAIDDB_DCHECK(pool_ != nullptr && root_ == nullptr && config_.secret != 0);
  const PmdkSyncScope sync(persistence(), files_->directory());
  const PmdkMemoryScope memory;
  const PMEMoid id = pmemobj_root(pool_, sizeof(RegionRoot));
  if (persistence()->failed()) return persistence()->error();
  if (OID_IS_NULL(id)) return posix::ErrnoStatus(errno, "allocate the root of", files_->set_path());
  pool_id_ = id.pool_uuid_lo;
  root_ = reinterpret_cast<RegionRoot*>(base() + id.off);
  root_->magic = RegionRoot::kMagic;
  root_->format_version = kRootFormatVersion;
  root_->region = config_.index;
  root_->database_id = config_.database_id;
  root_->region_count = config_.count;
  root_->secret = config_.secret;
  root_->checksum = RootChecksum(*root_);
  root_->secret_check = RootSecretCheck(*root_);
  // Each region of each database begins with another generation, never 0. So entries of another database, which a user may have
  // stored in a value, have checksums that do not match.
  const uint64_t identity[] = {config_.database_id, config_.index};
  root_->generation_word = EncodeGenerationLimit(1 + (XXH3_64bits(identity, sizeof(identity)) >> kGenerationHeadroom));
  // The creation commits later, by the removal of the mark CREATING. So one persist without inner order is enough.
  return persistence()->Persist(root_, sizeof(*root_)) ? Status::OK() : persistence()->error();
}

// pmemobj_root would allocate a root object if there were none, so the size is checked first.
Status Region::FindRoot() {
  BRAIDDB_DCHECK(pool_ != nullptr && root_ == nullptr);
  const std::string restore = "; restore its files from a backup";
  if (pmemobj_root_size(pool_) < sizeof(RegionRoot)) return Status::Corruption(Name() + " has no root object" + restore);
  const PmdkSyncScope sync(persistence(), files_->directory());
  const PmdkMemoryScope memory;
  const PMEMoid id = pmemobj_root(pool_, sizeof(RegionRoot));
  pool_id_ = id.pool_uuid_lo;
  if (!IsValidObject(ObjectId{id.pool_uuid_lo, id.off}, sizeof(RegionRoot))) {
    return Status::Corruption(Name() + " has a damaged root pointer" + restore);
  }
  root_ = reinterpret_cast<RegionRoot*>(base() + id.off);
  return Status::OK();
}

Status Region::CheckIdentity() const {
  BRAIDDB_DCHECK(root_ != nullptr);
  const std::string restore = "; restore its files from a backup";
  if (root_->magic != RegionRoot::kMagic)
    return Status::Corruption(Name() + " is not a BraidDB pool, or its root is damaged" + restore);
  if (!IsKnownRootVersion(root_->format_version)) return UnknownFormat(Name(), root_->format_version, kRootFormatVersion);
  if (!IsRootSound(*root_)) return Status::Corruption(Name() + " has a wrong checksum in its root" + restore);
  if (root_->database_id != config_.database_id || root_->region != config_.index || root_->region_count != config_.count) {
    return Status::Corruption(Name() +
                              " holds a pool of another database or region; put each region's files back in their place");
  }
  return Status::OK();
}

// An object without a check is no damage: a crash leaves it, and FinishMetadata completes it. A check must match its slot, and so
// the slot must have its object.
Status Region::CheckRoot() const {
  if (Status status = CheckIdentity(); !status.ok()) return status;
  for (uint32_t i = 0; i < RegionRoot::kMetadataSlots; ++i) {
    const bool allocated = root_->metadata[i].offset != 0;
    const bool committed = root_->metadata_check[i] != 0;
    const uint64_t bytes = root_->metadata_bytes[i];
    if ((committed && root_->metadata_check[i] != MetadataCheck(*root_, i)) ||
        (allocated && !(bytes < reserved_bytes() && IsValidObject(root_->metadata[i], bytes + kCacheLine)))) {
      return Status::Corruption(Name() + " has a damaged pointer to metadata object " + std::to_string(i) +
                                "; restore its files from a backup");
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
  if (is_live()) return Status::ReadOnly(Name() + " is open for reading only");
  // ORDER: the limit before any use of a generation below it, so that no generation is used twice. [CC-33]
  if (BRAIDDB_MUTANT("generation-word-torn"))
    StoreRelaxed(&root_->generation_word, word >> 16 << 16 | (EncodeGenerationLimit(limit + by) & UINT16_MAX));
  StoreRelaxed(&root_->generation_word, EncodeGenerationLimit(limit + by));
  if (BRAIDDB_MUTANT("generation-limit-not-persisted")) return Status::OK();
  return persistence()->Persist(&root_->generation_word, sizeof(uint64_t)) ? Status::OK() : persistence()->error();
}

// ---- Metadata
//
// PERSIST ORDER of an allocation: P1 metadata_bytes  P2 the object and its id, by PMDK  P3 metadata_check
//               of a release: R1 metadata_check = 0  R2 the id = null and the object is free, by PMDK
// CRASH         after P1: the slot is empty; the size has no meaning. After P2, before P3: an object without its check; its
//               size is known and its bytes are zero. After R1, before R2: an object without its check; its bytes are as
//               before.
// RECOVERY      An object without its check gets the check by FinishMetadata. The owner of the slot then finds a zero object,
//               or the object of before. A check that does not match, or a check without an object, is damage.

Status Region::AllocateMetadata(uint32_t slot, uint64_t bytes) {
  if (persistence()->failed()) return persistence()->error();
  if (is_live()) return Status::ReadOnly(Name() + " is open for reading only");
  BRAIDDB_CHECK(slot < RegionRoot::kMetadataSlots && root_->metadata[slot].offset == 0);
  const std::lock_guard<std::mutex> lock(metadata_mutex_);
  if (bytes >= max_bytes_) return Status::NoSpace(Name() + " can never hold " + std::to_string(bytes) + " bytes of metadata");
  StoreRelaxed(&root_->metadata_bytes[slot], bytes);
  // ORDER: the size before the object, whose id PMDK's allocation commits. [CC-32]
  if (!persistence()->Persist(&root_->metadata_bytes[slot], sizeof(uint64_t))) return persistence()->error();
  // An object starts at a multiple of 16. Another 64 bytes leave room to align its content to a line.
  Status status =
      AllocateObject(&root_->metadata[slot], bytes + kCacheLine, PoolObject::kMetadata, [](uint8_t*) { return true; });
  return status.ok() ? FinishMetadata() : status;
}

Status Region::FreeMetadata(uint32_t slot) {
  if (is_live()) return Status::ReadOnly(Name() + " is open for reading only");
  BRAIDDB_CHECK(slot < RegionRoot::kMetadataSlots && root_->metadata[slot].offset != 0);
  const std::lock_guard<std::mutex> lock(metadata_mutex_);
  StoreRelaxed(&root_->metadata_check[slot], 0);
  // ORDER: the check is 0 before PMDK frees the object. [CC-32]
  if (!BRAIDDB_MUTANT("metadata-check-stays") && !persistence()->Persist(&root_->metadata_check[slot], sizeof(uint64_t)))
    return persistence()->error();
  FreeObject(&root_->metadata[slot]);
  return Status::OK();
}

// REQUIRES: the caller holds metadata_mutex_, or no other thread has the region yet.
Status Region::FinishMetadata() {
  for (uint32_t slot = 0; slot < RegionRoot::kMetadataSlots; ++slot) {
    if (root_->metadata[slot].offset == 0 || root_->metadata_check[slot] != 0) continue;
    StoreRelaxed(&root_->metadata_check[slot], MetadataCheck(*root_, slot));
    if (!persistence()->Persist(&root_->metadata_check[slot], sizeof(uint64_t))) return persistence()->error();
  }
  return Status::OK();
}

}  // namespace braiddb
