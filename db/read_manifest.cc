#include "db/read_manifest.h"

#include <chrono>
#include <thread>

#include "pmem/metadata_reader.h"
#include "util/file.h"
#include "util/sync_point.h"

namespace braiddb {

// A slot that counts stays as it is until the next commit but one. Who is overtaken by two while it reads finds no slot whole,
// and reads again.
Status ReadManifest(const Options& options, const std::string& path, ManifestState* manifest) {
  constexpr int kTries = 100;
  if (FileExists(path + "/CREATING")) return Status::NotFound("the creation of the database in " + path + " is not complete");
  RegionSetOptions region_options;
  region_options.database_path = path;
  region_options.region_paths = options.region_paths;
  Status status;
  for (int i = 0; i < kTries; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    MetadataCopy copy;
    status = ReadMetadata(region_options, 0, MetadataSlot::kManifest, &copy);
    BRAIDDB_SYNC_POINT_ARG("ReadManifest:Copied", copy.words.data());
    uint64_t generation = 0;
    if (status.ok()) status = Manifest::Read(copy.words.data(), copy.bytes, copy.regions, manifest, &generation);
    if (!status.IsCorruption()) break;
  }
  return status;
}

}  // namespace braiddb
