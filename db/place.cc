// The directory of a database: creating its files, finding them, and removing them. [CC-60]
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "db/db_impl.h"
#include "db/new_database.h"
#include "db/no_memory.h"
#include "db/options_file.h"
#include "db/temporary_place.h"
#include "pmem/database_file.h"
#include "util/no_path.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

using DatabaseState = DatabaseFile::State;

constexpr const char* kLogFile = "/LOG";
// RocksDB and LevelDB databases have this file, BraidDB databases have none.
constexpr const char* kForeignFile = "/CURRENT";
// Of an open whose directory others remove.
constexpr int kMaxTries = 100;

// Removes the files of an unfinished creation, which the file CREATING names, and then CREATING. Directories with another
// identity stay.
Status RemoveUnfinished(const std::string& path) {
  DatabaseState state = DatabaseState::kNone;
  DatabaseFile unfinished;
  Status status = DatabaseFile::Read(path, &state, &unfinished);
  if (!status.ok() || state != DatabaseState::kCreating) return status;
  if (!unfinished.is_torn()) {  // a torn CREATING means that the creation has made no other file
    RegionSetOptions options;
    options.database_path = path;
    options.region_paths = unfinished.regions;
    options.database_id = unfinished.database_id;
    status = RegionSet::Destroy(options, RegionSet::Others::kSkip);
  }
  return status.ok() ? DatabaseFile::Remove(path, DatabaseState::kCreating) : status;
}

// Regions outside of the database's directory belong to one database directory. A copy of that directory alone is no database.
Status CheckNotACopy(const std::string& path, const DatabaseFile& place) {
  const std::string own = AbsolutePath(path);
  const auto is_inside = [&](const std::string& region) { return AbsolutePath(region).starts_with(own + "/"); };
  if (place.path == own || std::all_of(place.regions.begin(), place.regions.end(), is_inside)) return Status::OK();
  DatabaseState state = DatabaseState::kNone;
  DatabaseFile other;
  if (!DatabaseFile::Read(place.path, &state, &other).ok() || state == DatabaseState::kNone) return Status::OK();
  if (other.database_id != place.database_id) return Status::OK();
  return Status::InvalidArgument(path + " is a copy of the directory " + place.path + " without its regions, which belong to " +
                                 place.path + "; make copies with CreateCheckpoint");
}

// Whether all regions are in the database's own directory.
bool IsInside(const DatabaseFile& place) {
  return std::all_of(place.regions.begin(), place.regions.end(),
                     [&](const std::string& region) { return region.starts_with(place.path + "/"); });
}

// Whether `region_paths` names other directories than `place`.
bool NamesOthers(const std::vector<std::string>& region_paths, const DatabaseFile& place) {
  const auto are_equal = [](const std::string& a, const std::string& b) { return AbsolutePath(a) == AbsolutePath(b); };
  const auto& noted = place.regions;
  return !region_paths.empty() && !std::equal(region_paths.begin(), region_paths.end(), noted.begin(), noted.end(), are_equal);
}

// Checks a database without a file DATABASE, which older versions did not write. Its regions belong to it if they are in its
// directory, or if its options file names them.
Status CheckOldPlace(const RegionSetOptions& options) {
  std::vector<std::string> noted;
  if (options.region_paths.empty() || NotedRegionPaths(options.database_path, &noted)) {
    const auto absolute = [](std::vector<std::string> paths) {
      for (std::string& path : paths) path = AbsolutePath(path);
      return paths;
    };
    if (options.region_paths.empty() || absolute(noted) == absolute(options.region_paths)) return Status::OK();
  }
  return Status::InvalidArgument(
      "Options::region_paths names " + options.region_paths[0] + ", which holds a region already, but no file in " +
      options.database_path +
      " says that the region belongs to this database; name other directories, or open the database that "
      "the region belongs to");
}

}  // namespace

// Finds out whether the database exists or is to be created. An error if it neither exists nor can be created.
Status DBImpl::JudgePlace(bool* exists) {
  if (path_.empty()) return NoPath();
  DatabaseState state = DatabaseState::kNone;
  if (Status status = DatabaseFile::Read(path_, &state, &place_); !status.ok()) return status;
  if (state == DatabaseState::kDestroying) {
    return Status::InvalidArgument("the removal of the database in " + path_ +
                                   " is not complete; finish the removal with DB::Destroy, then create a new database");
  }
  if (state == DatabaseState::kNone) place_ = DatabaseFile();
  *exists = state == DatabaseState::kWhole || (state == DatabaseState::kNone && RegionSet::Exists(MakeRegionOptions()));
  if (is_read_only()) {
    if (!*exists) return Status::NotFound("there is no database in " + path_);
  } else if (!*exists && !options_.create_if_missing) {
    return Status::NotFound("there is no database in " + path_ + "; set Options::create_if_missing to make one");
  } else if (*exists && options_.error_if_exists) {
    return Status::InvalidArgument(path_ + ": exists (error_if_exists is true)");
  } else if (!*exists && FileExists(path_ + kForeignFile)) {
    return Status::InvalidArgument(path_ + ": there is a database of RocksDB or LevelDB; name another directory, and import it");
  }
  if (state == DatabaseState::kWhole) return CheckRegionPaths();
  return *exists ? CheckOldPlace(MakeRegionOptions()) : Status::OK();
}

