#include "capi/copy.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "capi/options.h"
#include "capi/result.h"

namespace braiddb::capi {
namespace {

// Writes all that the snapshot sees, in batches.
Status WriteAll(DB* from, const Snapshot* snapshot, DB* to) {
  constexpr size_t kBatchBytes = 256 << 10;
  ReadOptions options;
  options.snapshot = snapshot;
  options.verify_checksums = true;
  WriteBatch batch;
  const auto iterator = from->NewIterator(options);
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    batch.Put(iterator->key(), iterator->value());
    if (batch.ApproximateSize() < kBatchBytes) continue;
    if (Status status = to->Write({}, batch); !status.ok()) return status;
    batch.Clear();
  }
  if (Status status = iterator->status(); !status.ok()) return status;
  return batch.Count() == 0 ? Status::OK() : to->Write({}, batch);
}

Status Rename(const std::string& from, const std::string& to) {
  std::error_code error;
  std::filesystem::rename(from, to, error);
  return error ? Status::IOError(from + " cannot be renamed to " + to + ": " + error.message()) : Status::OK();
}

std::string WithoutSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// Makes a complete, closed database at <path>.tmp and gives it its name, which is when it is there.
Status MakeAndRename(DB* db, const Snapshot* snapshot, const std::string& path, bool inside) {
  const std::string temporary = path + ".tmp";
  Options options = db->GetOptions();
  options.create_if_missing = true;
  options.error_if_exists = true;
  options.disable_auto_compaction = false;
  options.initial_region_size = 0;
  options.info_log = nullptr;
  options.region_paths.clear();
  Status status = DestroyPlaced({}, temporary);
  if (status.ok() && !inside) status = PlaceRegions(temporary, &options);
  if (!status.ok()) return status;
  if (!options.region_paths.empty()) options.regions = static_cast<uint32_t>(options.region_paths.size());
  std::unique_ptr<DB> copy;
  status = DB::Open(options, temporary, &copy);
  if (status.ok()) status = WriteAll(db, snapshot, copy.get());
  if (status.ok()) status = copy->Close();
  copy.reset();
  if (status.ok()) return Rename(temporary, path);
  const Status ignored = DestroyPlaced({}, temporary);
  (void)ignored;  // what is left of it is in nobody's way
  return status;
}

Status Sync(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Status::IOError(path.string() + ": " + std::strerror(errno));
  const bool synced = fsync(fd) == 0;
  const int error = errno;
  close(fd);
  return synced ? Status::OK() : Status::IOError(path.string() + ": " + std::strerror(error));
}

// The files of one directory, which is made.
Status CopyFiles(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::filesystem::create_directories(to);
  for (const auto& entry : std::filesystem::directory_iterator(from)) {
    if (!entry.is_regular_file()) continue;
    const std::filesystem::path copy = to / entry.path().filename();
    std::filesystem::copy_file(entry.path(), copy, std::filesystem::copy_options::overwrite_existing);
    if (Status status = Sync(copy); !status.ok()) return status;
  }
  return Sync(to);
}

}  // namespace

namespace {

// Busy if somebody has the database at `path` open.
Status CheckClosed(const std::string& path) {
  const int fd = open((path + "/LOCK").c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return Status::OK();
  const bool is_free = flock(fd, LOCK_EX | LOCK_NB) == 0;
  close(fd);
  return is_free ? Status::OK() : Status::Busy(path + ": is open; close it first");
}

Status CopyRegions(const std::string& from, const std::string& temporary, const Options& made) {
  size_t region = 0;
  Status status;
  for (; status.ok() && std::filesystem::is_directory(from + "/region-" + std::to_string(region)); ++region) {
    const std::string name = "/region-" + std::to_string(region);
    if (made.region_paths.empty()) {
      status = CopyFiles(from + name, temporary + name);
    } else if (region < made.region_paths.size()) {
      status = CopyFiles(from + name, made.region_paths[region]);
    }
  }
  if (status.ok() && region == 0) return Status::Corruption(from + ": the backup has no region; it is not whole");
  if (status.ok() && !made.region_paths.empty() && region != made.region_paths.size())
    return Status::NotSupported(
        "environment variable BRAIDDB_REGION_ROOTS does not name as many directories as there are regions");
  return status;
}

// STEPS  1 what is at `path` gets the name <path>.old  2 the copy gets its name  3 the old one is destroyed.
// CRASH  After 1: nothing is at `path`, and both are beside it. What is in the way of 1 or 2 leaves everything as it was.
Status PutInPlace(const std::string& temporary, const std::string& path) {
  const std::string old = path + ".old";
  const bool replaces = std::filesystem::exists(std::filesystem::symlink_status(path));
  if (replaces && std::filesystem::exists(std::filesystem::symlink_status(old)))
    return Status::InvalidArgument(old + " is in the way; move it elsewhere");
  if (replaces) {
    if (Status status = Rename(path, old); !status.ok()) return status;
  }
  if (Status status = Rename(temporary, path); !status.ok()) {
    const Status back = replaces ? Rename(old, path) : Status::OK();
    return back.ok() ? status : back;
  }
  if (Status status = Sync(std::filesystem::absolute(path).parent_path()); !status.ok()) return status;
  if (!replaces) return Status::OK();
  if (Status status = DestroyPlaced({}, old); !status.ok()) return status;
  std::error_code not_empty;
  std::filesystem::remove(old, not_empty);  // files of others stay there
  return Status::OK();
}

}  // namespace

Status CopyClosedDatabase(const std::string& from, const std::string& to) {
  const std::string path = WithoutSlashes(to);
  const std::string temporary = path + ".tmp";
  Options made;
  if (Status status = CheckClosed(path); !status.ok()) return status;
  if (Status status = DestroyPlaced({}, temporary); !status.ok()) return status;
  Status status = PlaceRegions(temporary, &made);
  if (status.ok()) status = CopyFiles(from, temporary);
  if (status.ok()) status = CopyRegions(from, temporary, made);
  if (status.ok()) status = PutInPlace(temporary, path);
  if (status.ok()) return status;
  const Status ignored = DestroyPlaced({}, temporary);
  (void)ignored;  // what is left of it is in nobody's way
  return status;
}

Status CopyDatabase(DB* db, const std::string& to, bool inside) {
  const std::string path = WithoutSlashes(to);
  if (std::filesystem::exists(path)) return Status::InvalidArgument(path + ": exists");
  const Snapshot* const snapshot = db->GetSnapshot();
  const Status status = Guarded([&] { return MakeAndRename(db, snapshot, path, inside); });
  db->ReleaseSnapshot(snapshot);
  return status;
}

}  // namespace braiddb::capi
