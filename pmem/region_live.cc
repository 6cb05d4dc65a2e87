#include <algorithm>
#include <chrono>
#include <thread>

#include "pmem/layout_check.h"
#include "pmem/pool_format.h"
#include "pmem/region.h"
#include "util/check.h"

// The part of Region that reads a pool while another process may write to it.

namespace braiddb {
namespace {

// Checks that fail, before that counts as damage: a growth, or PMDK's open, changes words that belong together.
constexpr int kPoolTries = 50;
constexpr auto kPoolPause = std::chrono::milliseconds(1);
constexpr int kSlotTries = 1000;  // reads of one metadata slot before its check counts as damaged

}  // namespace

// STEPS  1 reserve address space  2 map the parts  3 check header and heap header  4 find the root  5 check the root and its
//        metadata slots. 2 and 3 are repeated while the region grows. The lanes and the headers of
//        chunks are not checked: the writer changes them all the time, and a reader does not follow them.
Status Region::OpenLive(std::unique_ptr<LiveParts> parts, std::shared_ptr<RegionFiles> files, const RegionConfig& config,
                        std::unique_ptr<Region>* result) {
  std::unique_ptr<Region> region(new Region(std::move(files), config));
  const std::string restore = "; restore the region's files from a backup";
  const uint64_t total = parts->list().TotalBytes();
  if (Status status = parts->Reserve(std::max(region->ChooseMaxBytes(total), total), region->ChooseGuardBytes()); !status.ok())
    return status;
  region->max_bytes_ = parts->reserved_bytes();
  region->CountReservation();
  const char* damage = nullptr;
  for (int tries = 0; tries < kPoolTries; ++tries) {
    if (tries > 1) std::this_thread::sleep_for(kPoolPause);
    if (Status status = parts->MapNewParts(); !status.ok()) return status;
    damage = PoolView(parts->base(), parts->mapped_bytes()).FindDamage();
    if (damage == nullptr) break;
  }
  if (damage != nullptr) return Status::Corruption(region->Name() + ": " + damage + restore);
  const PoolView pool(parts->base(), parts->mapped_bytes());
  region->pool_id_ = pool.identity();
  region->heap_begin_ = pool.heap_begin();
  region->reserved_bytes_.store(parts->mapped_bytes(), std::memory_order_release);
  const ObjectId root{pool.identity(), pool.root_offset()};
  region->live_ = std::move(parts);
  if (pool.root_size() < sizeof(RegionRoot)) return Status::Corruption(region->Name() + " has no root object" + restore);
  if (!region->IsValidObject(root, sizeof(RegionRoot)))
    return Status::Corruption(region->Name() + " has a damaged root pointer" + restore);
  region->root_ = reinterpret_cast<RegionRoot*>(region->live_->base() + root.offset);
  if (Status status = region->CheckIdentity(); !status.ok()) return status;
  if (Status status = region->CheckLiveSlots(); !status.ok()) return status;
  *result = std::move(region);
  return Status::OK();
}

Status Region::MapNewParts() {
  BRAIDDB_DCHECK(live_ != nullptr);
  Status status = live_->MapNewParts();
  // release: pairs with the acquire in reserved_bytes(); the parts are mapped.
  reserved_bytes_.store(live_->mapped_bytes(), std::memory_order_release);
  return status;
}

// A slot counts if its check matches id and size. An object without a check is being allocated or freed, or a crash has left it
// (region_root.cc, Metadata): the next open for writing completes it. The writer clears the check before it changes id and size,
// and stores it after them. So a check that does not match was read with words of another time, and the slot is read again.
Region::LiveSlot Region::ReadLiveSlot(uint32_t slot, ObjectId* id, uint64_t* bytes) const {
  BRAIDDB_DCHECK(live_ != nullptr && root_ != nullptr && slot < RegionRoot::kMetadataSlots);
  RegionRoot copy{};
  for (int tries = 0; tries < kSlotTries; ++tries) {
    // acquire: pairs with the writer's fence before the check; id and size are at least as new.
    const uint64_t check = LoadAcquire(&root_->metadata_check[slot]);
    if (check == 0) return LiveSlot::kEmpty;
    *id = copy.metadata[slot] = {LoadRelaxed(&root_->metadata[slot].pool), LoadRelaxed(&root_->metadata[slot].offset)};
    *bytes = copy.metadata_bytes[slot] = LoadRelaxed(&root_->metadata_bytes[slot]);
    if (check != MetadataCheck(copy, slot)) continue;
    if (id->pool != pool_id_ || id->offset % kObjectHeaderBytes != 0 || id->offset < heap_begin_ + kObjectHeaderBytes)
      return LiveSlot::kDamaged;
    return *bytes < reserved_bytes() && IsValidObject(*id, *bytes + kCacheLine) ? LiveSlot::kObject : LiveSlot::kNotMapped;
  }
  return LiveSlot::kDamaged;
}

// An object that lies behind the mapped parts is in a part that the region has grown by meanwhile.
Status Region::CheckLiveSlots() {
  for (uint32_t slot = 0; slot < RegionRoot::kMetadataSlots; ++slot) {
    ObjectId id;
    uint64_t bytes = 0;
    LiveSlot found = ReadLiveSlot(slot, &id, &bytes);
    if (found == LiveSlot::kNotMapped) {
      if (Status status = MapNewParts(); !status.ok()) return status;
      found = ReadLiveSlot(slot, &id, &bytes);
    }
    if (found == LiveSlot::kDamaged || found == LiveSlot::kNotMapped) {
      return Status::Corruption(Name() + " has a damaged pointer to metadata object " + std::to_string(slot) +
                                "; restore its files from a backup");
    }
  }
  return Status::OK();
}

void* Region::FindLiveMetadata(uint32_t slot, uint64_t* bytes) const {
  ObjectId id;
  uint64_t size = 0;
  if (ReadLiveSlot(slot, &id, &size) != LiveSlot::kObject) return nullptr;
  if (bytes != nullptr) *bytes = size;
  return base() + AlignToLine(id.offset);
}

}  // namespace braiddb