// If the options name other directories, the regions may have been moved, or belong to a copy. Then their identity decides
// (RegionSet::Open).
Status DBImpl::CheckRegionPaths() const {
  return NamesOthers(options_.region_paths, place_) ? Status::OK() : CheckNotACopy(path_, place_);
}

// Writes the directories of the regions to the file DATABASE, for later opens.
Status DBImpl::NotePlace() const {
  DatabaseFile now{regions_->database_id(), AbsolutePath(path_), {}};
  for (const std::string& region : RegionDirectories(MakeRegionOptions(), regions_->count())) {
    now.regions.push_back(AbsolutePath(region));
  }
  if (now.ToText() == place_.ToText()) return Status::OK();
  return now.Write(path_, DatabaseState::kWhole);
}

Status DBImpl::OpenFiles(const std::vector<ColumnFamilyDescriptor>& families) {
  bool exists = false;
  Status status = JudgePlace(&exists);
  if (!status.ok()) return status;
  auto creation = std::make_unique<NewDatabase>(path_);
  // A creation that is killed may have made directories without syncing their parents. The next creation syncs the parent of
  // `path_` only. So a creation that makes several levels of directories syncs each at once.
  if (exists || creation->makes_parents()) creation->syncs()->Suspend();
  // A removal of a database may take the directory away in between.
  for (int tries = 0; tries == 0 || (status.IsNotFound() && options_.create_if_missing && tries < kMaxTries); ++tries) {
    status = CreateDir(path_);
    if (status.ok()) status = FileLock::Acquire(path_ + "/LOCK", &lock_);
  }
  if (!status.ok()) return status;
  if (options_.info_log) {
    logger_ = MakeUsersLogger();
  } else {
    logger_ = Logger::OpenFile(path_ + kLogFile);
  }
  // Repeated under the lock: another process may have created the database meanwhile.
  status = JudgePlace(&exists);
  if (!status.ok()) return status;
  if (!exists) {
    creation_ = std::move(creation);
    return CreateFiles();
  }
  status = creation->syncs()->SyncFiles();
  creation.reset();
  if (status.ok() && options_.verify_at_open) status = CheckBeforeOpen(families);
  if (status.ok()) status = RegionSet::Open(MakeRegionOptions(), &regions_);
  if (status.ok()) status = NotePlace();
  return status;
}

// GOAL    Create all files of a new database, or none.
// STEPS   1 remove what an unfinished creation left in the directories that its file names, and that has its identity  2 write
//         the file CREATING with the identity of this creation  3 create and open regions and structures  4 make all of them
//         durable  5 rename CREATING to DATABASE (FinishCreation)
// ORDER   Durable orders: 1 before 2, 2 before 3, and 4 before 5. Within 3 no order is needed: a caller is promised nothing
//         before DB::Open returns, and while CREATING exists, an open takes nothing of 3 for a database. So syncs of 3 are
//         deferred to 4 and made in one batch (util/deferred_syncs.h). Regions in other directories sync their files at once:
//         their files could become durable before the directory that has CREATING. That directory is durable before they begin.
// CRASH   In 1: the next open begins there. In 2: CREATING may be torn; then the creation has made no other file. In 3 and 4:
//         CREATING is whole, and every other file may exist or not, with any content. Files in directories inside of the
//         database's own belong to this creation, because the open found no region there before 2. Other directories have their
//         identity at any time. Before 5 the next open begins at 1. After 5 the database exists. [CC-1] [CC-60]
Status DBImpl::CreateFiles() {
  DeferredSyncs* const syncs = creation_->syncs();
  syncs->Suspend();
  Status status = RemoveUnfinished(path_);
  place_ = DatabaseFile{RegionSet::NewDatabaseId(), AbsolutePath(path_), {}};
  const RegionSetOptions region_options = MakeRegionOptions();
  for (const std::string& region : RegionDirectories(region_options, RegionSet::CountToCreate(region_options))) {
    place_.regions.push_back(AbsolutePath(region));
  }
  if (status.ok()) status = place_.WriteMark(path_);
  if (status.ok() && !IsInside(place_)) status = syncs->Add(std::filesystem::path(place_.path).parent_path().string());
  syncs->Resume();
  if (status.ok()) status = RegionSet::Create(region_options, &regions_);
  if (status.ok()) status = CheckDramBudget();
  if (status.ok()) status = SegmentAllocator::Open(regions_.get(), options_.segment_size, &segments_);
  if (status.ok()) status = LastLevel::Create(options_, regions_.get(), segments_.get());
  if (!status.ok()) return status;
  const bool may_lose_writes = regions_->persistence()->mode() == PersistMode::kPage;
  ManifestState state;
  state.comparator = StoredName(*options_.comparator);
  state.l1_kind = static_cast<uint8_t>(options_.l1);
  state.list_kind = options_.list_kind;
  state.copying_flush = !options_.index_unified_logging;
  state.may_lose_writes = may_lose_writes;
  status = Manifest::Create(regions_.get(), state);
  // On a disk each step of a later allocation takes a sync. Syncs are deferred until the creation ends, so first segments are
  // cheap.
  for (uint32_t region = 0; status.ok() && may_lose_writes && region < regions_->count(); ++region) {
    status = segments_->PrepareFirst(region);
  }
  return status;
}

