#include "pmem/dax_device.h"
#include "pmem/device_record.h"
#include "pmem/live_parts.h"
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

// Corruption: `list`, of `directory`, is of another database or another region than the directory is for.
Status CheckPlace(const std::string& directory, const PartList& list, const PartList& first, uint32_t region) {
  if (list.database_id == first.database_id && list.region_count == first.region_count && list.region == region)
    return Status::OK();
  return Status::Corruption(directory + " holds a region of another database, or another one than " + std::to_string(region) +
                            "; put each database's regions back in their place");
}

Status MissingRegion(uint32_t region, const std::string& directory) {
  return Status::Corruption("region " + std::to_string(region) + " is missing: no files in " + directory +
                            "; put it back, or restore it from a backup");
}

// A reader flushes nothing: kEadr. With kEmulated, read latencies are injected.
std::unique_ptr<Persistence> PersistenceOfReader(const RegionSetOptions& options) {
  const bool emulates = options.persist_mode == PersistMode::kEmulated;
  return std::make_unique<Persistence>(emulates ? PersistMode::kEmulated : PersistMode::kEadr, options.emulation);
}

// Reads the part list of one region. Corruption: there is no region.
Status OpenParts(const RegionSetOptions& options, uint32_t region, const std::string& directory,
                 std::unique_ptr<LiveParts>* parts) {
  bool found = false;
  Status status = RegionFiles(directory).FindFiles(&found);
  if (!found && (status.ok() || status.IsNotFound())) return MissingRegion(region, directory);
  std::string canonical;
  if (status.ok()) status = posix::Canonical(directory, &canonical);
  if (status.ok() && !options.region_paths.empty()) status = RegionFiles(canonical).CheckDevice(options.region_paths[region]);
  if (!status.ok()) return status;
  *parts = std::make_unique<LiveParts>(canonical);
  return (*parts)->Open();
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
    if (status.IsNotFound()) return MissingRegion(i, directories[i]);
    if (status.ok() && i == 0) status = FindCount(options, image->list(), &count);
    if (status.ok()) status = CheckPlace(image->directory(), image->list(), i == 0 ? image->list() : images[0]->list(), i);
    if (status.ok()) status = CheckDevices(image->directory());
    if (!status.ok()) return status;
    images.push_back(std::move(image));
  }
  const uint64_t database_id = images[0]->list().database_id;
  std::unique_ptr<RegionSet> set(new RegionSet());
  set->persistence_ = PersistenceOfReader(options);
  for (uint32_t i = 0; i < count; ++i) {
    const RegionConfig config{.database_id = database_id,
                              .index = i,
                              .count = count,
                              .max_bytes = 0,
                              .persistence = set->persistence_.get(),
                              .info_log = options.info_log,
                              .on_growth = nullptr};
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

// STEPS  1 read the part list of each region; region 0's tells their number  2 check that they belong together, and that no
//        flushed store may be lost  3 map each region. Nothing is locked: a writer may open, grow and close meanwhile.
Status RegionSet::OpenLive(const RegionSetOptions& options, std::unique_ptr<RegionSet>* result) {
  const std::vector<std::string> directories = RegionDirectories(options, kMaxRegions);
  if (directories.size() > kMaxRegions) return Status::InvalidArgument("more than 16 region_paths; name one for each region");
  if (!RegionSet::Exists(options)) return Status::NotFound("no database in " + directories[0] + "; check the path");
  std::vector<std::unique_ptr<LiveParts>> all;
  uint32_t count = 1;
  for (uint32_t i = 0; i < count; ++i) {
    if (i == directories.size()) return MissingRegion(i, "region_paths");
    std::unique_ptr<LiveParts> parts;
    Status status = OpenParts(options, i, directories[i], &parts);
    if (status.ok() && i == 0) status = FindCount(options, parts->list(), &count);
    if (status.ok()) status = CheckPlace(parts->directory(), parts->list(), i == 0 ? parts->list() : all[0]->list(), i);
    if (status.ok()) status = CheckDevices(parts->directory());
    if (!status.ok()) return status;
    all.push_back(std::move(parts));
  }
  const uint64_t database_id = all[0]->list().database_id;
  std::unique_ptr<RegionSet> set(new RegionSet());
  set->is_live_ = true;
  set->persistence_ = PersistenceOfReader(options);
  for (uint32_t i = 0; i < count; ++i) {
    const RegionConfig config{.database_id = database_id,
                              .index = i,
                              .count = count,
                              .max_bytes = options.max_region_size,
                              .persistence = set->persistence_.get(),
                              .info_log = options.info_log,
                              .on_growth = nullptr};
    auto files = std::make_shared<RegionFiles>(all[i]->directory());
    if (IsCharacterDevice(files->part_path(0))) files->SetDevice(files->part_path(0));
    std::unique_ptr<Region> region;
    if (Status status = Region::OpenLive(std::move(all[i]), std::move(files), config, &region); !status.ok()) return status;
    set->impl_->regions.push_back(std::move(region));
  }
  set->OnRegionsReady(options, false);
  *result = std::move(set);
  return Status::OK();
}

// A region that cannot follow does not keep the others from it.
Status RegionSet::MapNewParts() {
  Status first;
  for (uint32_t i = 0; is_live_ && i < count_; ++i) {
    Status status = impl_->region(i)->MapNewParts();
    if (first.ok()) first = std::move(status);
  }
  return first;
}

Status RegionSet::CheckInPlace() const {
  for (uint32_t i = 0; is_live_ && i < count_; ++i) {
    if (Status status = impl_->region(i)->live_parts()->CheckInPlace(); !status.ok()) return status;
  }
  return Status::OK();
}

WriterRuns RegionSet::ReadWriterRuns() const {
  WriterRuns runs;
  for (uint32_t i = 0; i < count_; ++i) runs.ids[i] = LoadAcquire(RunId(i));
  return runs;
}

}  // namespace braiddb
