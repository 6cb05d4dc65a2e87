#include "db/read_manifest.h"

#include <chrono>
#include <thread>

#include "pmem/database_file.h"
#include "pmem/metadata_reader.h"
#include "util/sync_point.h"

namespace braiddb {

// The slot of the newest commit does not change until the commit after the next. A reader that two commits overtake finds no
// whole slot, and reads again. A reader that overlaps a growth of the MANIFEST finds an old object, which was the newest during
// this call, or reads again.
Status ReadManifest(const Options& options, const std::string& path, ManifestState* manifest) {
  constexpr int kTries = 100;
  DatabaseFile::State state = DatabaseFile::State::kNone;
  DatabaseFile place;
  if (Status found = DatabaseFile::Read(path, &state, &place); !found.ok()) return found;
  if (state == DatabaseFile::State::kCreating || state == DatabaseFile::State::kDestroying) {
    return Status::NotFound("the creation or the removal of the database in " + path + " is not complete");
  }
  RegionSetOptions region_options;
  region_options.database_path = path;
  region_options.region_paths = options.region_paths;
  Status status;
  for (int i = 0; i < kTries; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    MetadataCopy copies[2];
    ManifestObject objects[2];
    for (size_t slot = 0; slot < 2; ++slot) {
      MetadataCopy& copy = copies[slot];
      status = ReadMetadata(region_options, 0, kManifestPlaces[slot], &copy);
      if (!status.ok()) break;
      if (copy.bytes == 0) continue;
      BRAIDDB_SYNC_POINT_ARG("ReadManifest:Copied", copy.words.data());
      objects[slot] = {copy.words.data(), copy.bytes};
    }
    uint64_t generation = 0;
    size_t which = 0;
    if (status.ok()) status = Manifest::ReadNewest(objects, copies[0].regions, manifest, &generation, &which);
    if (!status.IsCorruption()) break;
  }
  return status;
}

}  // namespace braiddb
