#include "pmem/metadata_reader.h"

#include "pmem/layout.h"
#include "pmem/layout_check.h"
#include "pmem/pool_files.h"

namespace braiddb {

constexpr uint64_t kMaxMetadataBytes = 64ull << 20;  // a larger size in the root is damage

// STEPS  1 find the region's directory  2 read part list and root  3 check the slot  4 copy the object. The root is read once:
//        an object that moves to another slot meanwhile is found when the caller reads again.
Status ReadMetadata(const RegionSetOptions& options, uint32_t region, MetadataSlot slot, MetadataCopy* copy) {
  const std::vector<std::string> directories = RegionDirectories(options, region + 1);
  if (region >= directories.size())
    return Status::InvalidArgument("region_paths names too few directories; name one for each region");
  if (!RegionSet::Exists(options)) return Status::NotFound("no database in " + directories[0] + "; check the path");
  PoolFiles files(directories[region]);
  if (Status status = files.Open(); !status.ok()) return status;
  const RegionRoot& root = files.root();
  const auto index = static_cast<uint32_t>(slot);
  const ObjectId& id = root.metadata[index];
  copy->bytes = root.metadata_bytes[index];
  // The slot is empty, or its owner allocates or frees the object at this moment (region_root.cc: P2 to P3, R1 to R2).
  if (id.offset == 0 || root.metadata_check[index] == 0) {
    *copy = MetadataCopy();
    copy->regions = root.region_count;
    return Status::OK();
  }
  if (id.pool != files.identity() || root.metadata_check[index] != MetadataCheck(root, index) ||
      copy->bytes > kMaxMetadataBytes) {
    return files.Damaged("a metadata object is missing, or the pointer to it is damaged");
  }
  copy->words.clear();
  copy->regions = root.region_count;
  return files.Read(AlignToLine(id.offset), copy->bytes, &copy->words, 0);
}

}  // namespace braiddb
