// Checkpoint: an openable copy of a database.
#include "backup/copy.h"
#include "braiddb/backup.h"
#include "db/copied_database.h"
#include "db/db_impl.h"
#include "db/no_memory.h"
#include "util/file.h"

namespace braiddb {
namespace {

// The options of the original, changed for the copy: one directory, any file system, and little DRAM. The copy only receives
// writes and is then closed.
Options OptionsOfCopy(const Options& of) {
  Options options = of;
  options.region_paths.clear();
  options.region_nodes.clear();
  options.initial_region_size = 0;
  options.persist_mode = PersistMode::kAuto;
  options.emulation = {};
  options.dram_budget = 0;
  options.lookup_cache_size = 0;
  options.lookup_cache_limit.reset();
  options.bound_space = false;
  options.filter_bits_per_key = 0;
  options.verify_at_open = false;
  options.compaction_filter = nullptr;
  options.compaction_filter_factory.reset();
  options.info_log = nullptr;
  return options;
}

Status CopyFamily(const CopiedState& state, ColumnFamilyHandle* from, DB* to, const ColumnFamilyHandle* target) {
  const auto iterator = state.NewIterator(from);
  WriteBatch batch;
  Status status;
  for (iterator->SeekToFirst(); iterator->Valid() && status.ok(); iterator->Next()) {
    batch.Put(target, iterator->key(), iterator->value());
    if (batch.ApproximateSize() < kCopiedAtOnce) continue;
    status = static_cast<DBImpl*>(to)->WriteToAnyFamily(CopyWrites(), batch);
    batch.Clear();
  }
  if (status.ok()) status = iterator->status();
  return status.ok() ? static_cast<DBImpl*>(to)->WriteToAnyFamily(CopyWrites(), batch) : status;
}

// Copies all families. Other families than the default are created with their comparators and last levels.
Status CopyAll(const CopiedState& state, DB* to) {
  Status status;
  for (const auto& family : state.families()) {
    std::unique_ptr<ColumnFamilyHandle> target;
    if (family->GetID() != 0) status = CreateFamilyOfCopy(to, family->GetOptions(), family->GetName(), &target);
    if (status.ok()) status = CopyFamily(state, family.get(), to, target.get());
    if (!status.ok()) return status;
  }
  return status;
}

}  // namespace

Status CreateCheckpoint(DB* of, const std::string& path, uint64_t* sequence, const CopyOptions& options) try {
  DBImpl* const db = CopiedDatabase(of);
  if (db == nullptr) return NoCopyOfForeignDatabase();
  if (path.empty() || FileExists(path)) return Status::InvalidArgument(path + ": is there already; choose another directory");
  std::unique_ptr<CopiedState> state;
  if (Status status = CopiedState::Take(db, &state); !status.ok()) return status;
  if (sequence != nullptr) *sequence = state->sequence();
  return MakeDatabase({OptionsOfCopy(db->GetOptions()), OpenedWith(db), path, false, options},
                      [&](DB* copy) { return CopyAll(*state, copy); });
} catch (const std::bad_alloc&) {
  return NoMemory();
}

}  // namespace braiddb
