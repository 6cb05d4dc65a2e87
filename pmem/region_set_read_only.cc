#include "pmem/device_record.h"
#include "pmem/posix.h"
#include "pmem/region.h"
#include "pmem/region_image.h"
#include "pmem/region_set.h"

// The part of RegionSet that opens regions for reading only.

namespace braiddb {
namespace {

// Keeps the first damage that is reported of a region's files. An open for reading only refuses every damage, as Open does.
struct Damage {
  std::string what;
  RegionImage::Report Report() {
    return [this](const std::string& file, const std::string& found) {
      if (what.empty()) what = file + " " + found + "; restore it from a backup";
    };
  }
};

// Maps the files of one region. Corruption: a file is damaged.
Status MapRegion(const std::string& directory, std::unique_ptr<RegionImage>* image) {
  Damage damage;
  Status status = RegionImage::Map(directory, damage.Report(), image);
  if (status.ok() && !damage.what.empty()) return Status::Corruption(damage.what);
  return status;
}

// Corruption: flushed stores of the region's last session may be lost (device_record.h).
Status CheckDevices(const std::string& directory) {
  std::string what;
  Status status = RegionDevices(directory, nullptr).Examine(&what);
  return status.ok() && !what.empty() ? UnsafeShutdown(directory, what) : status;
}

// Sets *count to the number of regions in region 0's list, and checks the options against it.
Status FindCount(const RegionSetOptions& options, const PartList& list, uint32_t* count) {
  if (options.database_id != 0 && list.database_id != options.database_id) {
    return Status::InvalidArgument("region_paths names regions of another database than " + options.database_path +
                                   "; name the directories of this database, or none");
  }
  *count = list.region_count;
  if (*count == 0 || *count > kMaxRegions) return Status::Corruption("region 0 records an impossible number of regions");
  if (!options.region_nodes.empty() && options.region_nodes.size() != *count) {
    return Status::InvalidArgument("region_nodes names " + std::to_string(options.region_nodes.size()) +
                                   " NUMA nodes, but the database has " + std::to_string(*count) +
                                   " regions; name one for each, -1 to have it found, or none");
  }
  const size_t asked = options.region_paths.empty() ? options.regions : options.region_paths.size();
  if (asked == 0 || asked == *count) return Status::OK();
  return Status::InvalidArgument("the database has " + std::to_string(*count) + " regions, not " + std::to_string(asked) +
                                 "; set regions to that or to 0, and region_paths to as many directories");
}

// Corruption: the image is of another database or another region than its directory is for.
Status CheckPlace(const RegionImage& image, const PartList& first, uint32_t region) {
  const PartList& list = image.list();
  if (list.database_id == first.database_id && list.region_count == first.region_count && list.region == region)
    return Status::OK();
  return Status::Corruption(image.directory() + " holds a region of another database, or another one than " +
                            std::to_string(region) + "; put each database's regions back in their place");
}

}  // namespace

// STEPS  1 map the first region; its list tells the number of regions  2 map the others  3 check that they belong together, and
//        that no flushed store may be lost  4 open each image. The locks of the images exclude processes that write.
Status RegionSet::OpenReadOnly(const RegionSetOptions& options, std::unique_ptr<RegionSet>* result) {
  const std::vector<std::string> directories = RegionDirectories(options, kMaxRegions);
  if (directories.size() > kMaxRegions) return Status::InvalidArgument("more than 16 region_paths; name one for each region");
  if (!RegionSet::Exists(options)) return Status::NotFound("no database in " + directories[0] + "; check the path");
  std::vector<std::unique_ptr<RegionImage>> images;
  uint32_t count = 1;
  for (uint32_t i = 0; i < count; ++i) {
    std::unique_ptr<RegionImage> image;
    Status status = MapRegion(directories[i], &image);
    if (status.ok() && !options.region_paths.empty()) status = RegionFiles(directories[i]).CheckDevice(options.region_paths[i]);
    if (status.IsNotFound()) {
      return Status::Corruption("region " + std::to_string(i) + " is missing: no files in " + directories[i] +
                                "; put it back, or restore it from a backup");
    }
    if (status.ok() && i == 0) status = FindCount(options, image->list(), &count);
    if (status.ok()) status = CheckPlace(*image, i == 0 ? image->list() : images[0]->list(), i);
    if (status.ok()) status = CheckDevices(image->directory());
    if (!status.ok()) return status;
    images.push_back(std::move(image));
  }
  const uint64_t database_id = images[0]->list().database_id;
  std::unique_ptr<RegionSet> set(new RegionSet());
  // Stores stay in this process, so no flush is needed: kEadr. With kEmulated, read latencies are injected.
  const bool emulates = options.persist_mode == PersistMode::kEmulated;
  set->persistence_ = std::make_unique<Persistence>(emulates ? PersistMode::kEmulated : PersistMode::kEadr, options.emulation);
  for (uint32_t i = 0; i < count; ++i) {
    const RegionConfig config{.database_id = database_id,
                              .index = i,
                              .count = count,
                              .max_bytes = 0,
                              .persistence = set->persistence_.get(),
                              .info_log = options.info_log};
    auto files = std::make_shared<RegionFiles>(images[i]->directory());
    std::unique_ptr<Region> region;
    if (Status status = Region::OpenReadOnly(std::move(images[i]), std::move(files), config, &region); !status.ok())
      return status;
    set->impl_->regions.push_back(std::move(region));
  }
  set->OnRegionsReady(options, false);
  *result = std::move(set);
  return Status::OK();
}

}  // namespace braiddb
