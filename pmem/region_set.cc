#include "pmem/region_set.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "pmem/database_file.h"
#include "pmem/dax_device.h"
#include "pmem/persist_mode.h"
#include "pmem/pool_format.h"
#include "pmem/posix.h"
#include "pmem/region.h"
#include "pmem/region_files.h"
#include "util/check.h"
#include "util/numa_topology.h"
#include "util/thread_index.h"

namespace braiddb {
namespace {

using FilesList = std::vector<std::shared_ptr<RegionFiles>>;

Status CheckOptions(const RegionSetOptions& options) {
  if (options.regions > kMaxRegions || options.region_paths.size() > kMaxRegions) {
    return Status::InvalidArgument("regions must be at most " + std::to_string(kMaxRegions));
  }
  if (!options.region_paths.empty() && options.regions != 0 && options.regions != options.region_paths.size()) {
    return Status::InvalidArgument("region_paths names " + std::to_string(options.region_paths.size()) +
                                   " directories, regions is " + std::to_string(options.regions) +
                                   "; make them equal, or leave one of them empty");
  }
  if (options.max_region_size != 0 && options.max_region_size < kMinRegionSize) {
    return Status::InvalidArgument("max_region_size is " + std::to_string(options.max_region_size) + " bytes; at least " +
                                   std::to_string(kMinRegionSize) + " are needed, or 0 for the capacity of the file system");
  }
  return Status::OK();
}

// Resolves the path of an existing directory, and locks the directory.
Status LockDirectory(const std::string& directory, std::shared_ptr<RegionFiles>* files) {
  std::string canonical;
  if (Status status = posix::Canonical(directory, &canonical); !status.ok()) return status;
  *files = std::make_shared<RegionFiles>(canonical);
  return (*files)->Lock();
}

// Returns the device that region_paths names for the region; empty if it names a directory or nothing.
std::string DeviceOf(const RegionSetOptions& options, uint32_t region) {
  return region < options.region_paths.size() && IsCharacterDevice(options.region_paths[region]) ? options.region_paths[region]
                                                                                                 : std::string();
}

// Resolves kAuto to the mode that is safe for all regions. Different media have only kPage in common. Other requests must be
// safe for each region.
Status ResolveMode(const std::vector<std::string>& probes, PersistMode requested, PersistMode* mode) {
  for (size_t i = 0; i < probes.size(); ++i) {
    PersistMode resolved = requested;
    if (Status status = ResolvePersistMode(probes[i], requested, &resolved); !status.ok()) return status;
    *mode = i == 0 || resolved == *mode ? resolved : PersistMode::kPage;
  }
  for (const std::string& probe : probes) {
    if (Status status = ResolvePersistMode(probe, *mode, mode); !status.ok()) return status;
  }
  return Status::OK();
}

// Checks the number of region_nodes and their values. `count`: number of regions of the database.
Status CheckNodes(const RegionSetOptions& options, uint32_t count, const NumaTopology& topology) {
  if (!options.region_nodes.empty() && options.region_nodes.size() != count) {
    return Status::InvalidArgument("region_nodes names " + std::to_string(options.region_nodes.size()) +
                                   " NUMA nodes, but the database has " + std::to_string(count) +
                                   " regions; name one for each, -1 to have it found, or none");
  }
  return CheckRegionNodes(options.region_nodes, topology);
}

NumaTopology TopologyOf(const RegionSetOptions& options) {
  return options.system_root.empty() ? NumaTopology::System() : NumaTopology::Read(options.system_root);
}

RegionConfig ConfigOf(const RegionSetOptions& options, uint64_t database_id, uint32_t index, uint32_t count,
                      Persistence* persistence) {
  return RegionConfig{.database_id = database_id,
                      .index = index,
                      .count = count,
                      .max_bytes = options.max_region_size,
                      .persistence = persistence,
                      .info_log = options.info_log,
                      .on_growth = options.on_growth};
}

// ---- Creation

// GOAL          All regions of a new database, or no file.
// STEPS         1 lock the directories  2 write the mark CREATING, with the identity of the database, into each  3 make the
//               pools 4 sync the created directories  5 remove the marks, region 0's first
// COMMIT POINT  The removal of region 0's mark.
// CRASH         before it: Exists returns false, and the next Create removes the marked files and starts over. After it: Open
//               removes the other marks. [CC-30]
class Creation {
 public:
  explicit Creation(const RegionSetOptions& options)
      : options_(options),
        database_id_(options.database_id != 0 ? options.database_id : RegionSet::NewDatabaseId()),
        database_path_(AbsolutePath(options.database_path)) {}

