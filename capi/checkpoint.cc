// Checkpoints, by braiddb/backup.h. RocksDB links files; here the data is copied.
#include "braiddb/backup.h"
#include "capi/objects.h"
#include "capi/options.h"
#include "capi/result.h"

using namespace braiddb::capi;

struct braiddb_checkpoint_t {
  braiddb_t* db;
};

braiddb_checkpoint_t* braiddb_checkpoint_object_create(braiddb_t* db, char** errptr) {
  auto* const checkpoint = Make<braiddb_checkpoint_t>(db);
  if (checkpoint == nullptr) SaveError(errptr, NoMemory());
  return checkpoint;
}
void braiddb_checkpoint_object_destroy(braiddb_checkpoint_t* checkpoint) { delete checkpoint; }

void braiddb_checkpoint_create(braiddb_checkpoint_t* checkpoint, const char* path, uint64_t, char** errptr) {
  SaveError(errptr, Guarded([&] { return braiddb::CreateCheckpoint(checkpoint->db->db.get(), path, nullptr, PlacedCopies()); }));
}