// Steps 4 and 5 of CreateFiles. `notes_options`: whether the options file is written as well.
Status DBImpl::FinishCreation(bool notes_options) {
  if (notes_options) {
    std::lock_guard lock(families_mutex_);
    NoteOptions();
  }
  DeferredSyncs* const syncs = creation_->syncs();
  // An earlier creation that was killed may have made directories without syncing them.
  std::vector<std::string> directories = place_.regions;
  directories.push_back(place_.path);
  Status status;
  for (const std::string& directory : directories) {
    if (status.ok()) status = syncs->Add(directory);
    if (status.ok()) status = syncs->Add(std::filesystem::path(directory).parent_path().string());
  }
  Persistence* const persistence = regions_->persistence();
  // ORDER: everything above is durable before the database is one. [CC-1]
  if (status.ok()) status = syncs->End([&] { return persistence->Drain() ? Status::OK() : persistence->error(); });
  if (status.ok()) status = DatabaseFile::Change(path_, DatabaseState::kCreating, DatabaseState::kWhole);
  if (status.ok()) creation_.reset();
  return status;
}

// Removes the files of a creation that failed.
void DBImpl::AbandonCreation(std::unique_ptr<DBImpl> db) {
  const std::string path = db->path_;
  const std::unique_ptr<NewDatabase> creation = std::move(db->creation_);
  const std::unique_ptr<FileLock> lock = std::move(db->lock_);
  std::unique_ptr<Logger> logger = std::move(db->logger_);
  db.reset();
  // ORDER: the removal of regions is durable before CREATING is removed.
  (void)creation->syncs()->End([] { return Status::OK(); });
  const Status removed = RemoveUnfinished(path);
  if (!removed.ok() && logger != nullptr)
    logger->Log("open: what the failed creation left is not removed: " + removed.ToString());
  logger.reset();
  // If the sync after the rename of CREATING failed, DATABASE exists, and the database is complete.
  for (const DatabaseState state : {DatabaseState::kCreating, DatabaseState::kWhole}) {
    if (FileExists(DatabaseFile::FilePath(path, state))) return;
  }
  creation->RemovePlace();
}