  // Step 1. InvalidArgument: a directory is named twice, or has files of another database. Busy: another process has one.
  Status LockDirectories(uint32_t count);
  // Step 2, and the links to devices.
  Status Mark();
  // Resolves persist_mode. The marks serve as probes, since the parts do not exist yet.
  Status ChooseMode(PersistMode* mode) const;
  // Step 3.
  Status MakeRegions(Persistence* persistence, std::vector<std::unique_ptr<Region>>* regions);
  // Steps 4 and 5.
  Status Commit();
  // After a failure: removes the files that Mark and later steps have made, then the marks, region 0's last, then the
  // directories.
  void Undo();

 private:
  const RegionSetOptions& options_;
  const uint64_t database_id_;
  const uint64_t secret_ = RegionSet::NewDatabaseId();
  const std::string database_path_;
  std::vector<std::string> made_directories_;
  FilesList locked_;
  size_t marked_ = 0;  // the first marked_ elements of locked_ have files of this creation only
};

std::string Hexadecimal(uint64_t id) {
  char text[20];
  std::snprintf(text, sizeof text, "%016" PRIx64, id);
  return text;
}

// Returns the InvalidArgument for a directory with files of another owner.
Status Taken(const std::string& directory, const RegionIdentity& identity) {
  switch (identity.kind) {
    case RegionIdentity::Kind::kCreating:
      return Status::InvalidArgument(directory + " holds an unfinished creation of the database " + identity.database_path +
                                     "; finish that with DB::Open, remove it with DB::Destroy, or choose another directory");
    case RegionIdentity::Kind::kRegion:
      return Status::InvalidArgument(directory + " holds a region already, of the database with the identity " +
                                     Hexadecimal(identity.database_id) +
                                     "; open that database, destroy it, or choose another directory");
    default:
      return Status::InvalidArgument(directory +
                                     " holds files with the names of a region's, and nothing says whose they are; choose another "
                                     "directory, or move these files");
  }
}

Status Creation::LockDirectories(uint32_t count) {
  for (const std::string& directory : RegionDirectories(options_, count)) {
    std::shared_ptr<RegionFiles> files;
    if (Status status = posix::MakeDirectories(directory, &made_directories_); !status.ok()) return status;
    Status status = LockDirectory(directory, &files);
    for (const auto& other : locked_) {
      if (files && files->directory() == other->directory()) {
        return Status::InvalidArgument("region_paths names " + directory + " twice; give each region a directory of its own");
      }
    }
    if (!status.ok()) return status;
    const std::string device = DeviceOf(options_, static_cast<uint32_t>(locked_.size()));
    for (const auto& other : locked_) {
      if (!device.empty() && IsSameDevice(device, other->device())) {
        return Status::InvalidArgument("region_paths names " + device + " twice; give each region a device of its own");
      }
    }
    files->SetDevice(device);
    RegionIdentity found;
    if (status = files->ReadIdentity(&found); !status.ok()) return status;
    const bool is_own = found.kind == RegionIdentity::Kind::kCreating && found.database_path == database_path_;
    if (found.kind != RegionIdentity::Kind::kNone && !is_own) return Taken(directory, found);
    locked_.push_back(std::move(files));
  }
  return Status::OK();
}

Status Creation::Mark() {
  BRAIDDB_DCHECK(marked_ == 0 && !locked_.empty());
  // Region 0 is marked first, and its mark is removed last in Undo. So after a crash the mark tells that the files are those of
  // an unfinished creation. If a directory has a mark already, its other files belong to an earlier creation of this database.
  for (const auto& files : locked_) {
    if (files->CreationUnfinished()) {
      if (Status status = files->RemoveFiles(); !status.ok()) return status;
    }
    ++marked_;
    if (Status status = files->WriteCreatingMark(database_id_, database_path_); !status.ok()) return status;
  }
  for (const auto& files : locked_) {
    if (files->device().empty()) continue;
    if (Status status = files->CheckDeviceIsFree(); !status.ok()) return status;
    if (Status status = files->LinkDevice(); !status.ok()) return status;
  }
  return Status::OK();
}

Status Creation::ChooseMode(PersistMode* mode) const {
  std::vector<std::string> probes;
  for (const auto& files : locked_) probes.push_back(files->device().empty() ? files->creating_path() : files->device());
  return ResolveMode(probes, options_.persist_mode, mode);
}

Status Creation::MakeRegions(Persistence* persistence, std::vector<std::unique_ptr<Region>>* regions) {
  const uint32_t count = static_cast<uint32_t>(locked_.size());
  for (uint32_t i = 0; i < count; ++i) {
    std::unique_ptr<Region> region;
    RegionConfig config = ConfigOf(options_, database_id_, i, count, persistence);
    config.secret = secret_;
    Status status = Region::Create(locked_[i], config, &region);
    if (!status.ok()) return status;
    regions->push_back(std::move(region));
  }
  return Status::OK();
}

Status Creation::Commit() {
  BRAIDDB_DCHECK(marked_ == locked_.size());
  for (const std::string& directory : made_directories_) {
    const size_t slash = directory.rfind('/');
    const std::string parent = slash == std::string::npos ? "." : slash == 0 ? "/" : directory.substr(0, slash);
    if (Status status = posix::SyncDirectory(parent); !status.ok()) return status;
  }
  // ORDER: every region and every directory durable before region 0's mark goes. [CC-30]
  for (const auto& files : locked_) {
    if (Status status = files->RemoveCreatingMark(); !status.ok()) return status;
  }
  return Status::OK();
}

void Creation::Undo() {
  for (size_t i = 0; i < marked_; ++i) (void)locked_[i]->RemoveFiles();
  for (size_t i = marked_; i > 0; --i) (void)locked_[i - 1]->RemoveCreatingMark();
  for (auto it = made_directories_.rbegin(); it != made_directories_.rend(); ++it) rmdir(it->c_str());
}

// ---- Opening

// Locks region 0, and reads the number of regions from its part list.
Status OpenFirst(const RegionSetOptions& options, FilesList* files, uint32_t* count) {
  const std::vector<std::string> directories = RegionDirectories(options, kMaxRegions);
  bool found = false;
  Status status = RegionFiles(directories[0]).FindFiles(&found);
  if (!status.ok() && !status.IsNotFound()) return status;
  if (!found) {
    if (options.database_id != 0 || RegionSet::Exists(options)) {
      return Status::Corruption("region 0 is missing: no files in " + directories[0] +
                                "; mount its file system, name its directory in region_paths, or restore it from a backup");
    }
    return Status::NotFound("no database in " + directories[0] + "; check the path, or create it");
  }
  std::shared_ptr<RegionFiles> first;
  if (status = LockDirectory(directories[0], &first); !status.ok()) return status;
  if (first->CreationUnfinished()) {
    return Status::NotFound("the creation of the database in " + directories[0] + " was interrupted; create it again");
  }
  if (status = first->CheckDevice(DeviceOf(options, 0)); !status.ok()) return status;
  if (status = first->ReadList(); !status.ok()) return status;
  if (options.database_id != 0 && first->list().database_id != options.database_id) {
    return Status::InvalidArgument(directories[0] + " holds a region of the database with the identity " +
                                   Hexadecimal(first->list().database_id) + ", but " + options.database_path + " has " +
                                   Hexadecimal(options.database_id) +
                                   "; name the directories of this database in region_paths, or none");
  }
  *count = first->list().region_count;
  const size_t asked = options.region_paths.empty() ? options.regions : options.region_paths.size();
  if (*count == 0 || *count > kMaxRegions) return Status::Corruption("region 0 records an impossible number of regions");
  if (asked != 0 && asked != *count) {
    return Status::InvalidArgument("the database has " + std::to_string(*count) + " regions, not " + std::to_string(asked) +
                                   "; set regions to that or to 0, and region_paths to as many directories");
  }
  if (status = CheckNodes(options, *count, TopologyOf(options)); !status.ok()) return status;
  files->push_back(std::move(first));
  return Status::OK();
}

// Locks the directories of the other regions, and reads their part lists.
Status LockOthers(const RegionSetOptions& options, uint32_t count, FilesList* files) {
  const std::vector<std::string> directories = RegionDirectories(options, count);
  for (uint32_t i = 1; i < count; ++i) {
    bool found = false;
    Status status = RegionFiles(directories[i]).FindFiles(&found);
    if (!status.ok() && !status.IsNotFound()) return status;
    if (!found) {
      return Status::Corruption("region " + std::to_string(i) + " is missing: no files in " + directories[i] +
                                "; put it back, or restore it from a backup");
    }
    std::shared_ptr<RegionFiles> next;
    if (status = LockDirectory(directories[i], &next); !status.ok()) return status;
    if (status = next->CheckDevice(DeviceOf(options, i)); !status.ok()) return status;
    if (status = next->ReadList(); !status.ok()) return status;
    files->push_back(std::move(next));
  }
  return Status::OK();
}

// Checks that the regions belong to one database and are in order, and then the parts of each.
Status CheckTogether(const FilesList& files) {
  for (uint32_t i = 0; i < files.size(); ++i) {
    const PartList& list = files[i]->list();
    if (list.database_id != files[0]->list().database_id || list.region_count != files.size()) {
      return Status::Corruption(files[i]->directory() + " holds a region of another database than " + files[0]->directory() +
                                "; put each database's regions back in their place");
    }
    if (list.region != i) {
      return Status::Corruption(files[i]->directory() + " holds region " + std::to_string(list.region) + " where region " +
                                std::to_string(i) + " is expected; put the regions in their order");
    }
  }
  for (const auto& region : files) {
    if (Status status = region->CheckParts(); !status.ok()) return status;
  }
  return Status::OK();
}

// Returns the directories of regions that the database's own file names; none if all lie in the database's directory, or if
// there is no readable file. An open of the database reports a damaged file.
std::vector<std::string> NotedDirectories(const RegionSetOptions& options) {
  DatabaseFile::State state = DatabaseFile::State::kNone;
  DatabaseFile noted;
  if (!DatabaseFile::Read(options.database_path, &state, &noted).ok() || state == DatabaseFile::State::kNone) return {};
  const std::string inside = AbsolutePath(options.database_path) + "/";
  const auto is_inside = [&](const std::string& region) { return region.starts_with(inside); };
  if (std::all_of(noted.regions.begin(), noted.regions.end(), is_inside)) return {};
  return noted.regions;
}

}  // namespace

std::vector<std::string> RegionDirectories(const RegionSetOptions& options, uint32_t count) {
  std::vector<std::string> directories = options.region_paths.empty() ? NotedDirectories(options) : options.region_paths;
  const bool is_default = directories.empty();
  if (is_default) directories.resize(count);
  for (uint32_t i = 0; i < directories.size(); ++i) {
    if (is_default || IsCharacterDevice(directories[i])) {
      directories[i] = posix::JoinPath(options.database_path, "region-" + std::to_string(i));
    }
  }
  return directories;
}

uint64_t RegionSet::NewDatabaseId() {
  uint64_t id = 0;
  while (id == 0) {
    if (getrandom(&id, sizeof(id), 0) != sizeof(id)) id = 0;
  }
  return id;
}

uint32_t RegionSet::CountToCreate(const RegionSetOptions& options) {
  const uint32_t wanted = options.region_paths.empty() ? options.regions : static_cast<uint32_t>(options.region_paths.size());
  return wanted != 0 ? wanted : std::min(NumaNodeCount(), kMaxRegions);
}

RegionSet::RegionSet() : impl_(std::make_unique<Impl>()) {}
RegionSet::~RegionSet() = default;

void RegionSet::OnRegionsReady(const RegionSetOptions& options, bool is_new) {
  BRAIDDB_DCHECK(count_ == 0 && !impl_->regions.empty() && impl_->regions.size() <= kMaxRegions);
  count_ = static_cast<uint32_t>(impl_->regions.size());
  for (uint32_t i = 0; i < count_; ++i) {
    bases_[i] = impl_->region(i)->base();
    ends_[i] = impl_->region(i)->reserved_bytes_word();
  }
  FindNodes(options, is_new);
  if (options.on_mapped) options.on_mapped(this);
}

// Memory of a file on tmpfs lies on the node of the thread that first touched it, unless a policy names a node. A policy that
// BindToNumaNode sets stays with the file until the file system is unmounted. A file that was copied to tmpfs has no policy, so
// its node is found by asking the kernel for the node of its memory.
void RegionSet::FindNodes(const RegionSetOptions& options, bool is_new) {
  const NumaTopology topology = TopologyOf(options);
  std::vector<std::string> directories;
  for (uint32_t i = 0; i < count_; ++i) directories.push_back(impl_->region(i)->files()->directory());
  std::vector<RegionPlace> places = FindRegionPlaces(directories, options.region_nodes, options.system_root);
  for (uint32_t i = 0; i < count_ && topology.system_nodes().size() > 1; ++i) {
    RegionPlace& place = places[i];
    const bool is_chosen_by_mount = place.node != kUnknownNumaNode && !place.home_is_given;
    if (place.device.kind != DeviceKind::kMemory || is_chosen_by_mount) continue;
    Region* const region = impl_->region(i);
    place.node = place.home;
    place.from = "region_nodes";
    if (!place.home_is_given) {
      // A read of a hole would give it a block, so only the first page of a live region is read.
      const uint64_t bytes = region->is_live() ? kPoolHeaderBytes : region->reserved_bytes();
      place.node = is_new ? kUnknownNumaNode : FindNumaNodeOfMapping(bases_[i], bytes);
      place.from = "its memory";
      if (place.node == kUnknownNumaNode) {
        place.node = topology.SystemNode(i % topology.node_count());
        place.from = "turns";
      }
      place.home = place.node;
    }
    if (region->pool() != nullptr) region->PutOnNode(place.node, is_new);
  }
  nodes_ = RegionNodes(topology, std::move(places));
  std::istringstream lines(nodes_.ToString());
  for (std::string line; options.info_log && std::getline(lines, line);) options.info_log(line);
}

// STEPS  as of Creation. The pools are mapped before the first root is stored, so on_mapped can install an observer for all
//        stores.
Status RegionSet::Create(const RegionSetOptions& options, std::unique_ptr<RegionSet>* result) {
  if (Status status = CheckOptions(options); !status.ok()) return status;
  const uint32_t count = CountToCreate(options);

  if (Status status = CheckNodes(options, count, TopologyOf(options)); !status.ok()) return status;
  std::unique_ptr<RegionSet> set(new RegionSet());
  PersistMode mode = options.persist_mode;
  Creation creation(options);
  Status status = creation.LockDirectories(count);
  if (status.ok()) status = creation.Mark();
  if (status.ok()) status = creation.ChooseMode(&mode);
  if (status.ok()) {
    set->persistence_ = std::make_unique<Persistence>(mode, options.emulation);
    if (options.count_writes) set->persistence_->CountWrites();
    status = creation.MakeRegions(set->persistence_.get(), &set->impl_->regions);
  }
  if (status.ok()) set->OnRegionsReady(options, true);
  for (uint32_t i = 0; status.ok() && i < set->count(); ++i) status = set->impl_->region(i)->InitializeRoot();
  if (status.ok()) status = creation.Commit();
  if (!status.ok()) {
    set.reset();
    creation.Undo();
    return status;
  }
  *result = std::move(set);
  return Status::OK();
}

// STEPS  1 lock region 0, read the number of regions  2 lock the others  3 check lists and parts together  4 resolve the
//        persist mode  5 open each pool, and remove marks that a crash has left in regions other than 0  6 find NUMA nodes.
// CRASH  Each step can be repeated: 3 finishes growth (region_files.h), 5 finishes allocations and marks.
Status RegionSet::Open(const RegionSetOptions& options, std::unique_ptr<RegionSet>* result) {
  if (Status status = CheckOptions(options); !status.ok()) return status;
  FilesList files;
  uint32_t count = 0;
  if (Status status = OpenFirst(options, &files, &count); !status.ok()) return status;
  if (Status status = LockOthers(options, count, &files); !status.ok()) return status;
  if (Status status = CheckTogether(files); !status.ok()) return status;

  std::vector<std::string> probes;
  for (const auto& region : files) probes.push_back(region->part_path(0));
  PersistMode mode = options.persist_mode;
  if (Status status = ResolveMode(probes, options.persist_mode, &mode); !status.ok()) return status;

  std::unique_ptr<RegionSet> set(new RegionSet());
  set->persistence_ = std::make_unique<Persistence>(mode, options.emulation);
  if (options.count_writes) set->persistence_->CountWrites();
  for (uint32_t i = 0; i < count; ++i) {
    const RegionConfig config = ConfigOf(options, files[i]->list().database_id, i, count, set->persistence_.get());
    std::unique_ptr<Region> region;
    if (Status status = Region::Open(files[i], config, &region); !status.ok()) return status;
    set->impl_->regions.push_back(std::move(region));
    if (files[i]->CreationUnfinished()) {  // region 0 has no mark, so the creation of all regions is committed
      if (Status status = files[i]->RemoveCreatingMark(); !status.ok()) return status;
    }
  }
  set->OnRegionsReady(options, false);
  *result = std::move(set);
  return Status::OK();
}

bool RegionSet::Exists(const RegionSetOptions& options) {
  const std::vector<std::string> directories = RegionDirectories(options, kMaxRegions);
  if (RegionFiles(directories[0]).CreationUnfinished()) return false;
  for (const std::string& directory : directories) {
    bool found = false;
    const Status status = RegionFiles(directory).FindFiles(&found);
    // A directory that cannot be read counts, so that Open says why.
    if (found || (!status.ok() && !status.IsNotFound())) return true;
  }
  return false;
}

Status RegionSet::FindDatabaseId(const RegionSetOptions& options, uint64_t* database_id) {
  *database_id = 0;
  for (const std::string& directory : RegionDirectories(options, kMaxRegions)) {
    RegionIdentity found;
    if (Status status = RegionFiles(directory).ReadIdentity(&found); !status.ok()) return status;
    if (*database_id == 0) *database_id = found.database_id;
  }
  return Status::OK();
}

namespace {

// Removes a directory without files of regions. In the database's own directory, such a directory may have the temporary file of
// a mark. If another database is creating a region there, it has the lock.
Status RemoveEmpty(const std::string& directory, const std::string& inside, uint64_t database_id) {
  std::shared_ptr<RegionFiles> files;
  if (AbsolutePath(directory).starts_with(inside)) {
    if (!LockDirectory(directory, &files).ok()) return Status::OK();
    if (Status status = files->RemoveUnfinishedMark(database_id); !status.ok()) return status;
  }
  rmdir(directory.c_str());
  return Status::OK();
}

}  // namespace

// STEPS  1 lock the directories with files of this database; refuse or skip others  2 call `begin`  3 remove empty directories
//        that a crash has left, and the temporary files of their marks  4 remove the files, region 0's last
// CRASH  Each directory keeps PARTS or its mark until its other files are removed (region_files.h), so a repetition continues.
Status RegionSet::Destroy(const RegionSetOptions& options, Others others, const std::function<Status()>& begin) {
  uint64_t database_id = options.database_id;
  if (database_id == 0) {
    if (Status status = FindDatabaseId(options, &database_id); !status.ok()) return status;
  }
  const std::string inside = AbsolutePath(options.database_path) + "/";
  FilesList locked;
  std::vector<std::string> directories;  // paths of `locked` as they were named
  std::vector<std::string> empty;        // directories without files, which a crash in a creation or a removal has left
  std::set<std::string> seen;
  for (const std::string& directory : RegionDirectories(options, kMaxRegions)) {
    if (!seen.insert(AbsolutePath(directory)).second) continue;
    RegionIdentity found;
    if (Status status = RegionFiles(directory).ReadIdentity(&found); !status.ok()) return status;
    if (found.kind == RegionIdentity::Kind::kNone) {
      const bool may_go = others == Others::kRefuse || AbsolutePath(directory).starts_with(inside);
      if (may_go && !options.region_paths.empty() && !posix::IsSymbolicLink(directory)) empty.push_back(directory);
      continue;
    }
    // Files without an identity belong to this database if it is known to exist and they lie in its own directory.
    const bool is_own = found.kind == RegionIdentity::Kind::kUnknown
                            ? database_id != 0 && AbsolutePath(directory).starts_with(inside)
                            : found.database_id == database_id;
    if (!is_own && others == Others::kRefuse) return Taken(directory, found);
    if (!is_own) continue;
    std::shared_ptr<RegionFiles> files;
    if (Status status = LockDirectory(directory, &files); !status.ok()) return status;
    RegionIdentity again;
    if (Status status = files->ReadIdentity(&again); !status.ok()) return status;
    if (again.database_id != found.database_id) return Status::Busy(directory + " was changed by another process; try again");
    locked.push_back(std::move(files));
    directories.push_back(directory);
  }
  if (begin) {
    if (Status status = begin(); !status.ok()) return status;
  }
  for (const std::string& directory : empty) {
    if (Status status = RemoveEmpty(directory, inside, database_id); !status.ok()) return status;
  }
  // Region 0 last: until then Exists returns true, and a repetition finds the database.
  for (size_t i = locked.size(); i > 0; --i) {
    if (Status status = locked[i - 1]->RemoveFiles(); !status.ok()) return status;
    if (Status status = locked[i - 1]->RemoveCreatingMark(); !status.ok()) return status;
    // rmdir fails if the directory has other files, which is right.
    if (!posix::IsSymbolicLink(directories[i - 1])) rmdir(locked[i - 1]->directory().c_str());
  }
  return Status::OK();
}

uint64_t RegionSet::database_id() const { return impl_->region(0)->database_id(); }

PmPtr RegionSet::Find(const void* address) const {
  for (uint32_t region = 0; region < count_; ++region) {
    const auto* base = bases_[region];
    const auto* byte = static_cast<const uint8_t*>(address);
    if (byte >= base && byte < base + ReservedBytes(region)) return ToPmPtr(region, address);
  }
  return PmPtr();
}

bool RegionSet::Contains(PmPtr p, uint64_t bytes) const {
  if (p.region() >= count_ || p.is_null() || p.raw() % 8 != 0) return false;
  const uint64_t end = impl_->region(p.region())->reserved_bytes();
  return p.offset() < end && bytes <= end - p.offset();
}

uint64_t RegionSet::MappedBytes() const {
  uint64_t bytes = 0;
  for (uint32_t region = 0; region < count_; ++region) bytes += ends_[region]->load(std::memory_order_relaxed);
  return bytes;
}

Status RegionSet::DamagedList() {
  return Status::Corruption(
      "a pointer of a list is damaged; restore the database from a copy, or save what is intact with braiddb repair");
}

uint32_t RegionSet::FindHomeRegion() const { return nodes_.HomeOf(CurrentNumaNode(), ThreadIndex()); }

uint32_t RegionSet::FindRemoteRegions(uint32_t home) const { return nodes_.RemoteRegions(CurrentNumaNode(), home); }

uint64_t RegionSet::ReservedBytes(uint32_t region) const { return impl_->region(region)->reserved_bytes(); }

// ---- Metadata

void* RegionSet::Metadata(uint32_t region, MetadataSlot slot, uint64_t* bytes) const {
  if (is_live_) return impl_->region(region)->FindLiveMetadata(static_cast<uint32_t>(slot), bytes);
  const RegionRoot* root = impl_->region(region)->root();
  const ObjectId& id = root->metadata[static_cast<uint32_t>(slot)];
  const uint64_t offset = std::atomic_ref<uint64_t>(const_cast<uint64_t&>(id.offset)).load(std::memory_order_acquire);
  if (offset == 0) return nullptr;
  if (bytes != nullptr) *bytes = root->metadata_bytes[static_cast<uint32_t>(slot)];
  return bases_[region] + AlignToLine(offset);
}

Status RegionSet::ReserveBytes(uint64_t bytes) {
  if (is_live_) return Status::ReadOnly("the regions are open for reading only");
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> file_systems;  // missing bytes of all regions there, available bytes
  for (uint32_t i = 0; i < count_; ++i) {
    uint64_t missing = 0;
    if (Status status = impl_->region(i)->MissingBytes(bytes, &missing); !status.ok()) return status;
    if (missing == 0) continue;
    const RegionFiles& files = *impl_->region(i)->files();
    auto& [all, available] = file_systems[files.FileSystemId()];
    all += missing;
    available = files.AvailableBytes();
    if (all > available) {
      return Status::NoSpace("the file system of " + files.directory() + " has " + std::to_string(available) + " bytes, but " +
                             std::to_string(all) + " are missing for initial_region_size; lower it, or free space");
    }
  }
  for (uint32_t i = 0; i < count_; ++i) {
    if (Status status = impl_->region(i)->ReserveBytes(bytes); !status.ok()) return status;
  }
  return Status::OK();
}

Status RegionSet::AllocateMetadata(uint32_t region, MetadataSlot slot, uint64_t bytes, void** object) {
  BRAIDDB_CHECK(slot < MetadataSlot::kCount);
  Status status = impl_->region(region)->AllocateMetadata(static_cast<uint32_t>(slot), bytes);
  if (status.ok()) *object = Metadata(region, slot);
  return status;
}

Status RegionSet::FreeMetadata(uint32_t region, MetadataSlot slot) {
  BRAIDDB_CHECK(slot < MetadataSlot::kCount);
  return impl_->region(region)->FreeMetadata(static_cast<uint32_t>(slot));
}

}  // namespace braiddb
