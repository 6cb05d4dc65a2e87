// Checkpoints: a database of its own with what was there, see capi/copy.h. (RocksDB links files; here the data is copied.)
#include "capi/copy.h"
#include "capi/objects.h"
#include "capi/result.h"

using namespace braiddb::capi;

struct braiddb_checkpoint_t {
  braiddb_t* db;
};

braiddb_checkpoint_t* braiddb_checkpoint_object_create(braiddb_t* db, char**) { return new braiddb_checkpoint_t{db}; }
void braiddb_checkpoint_object_destroy(braiddb_checkpoint_t* checkpoint) { delete checkpoint; }

void braiddb_checkpoint_create(braiddb_checkpoint_t* checkpoint, const char* path, uint64_t, char** errptr) {
  SaveError(errptr, Guarded([&] { return CopyDatabase(checkpoint->db->db.get(), path, false); }));
}
