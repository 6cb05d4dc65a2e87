#include "backup/copy.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "db/copied_database.h"
#include "db/db_impl.h"
#include "db/options_file.h"
#include "db/temporary_place.h"
#include "pmem/region_set.h"
#include "util/file.h"

namespace braiddb {

namespace {

Status Rename(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str()) == 0 ? Status::OK()
                                                    : StatusFromErrno(errno, "cannot rename " + from + " to " + to);
}

// Checks that `path` may be replaced. Returns Busy if a process has the database open. A copy replaces only a directory, and only
// if all region files in it belong to the database. The replacement removes the directory with its files.
Status CheckPlace(const std::string& path) {
  if (FileExists(path) && !std::filesystem::is_directory(path)) {
    return Status::InvalidArgument(path + " is a file; choose another directory");
  }
  RegionSetOptions regions;
  regions.database_path = path;
  uint64_t database_id = 0;
  if (Status status = RegionSet::FindDatabaseId(regions, &database_id); !status.ok()) return status;
  if (database_id == 0 && RegionSet::Exists(regions)) {
    return Status::InvalidArgument(path + " holds files with the names of a region's, and nothing says whose they are; choose " +
                                   "another directory, or move these files");
  }
  std::unique_ptr<FileLock> lock;
  return FileExists(path + "/LOCK") ? FileLock::Acquire(path + "/LOCK", &lock) : Status::OK();
}

Status Destroy(const Copy& copy, const std::string& directory) {
  return copy.how.destroy ? copy.how.destroy(directory) : DB::Destroy({}, directory);
}

// STEPS   0 mark the database at `target`  1 rename `target` to `target`.old  2 rename the copy to `target`  3 sync the parent
//         directory  4 remove `target`.old, then the copy's mark.
// CRASH   Between 1 and 2: no `target` exists; both databases are complete beside it, and the next restore renames the old one
//         back. After 2 the next restore removes the old one, which the copy's mark allows (TemporaryPlace::FinishReplacement).
// If step 1 or 2 fails, everything stays unchanged. If step 3 of a copy that replaces nothing fails, the copy is removed.
Status PutInPlace(TemporaryPlace* place, const std::string& target) {
  const std::string& temporary = place->path();
  const std::string old = TemporaryPlace::OldOf(target);
  const bool replaces = FileExists(target);
  if (replaces && FileExists(old)) return Status::InvalidArgument(old + " is in the way; move it elsewhere");
  Status status = replaces ? CheckPlace(target) : Status::OK();
  if (status.ok() && replaces) status = TemporaryPlace::MarkOld(target);
  if (status.ok() && replaces) {
    status = Rename(target, old);
    if (!status.ok()) TemporaryPlace::Finish(target);
  }
  if (!status.ok()) return status;
  status = Rename(temporary, target);
  if (!status.ok()) {
    const Status back = replaces ? place->FinishReplacement(target) : Status::OK();
    return back.ok() ? status : back;
  }
  const std::string parent = std::filesystem::path(target).parent_path();
  status = SyncDir(parent.empty() ? "." : parent);
  if (status.ok() && replaces) return place->FinishReplacement(target);
  if (status.ok()) {
    TemporaryPlace::Finish(target);
  } else if (!replaces) {
    (void)Rename(target, temporary);
  }
  return status;
}

// Creates and fills the copy. The copy is closed when the function returns.
Status Make(Copy* copy, const std::string& directory, const std::function<Status(DB*)>& fill) {
  std::unique_ptr<DB> db;
  Status status = copy->how.place_regions ? copy->how.place_regions(directory, &copy->options) : Status::OK();
  if (!copy->options.region_paths.empty()) copy->options.regions = static_cast<uint32_t>(copy->options.region_paths.size());
  if (status.ok()) status = DBImpl::Open(copy->options, directory, {}, false, nullptr, &db);
  if (!status.ok()) return status;
  copy->noted.region_paths = copy->options.region_paths;
  copy->noted.region_nodes = copy->options.region_nodes;
  copy->noted.regions = db->GetOptions().regions;
  status = fill(db.get());
  if (status.ok()) status = db->Close();
  db.reset();
  if (!status.ok()) return status;
  LoadedOptions made;  // the options that the open has chosen, with those of its families
  if (status = LoadLatestOptions(directory, &made); !status.ok()) return status;
  return WriteOptionsFile(copy->noted, made.Descriptors(), directory);
}

}  // namespace

