#include "pmem/pool_format.h"
#include "pmem/region.h"

// The part of Region that opens a pool for reading only: it checks the image as PMDK would check the pool.

namespace braiddb {

// STEPS  1 check header, heap header and lanes  2 find the root by the pool's descriptor  3 complete ids of metadata slots that
//        a crash has left with one word  4 check the root  5 finish metadata slots. Stores of 3 and 5 stay in the private
//        image.
Status Region::OpenReadOnly(std::unique_ptr<RegionImage> image, std::shared_ptr<RegionFiles> files, const RegionConfig& config,
                            std::unique_ptr<Region>* result) {
  std::unique_ptr<Region> region(new Region(std::move(files), config));
  const std::string restore = "; restore the region's files from a backup";
  const PoolView pool(image->base(), image->bytes());
  const char* damage = pool.FindDamage();
  if (damage == nullptr) damage = pool.FindLaneDamage();
  if (damage != nullptr) return Status::Corruption(region->Name() + ": " + damage + restore);
  region->pool_id_ = pool.identity();
  region->heap_begin_ = pool.heap_begin();
  region->redo_pending_ = pool.RedoPending();
  region->max_bytes_ = image->bytes();
  region->reserved_bytes_.store(image->bytes(), std::memory_order_release);
  const ObjectId root{pool.identity(), pool.root_offset()};
  if (pool.root_size() < sizeof(RegionRoot)) return Status::Corruption(region->Name() + " has no root object" + restore);
  if (!region->IsValidObject(root, sizeof(RegionRoot)))
    return Status::Corruption(region->Name() + " has a damaged root pointer" + restore);
  region->root_ = reinterpret_cast<RegionRoot*>(image->base() + root.offset);
  region->image_ = std::move(image);
  for (ObjectId& id : region->root_->metadata) region->CompleteId(&id);
  if (Status status = region->CheckRoot(); !status.ok()) return status;
  if (Status status = region->FinishMetadata(); !status.ok()) return status;
  *result = std::move(region);
  return Status::OK();
}

}  // namespace braiddb
