#include "pmem/metadata_reader.h"

#include "pmem/layout.h"
#include "pmem/layout_check.h"
#include "pmem/pool_files.h"

namespace braiddb {

constexpr uint64_t kMaxMetadataBytes = 64ull << 20;

Status ReadMetadata(const RegionSetOptions& options, uint32_t region, MetadataSlot slot, MetadataCopy* copy) {
  const std::vector<std::string> directories = RegionDirectories(options, region + 1);
  if (region >= directories.size()) return Status::InvalidArgument("region_paths names too few directories");
  if (!RegionSet::Exists(options)) return Status::NotFound("no database in " + directories[0] + "; check the path");
  PoolFiles files(directories[region]);
  if (Status status = files.Open(); !status.ok()) return status;
  const RegionRoot& root = files.root();
  const auto index = static_cast<uint32_t>(slot);
  const ObjectId& id = root.metadata[index];
  copy->bytes = root.metadata_bytes[index];
  // Its owner allocates or frees it at this moment, or there is none.
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
