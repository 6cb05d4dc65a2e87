// Checkpoint: a copy that can be opened.
#include "backup/copy.h"
#include "braiddb/backup.h"
#include "db/no_memory.h"
#include "util/file.h"

namespace braiddb {
namespace {

// As the original, but in one directory, on whatever file system that is, and with little DRAM: it only takes writes and is
// closed.
Options OptionsOfCopy(const Options& of) {
  Options options = of;
  options.region_paths.clear();
  options.initial_region_size = 0;
  options.persist_mode = PersistMode::kAuto;
  options.emulation = {};
  options.dram_budget = 0;
  options.lookup_cache_size = 0;
  options.filter_bits_per_key = 0;
  options.verify_at_open = false;
  options.compaction_filter = nullptr;
  options.compaction_filter_factory.reset();
  options.info_log = nullptr;
  return options;
}

Status CopyAll(const CopiedState& state, DB* to) {
  const auto iterator = state.NewIterator();
  WriteBatch batch;
  Status status;
  for (iterator->SeekToFirst(); iterator->Valid() && status.ok(); iterator->Next()) {
    batch.Put(iterator->key(), iterator->value());
    if (batch.ApproximateSize() < kCopiedAtOnce) continue;
    status = to->Write(CopyWrites(), batch);
    batch.Clear();
  }
  if (status.ok()) status = iterator->status();
  return status.ok() ? to->Write(CopyWrites(), batch) : status;
}

}  // namespace

Status CreateCheckpoint(DB* of, const std::string& path, uint64_t* sequence, const CopyOptions& options) try {
  DB* const db = of->GetRootDB();
  if (path.empty() || FileExists(path)) return Status::InvalidArgument(path + ": is there already; choose another directory");
  const CopiedState state(db);
  if (sequence != nullptr) *sequence = state.sequence();
  return MakeDatabase({OptionsOfCopy(db->GetOptions()), OpenedWith(db), path, false, options},
                      [&](DB* copy) { return CopyAll(state, copy); });
} catch (const std::bad_alloc&) {
  return NoMemory();
}

}  // namespace braiddb
