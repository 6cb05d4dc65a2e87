// Where a database is: making its files, finding them, and removing them. [CC-60]
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "db/db_impl.h"
#include "db/new_database.h"
#include "db/options_file.h"
#include "db/temporary_place.h"
#include "pmem/database_file.h"

namespace braiddb {
namespace {

using DatabaseState = DatabaseFile::State;

constexpr const char* kLogFile = "/LOG";

// Removes what the creation that the file CREATING tells of has left, and the file. Directories that have another identity stay.
Status RemoveUnfinished(const std::string& path) {
  DatabaseState state = DatabaseState::kNone;
  DatabaseFile unfinished;
  Status status = DatabaseFile::Read(path, &state, &unfinished);
  if (!status.ok() || state != DatabaseState::kCreating) return status;
  if (!unfinished.is_torn()) {  // one that is torn tells of a creation that has made nothing else
    RegionSetOptions options;
    options.database_path = path;
    options.region_paths = unfinished.regions;
    options.database_id = unfinished.database_id;
    status = RegionSet::Destroy(options, RegionSet::Others::kSkip);
  }
  return status.ok() ? DatabaseFile::Remove(path, DatabaseState::kCreating) : status;
}

// Regions outside of the database's directory belong to one directory. A copy of that directory alone is no database.
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

// Whether the directories are other ones than those that are noted.
bool NamesOthers(const std::vector<std::string>& region_paths, const DatabaseFile& place) {
  const auto are_equal = [](const std::string& a, const std::string& b) { return AbsolutePath(a) == AbsolutePath(b); };
  const auto& noted = place.regions;
  return !region_paths.empty() && !std::equal(region_paths.begin(), region_paths.end(), noted.begin(), noted.end(), are_equal);
}

// A database that was made before the file DATABASE was: its regions are its own if they are in its directory, or if its options
// file names them.
Status CheckOldPlace(const RegionSetOptions& options) {
  std::vector<std::string> noted;
  if (options.region_paths.empty() || NotedRegionPaths(options.database_path, &noted)) {
    const auto absolute = [](std::vector<std::string> paths) {
      for (std::string& path : paths) path = AbsolutePath(path);
      return paths;
    };
    if (options.region_paths.empty() || absolute(noted) == absolute(options.region_paths)) return Status::OK();
  }
  return Status::InvalidArgument("Options::region_paths names " + options.region_paths[0] +
                                 ", which holds a region already, but nothing in " + options.database_path +
                                 " says that it is of this database; name other directories, or open the database that it is of");
}

}  // namespace

// Finds whether the database is there or is to be made; an error if neither can be.
Status DBImpl::JudgePlace(bool* exists) {
  DatabaseState state = DatabaseState::kNone;
  if (Status status = DatabaseFile::Read(path_, &state, &place_); !status.ok()) return status;
  if (state == DatabaseState::kDestroying) {
    return Status::InvalidArgument("the removal of the database in " + path_ +
                                   " is not complete; finish it with DB::Destroy, then a new one can be made");
  }
  if (state == DatabaseState::kNone) place_ = DatabaseFile();
  *exists = state == DatabaseState::kWhole || (state == DatabaseState::kNone && RegionSet::Exists(MakeRegionOptions()));
  if (is_read_only()) {
    if (!*exists) return Status::NotFound("there is no database in " + path_);
  } else if (!*exists && !options_.create_if_missing) {
    return Status::NotFound("there is no database in " + path_ + "; set Options::create_if_missing to make one");
  } else if (*exists && options_.error_if_exists) {
    return Status::InvalidArgument(path_ + ": exists (error_if_exists is true)");
  }
  if (state == DatabaseState::kWhole) return CheckRegionPaths();
  return *exists ? CheckOldPlace(MakeRegionOptions()) : Status::OK();
}

// Regions may have been moved, or be of a copy, if the options name them; then their identity decides (RegionSet::Open).
Status DBImpl::CheckRegionPaths() const {
  return NamesOthers(options_.region_paths, place_) ? Status::OK() : CheckNotACopy(path_, place_);
}

// Where the regions of the open database are, for the opens to come.
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
  // If a creation is killed, the next one syncs the parent of `path_`, and no directory above that.
  if (exists || creation->makes_parents()) creation->syncs()->Suspend();
  status = CreateDir(path_);
  if (status.ok()) status = FileLock::Acquire(path_ + "/LOCK", &lock_);
  if (!status.ok()) return status;
  if (options_.info_log) {
    logger_ = MakeUsersLogger();
  } else {
    logger_ = Logger::OpenFile(path_ + kLogFile);
  }
  // Looked at again under the lock: another process may have made it, or may have been making it.
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

// GOAL    The files of a new database, or none.
// STEPS   1 what an unfinished creation left in the directories that its file names, and has its identity, goes  2 the file
//         CREATING says the identity of this one  3 regions and structures are made, and opened  4 all that is made durable
//         5 CREATING becomes DATABASE (FinishCreation)
// ORDER   1 before 2, 2 before 3, and 4 before 5 are durable orders. Inside of 3 there is none: nobody has been promised anything
//         before DB::Open returns, and if CREATING is there, an open takes nothing of 3 for a database. So syncs of 3 are put off
//         to 4 and made in one batch (util/deferred_syncs.h). Regions in other directories sync their files as ever, since these
//         could become durable without the directory that has CREATING; this directory is durable before they begin.
// CRASH   In 1: the next open begins there. In 2: CREATING may be torn, and then the creation has made nothing else. In 3 and 4:
//         CREATING is whole, and anything else is there or not, of any content. What lies in directories inside of the database's
//         own is of this creation: the open before 2 has found nothing of a region there. Other directories have their identity
//         in each state. Before 5 the next open begins at 1. After it: the database is there. [CC-1] [CC-60]
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
  // On a disk each step of an allocation is a sync, but for those of now.
  for (uint32_t region = 0; status.ok() && may_lose_writes && region < regions_->count(); ++region) {
    status = segments_->PrepareFirst(region);
  }
  return status;
}