namespace {

// Files that an open or a secondary puts into the directory, beside the files of regions.
constexpr const char* kFilesOfADatabase[] = {"OPTIONS",      "OPTIONS.tmp",  "SECONDARY", "SECONDARY.tmp",
                                             "DATABASE.tmp", "CREATING.tmp", "INDEX",     "INDEX.tmp"};

// Finds the database in the directory, for its removal. OK and kNone if there is none.
Status FindPlace(const RegionSetOptions& options, DatabaseState* state, DatabaseFile* place) {
  Status status = DatabaseFile::Read(options.database_path, state, place);
  if (!status.ok() || *state != DatabaseState::kNone) return status;
  // Older versions wrote no file DATABASE: the regions give the identity.
  *place = DatabaseFile();
  if (!RegionSet::Exists(options)) return Status::OK();
  status = CheckOldPlace(options);
  if (status.ok()) status = RegionSet::FindDatabaseId(options, &place->database_id);
  if (!status.ok()) return status;
  *state = DatabaseState::kWhole;
  place->path = AbsolutePath(options.database_path);
  for (const std::string& region : RegionDirectories(options, kMaxRegions)) {
    if (FileExists(region)) place->regions.push_back(AbsolutePath(region));
  }
  return place->Write(options.database_path, DatabaseState::kWhole);
}

// Removes the socket of a process that was killed. A file of another kind is not the database's.
void RemoveSocket(const std::string& path) {
  const std::string name = path + "/" + kLiveSocket;
  std::error_code ignored;
  if (std::filesystem::is_socket(std::filesystem::symlink_status(name, ignored))) (void)unlink(name.c_str());
}

// Removes LOCK, which this call holds, and then the directory. The directory stays if it has files of others, if `path` is a
// symbolic link to it, or if the system keeps it: it is a mount point, the path ends like "/a/.", its parent cannot be written.
Status RemoveLastFiles(const std::string& path) {
  RemoveSocket(path);
  Status status = RemoveFile(path + "/LOCK");
  BRAIDDB_SYNC_POINT("DB::Destroy:Unlocked");
  std::error_code ignored;
  if (status.ok() && !std::filesystem::is_symlink(path, ignored)) (void)rmdir(path.c_str());
  return status;
}

// Locks the database for its removal. OK and no lock if the directory does not exist or holds no database.
Status LockForRemoval(const RegionSetOptions& options, std::unique_ptr<FileLock>* lock) {
  const std::string& path = options.database_path;
  Status status;
  // Another removal may take the directory away at any time, and another creation may bring it back.
  for (int tries = 0; tries < kMaxTries; ++tries) {
    if (!FileExists(path)) return Status::OK();
    DatabaseState state = DatabaseState::kNone;
    DatabaseFile place;
    status = DatabaseFile::Read(path, &state, &place);
    if (status.ok() && state == DatabaseState::kNone) {
      if (!RegionSet::Exists(options)) return Status::OK();
      status = CheckOldPlace(options);
    }
    BRAIDDB_SYNC_POINT("DB::Destroy:Found");
    if (status.ok()) status = FileLock::Acquire(path + "/LOCK", lock);
    if (!status.IsNotFound()) break;
  }
  return status;
}

}  // namespace

// GOAL   Remove the database's own files, and no others.
// STEPS  1 rename DATABASE to DESTROYING  2 remove the regions that have its identity  3 remove the other files  4 remove
//        DESTROYING  5 remove LOCK, and the directory if it is empty
// CRASH  Between 1 and 4: an open returns an error that names DB::Destroy, and another DB::Destroy continues. [CC-60]
Status DB::Destroy(const Options& options, const std::string& given) try {
  if (given.empty()) return NoPath();
  std::string path = given;
  while (path.size() > 1 && path.back() == '/') path.pop_back();  // so that a symbolic link is recognized as one
  RegionSetOptions region_options;
  region_options.database_path = path;
  region_options.region_paths = options.region_paths;
  region_options.regions = options.regions;
  std::unique_ptr<FileLock> lock;
  Status status = LockForRemoval(region_options, &lock);
  if (!status.ok() || lock == nullptr) return status;
  DatabaseState state = DatabaseState::kNone;
  DatabaseFile place;
  status = FindPlace(region_options, &state, &place);
  if (!status.ok()) return status;
  // Another call has removed the database meanwhile, and this one has made LOCK again.
  if (state == DatabaseState::kNone) return RemoveLastFiles(path);
  region_options.database_id = place.database_id;
  const bool is_whole = state == DatabaseState::kWhole;
  const bool names_others = is_whole && NamesOthers(options.region_paths, place);
  status = CheckNotACopy(path, place);
  if (!names_others) {
    region_options.region_paths = place.regions;
  } else if (status.ok()) {  // the regions may have been moved; both places are emptied
    region_options.region_paths.insert(region_options.region_paths.end(), place.regions.begin(), place.regions.end());
  } else {  // the noted regions belong to the original, the named ones to the copy
    status = Status::OK();
  }
  const auto begin = [&] {
    if (place.is_torn()) return Status::OK();  // CREATING is the only file
    if (state == DatabaseState::kDestroying) return Status::OK();
    DatabaseFile moved{place.database_id, AbsolutePath(path), region_options.region_paths};
    Status noted = moved.Write(path, state);
    return noted.ok() ? DatabaseFile::Change(path, state, DatabaseState::kDestroying) : noted;
  };
  if (status.ok()) {
    status = RegionSet::Destroy(region_options, is_whole ? RegionSet::Others::kRefuse : RegionSet::Others::kSkip, begin);
  }
  for (const char* name : kFilesOfADatabase) {
    if (status.ok()) status = RemoveFile(path + "/" + name);
  }
  for (const std::string& file : Logger::Files(path + kLogFile)) {
    if (status.ok()) status = RemoveFile(file);
  }
  if (status.ok()) TemporaryPlace::Finish(path);
  if (status.ok() && place.is_torn()) status = DatabaseFile::Remove(path, DatabaseState::kCreating);
  if (status.ok()) status = DatabaseFile::Remove(path, DatabaseState::kDestroying);
  return status.ok() ? RemoveLastFiles(path) : status;
} catch (const std::bad_alloc&) {
  return NoMemory();  // another call continues
}

}  // namespace braiddb
