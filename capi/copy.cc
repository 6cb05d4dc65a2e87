#include "capi/copy.h"

#include <fcntl.h>
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

// Gives a complete, closed database the name that it is to have.
Status PutInPlace(const Options& made, const std::string& temporary, const Options& placed, const std::string& path) {
  Status status;
  for (size_t i = 0; status.ok() && i < placed.region_paths.size(); ++i)
    status = Rename(made.region_paths[i], placed.region_paths[i]);
  if (status.ok() && !placed.region_paths.empty()) status = WriteRegionsFile(temporary, placed);
  return status.ok() ? Rename(temporary, path) : status;
}

// STEPS  1 a complete, closed database at <path>.tmp  2 its regions get the names that belong to `path`  3 so does its directory,
//        which is when it is there.
Status MakeAndRename(DB* db, const Snapshot* snapshot, const std::string& path, bool inside) {
  const std::string temporary = path + ".tmp";
  Options options = db->GetOptions();
  options.create_if_missing = true;
  options.error_if_exists = true;
  options.disable_auto_compaction = false;
  options.initial_region_size = 0;
  options.info_log = nullptr;
  options.region_paths.clear();
  Options placed = options;
  if (!inside) {
    if (Status status = DestroyPlaced(options, temporary); !status.ok()) return status;
    if (Status status = FindRegions(path, &placed); !status.ok()) return status;
    if (Status status = PlaceRegions(temporary, &options); !status.ok()) return status;
    if (!options.region_paths.empty()) options.regions = static_cast<uint32_t>(options.region_paths.size());
  } else if (Status status = DB::Destroy(options, temporary); !status.ok()) {
    return status;
  }
  std::unique_ptr<DB> copy;
  Status status = DB::Open(options, temporary, &copy);
  if (status.ok()) status = WriteAll(db, snapshot, copy.get());
  if (status.ok()) status = copy->Close();
  copy.reset();
  if (status.ok()) return PutInPlace(options, temporary, placed, path);
  const Status ignored = inside ? DB::Destroy(options, temporary) : DestroyPlaced({}, temporary);
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

Status CopyClosedDatabase(const std::string& from, const std::string& path) {
  const std::string temporary = path + ".tmp";
  Options made;
  if (Status status = DestroyPlaced({}, temporary); !status.ok()) return status;
  if (Status status = PlaceRegions(temporary, &made); !status.ok()) return status;
  Status status = CopyFiles(from, temporary);
  size_t region = 0;
  for (; status.ok() && std::filesystem::is_directory(from + "/region-" + std::to_string(region)); ++region) {
    const std::string name = "/region-" + std::to_string(region);
    if (made.region_paths.empty()) {
      status = CopyFiles(from + name, temporary + name);
    } else if (region < made.region_paths.size()) {
      status = CopyFiles(from + name, made.region_paths[region]);
    }
  }
  if (status.ok() && !made.region_paths.empty() && region != made.region_paths.size())
    status =
        Status::NotSupported("environment variable BRAIDDB_REGION_ROOTS does not name as many directories as there are regions");
  Options placed;
  if (status.ok()) status = DestroyPlaced({}, path);
  if (status.ok()) status = FindRegions(path, &placed);
  if (status.ok()) return PutInPlace(made, temporary, placed, path);
  const Status ignored = DestroyPlaced({}, temporary);
  (void)ignored;  // what is left of it is in nobody's way
  return status;
}

Status CopyDatabase(DB* db, const std::string& path, bool inside) {
  if (std::filesystem::exists(path)) return Status::InvalidArgument(path + ": exists");
  const Snapshot* const snapshot = db->GetSnapshot();
  const Status status = Guarded([&] { return MakeAndRename(db, snapshot, path, inside); });
  db->ReleaseSnapshot(snapshot);
  return status;
}

}  // namespace braiddb::capi