// Steps 4 and 5 of CreateFiles. `notes_options`: what the next open may want to know is among what is made durable.
Status DBImpl::FinishCreation(bool notes_options) {
  if (notes_options) {
    std::lock_guard lock(families_mutex_);
    NoteOptions();
  }
  DeferredSyncs* const syncs = creation_->syncs();
  // A creation that was killed may have made directories, and synced none.
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

// Removes what the creation has made, if it has not come to its end.
void DBImpl::AbandonCreation(std::unique_ptr<DBImpl> db) {
  const std::string path = db->path_;
  const std::unique_ptr<NewDatabase> creation = std::move(db->creation_);
  const std::unique_ptr<FileLock> lock = std::move(db->lock_);
  std::unique_ptr<Logger> logger = std::move(db->logger_);
  db.reset();
  // What the regions have removed is gone for good before CREATING is.
  (void)creation->syncs()->End([] { return Status::OK(); });
  const Status removed = RemoveUnfinished(path);
  if (!removed.ok() && logger != nullptr)
    logger->Log("open: what the failed creation left is not removed: " + removed.ToString());
  logger.reset();
  // DATABASE is there if the sync behind the rename has failed: then the database is complete.
  for (const DatabaseState state : {DatabaseState::kCreating, DatabaseState::kWhole}) {
    if (FileExists(DatabaseFile::FilePath(path, state))) return;
  }
  creation->RemovePlace();
}

namespace {

// What an open has put into a database's directory beside the files of regions.
constexpr const char* kFilesOfADatabase[] = {"OPTIONS",       "OPTIONS.tmp",  "SECONDARY",
                                             "SECONDARY.tmp", "DATABASE.tmp", "CREATING.tmp"};

// What of a database is in the directory, for its removal; OK and kNone if there is none.
Status FindPlace(const RegionSetOptions& options, DatabaseState* state, DatabaseFile* place) {
  Status status = DatabaseFile::Read(options.database_path, state, place);
  if (!status.ok() || *state != DatabaseState::kNone) return status;
  // A database of before this file was: its regions tell.
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

}  // namespace

// GOAL   The database's own files are gone, and no others.
// STEPS  1 DATABASE becomes DESTROYING  2 the regions that have its identity go  3 the files beside them  4 DESTROYING  5 LOCK
//        and the directory, if nothing else is in it
// CRASH  Between 1 and 4: an open says so, and another Destroy goes on. [CC-60]
Status DB::Destroy(const Options& options, const std::string& given) {
  std::string path = given;
  while (path.size() > 1 && path.back() == '/') path.pop_back();  // what is behind one is no link
  if (!FileExists(path)) return Status::OK();
  RegionSetOptions region_options;
  region_options.database_path = path;
  region_options.region_paths = options.region_paths;
  region_options.regions = options.regions;
  DatabaseState state = DatabaseState::kNone;
  DatabaseFile place;
  if (Status status = DatabaseFile::Read(path, &state, &place); !status.ok()) return status;
  if (state == DatabaseState::kNone) {
    if (!RegionSet::Exists(region_options)) return Status::OK();  // nothing here is a database's
    if (Status status = CheckOldPlace(region_options); !status.ok()) return status;
  }
  std::unique_ptr<FileLock> lock;
  Status status = FileLock::Acquire(path + "/LOCK", &lock);
  if (status.ok()) status = FindPlace(region_options, &state, &place);
  if (!status.ok() || state == DatabaseState::kNone) return status;
  region_options.database_id = place.database_id;
  const bool is_whole = state == DatabaseState::kWhole;
  const bool names_others = is_whole && NamesOthers(options.region_paths, place);
  status = CheckNotACopy(path, place);
  if (!names_others) {
    region_options.region_paths = place.regions;
  } else if (status.ok()) {  // they may have been moved; nothing of the database stays in either place
    region_options.region_paths.insert(region_options.region_paths.end(), place.regions.begin(), place.regions.end());
  } else {  // what is noted belongs to the original, what is named to the copy
    status = Status::OK();
  }
  const auto begin = [&] {
    if (place.is_torn()) return Status::OK();  // there is nothing but this file
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
  if (status.ok()) status = RemoveFile(path + "/LOCK");
  if (!status.ok()) return status;
  // The directory stays if others put files into it, or if it has its name by a link.
  std::vector<std::string> names;
  if (!std::filesystem::is_symlink(path) && ListDir(path, &names).ok() && names.empty()) status = RemoveDir(path);
  return status;
}

}  // namespace braiddb