// ORDER: the copy is closed, and so durable, before the old database is touched.
Status MakeDatabase(Copy copy, const std::function<Status(DB*)>& fill) {
  std::string target;
  if (Status status = TemporaryPlace::Resolve(copy.path, &target); !status.ok()) return status;
  TemporaryPlace temporary(target, [&copy](const std::string& directory) { return Destroy(copy, directory); });
  copy.options.create_if_missing = true;
  copy.options.error_if_exists = true;
  copy.options.disable_auto_compaction = false;
  copy.options.listeners.clear();  // they belong to the original, or to a later open
  if (!copy.replaces && FileExists(target))
    return Status::InvalidArgument(target + " is there already; choose another directory");
  Status status = copy.replaces ? temporary.FinishReplacement(target) : Status::OK();
  if (status.ok()) status = CheckPlace(target);
  if (status.ok() && copy.replaces) status = TemporaryPlace::CheckMarkable(target);
  if (status.ok()) status = temporary.Make();
  if (!status.ok()) return status;
  status = Make(&copy, temporary.path(), fill);
  if (status.ok()) status = PutInPlace(&temporary, target);
  if (!status.ok()) (void)temporary.Remove();
  return status;
}

namespace {

// Handles keep the ids of their families from being reused, so equal ids mean equal families.
bool AreTheSame(const FamilyHandles& a, const FamilyHandles& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x->GetID() == y->GetID(); });
}

}  // namespace

Status CreateFamilyOfCopy(DB* copy, const ColumnFamilyOptions& options, const std::string& name,
                          std::unique_ptr<ColumnFamilyHandle>* handle) {
  return static_cast<DBImpl*>(copy)->CreateAnyFamily(options, name, handle);
}

// If the families before and after the snapshot are the same, they are the families at the snapshot. Otherwise the function tries
// again.
Status CopiedState::Take(DBImpl* db, std::unique_ptr<CopiedState>* state) {
  for (;;) {
    std::unique_ptr<CopiedState> taken(new CopiedState(db));
    FamilyHandles behind;
    Status status = db->GetAllFamilies(&taken->families_);
    if (!status.ok()) return status;
    taken->snapshot_ = db->GetSnapshot();
    status = db->GetAllFamilies(&behind);
    if (!status.ok()) return status;
    if (!AreTheSame(taken->families_, behind)) continue;
    *state = std::move(taken);
    return status;
  }
}

CopiedState::~CopiedState() {
  if (snapshot_ != nullptr) db_->ReleaseSnapshot(snapshot_);
}

std::unique_ptr<Iterator> CopiedState::NewIterator(ColumnFamilyHandle* family) const {
  ReadOptions read;
  read.snapshot = snapshot_;
  read.verify_checksums = true;
  return db_->NewIterator(read, family);
}

std::string OptionsTextOf(DB* db) {
  FamilyHandles handles;
  std::vector<ColumnFamilyDescriptor> families;
  if (db->GetColumnFamilies(&handles).ok()) {
    for (const auto& handle : handles) families.push_back({handle->GetName(), handle->GetOptions()});
  }
  return OptionsToText(OpenedWith(db), families);
}

Options OpenedWith(DB* db) {
  const Options& chosen = db->GetOptions();
  const DBImpl* const base = CopiedDatabase(db);
  LoadedOptions loaded;
  if (!LoadLatestOptions(base == nullptr ? db->GetName() : base->directory(), &loaded).ok()) return chosen;
  loaded.options.comparator = chosen.comparator;
  loaded.options.prefix_extractor = chosen.prefix_extractor;
  return loaded.options;
}

}  // namespace braiddb
