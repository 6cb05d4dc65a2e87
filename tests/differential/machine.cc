#include "tests/differential/machine.h"

#include "tests/differential/batch_text.h"

namespace braiddb::test {

const std::vector<Operation>& Operations() {
  static const std::vector<Operation> operations{
      {"Put", 360, &Machine::Put},
      {"Delete", 100, &Machine::Delete},
      {"SingleDelete", 60, &Machine::SingleDelete},
      {"Merge", 160, &Machine::Merge},
      {"DeleteRange", 80, &Machine::DeleteRange},
      {"Fill", 16, &Machine::Fill},
      {"Get", 200, &Machine::Get},
      {"GetPinned", 60, &Machine::GetPinned},
      {"MultiGet", 60, &Machine::MultiGet},
      {"BatchedMultiGet", 40, &Machine::BatchedMultiGet},
      {"KeyMayExist", 40, &Machine::KeyMayExist},
      {"TakeSnapshot", 80, &Machine::TakeSnapshot},
      {"ReleaseSnapshot", 40, &Machine::ReleaseSnapshot},
      {"ScanAll", 32, &Machine::ScanAll},
      {"CreateIterator", 120, &Machine::CreateIterator},
      {"CreateIterators", 24, &Machine::CreateIterators},
      {"MoveIterator", 480, &Machine::MoveIterator},
      {"TailingIterator", 30, &Machine::TailingIterator},
      {"DestroyIterator", 32, &Machine::DestroyIterator},
      {"BatchUpdate", 360, &Machine::BatchUpdate},
      {"BatchVectors", 40, &Machine::BatchVectors},
      {"BatchSavePoint", 120, &Machine::BatchSavePoint},
      {"BatchInspect", 80, &Machine::BatchInspect},
      {"BatchCopy", 20, &Machine::BatchCopy},
      {"BatchWrite", 100, &Machine::BatchWrite},
      {"BatchClear", 20, &Machine::BatchClear},
      {"IndexedUpdate", 280, &Machine::IndexedUpdate},
      {"IndexedSavePoint", 80, &Machine::IndexedSavePoint},
      {"IndexedGet", 160, &Machine::IndexedGet},
      {"IndexedInspect", 60, &Machine::IndexedInspect},
      {"IndexedIterate", 100, &Machine::IndexedIterate},
      {"IndexedWrite", 60, &Machine::IndexedWrite},
      {"IndexedClear", 20, &Machine::IndexedClear},
      {"Begin", 120, &Machine::Begin},
      {"TransactionUpdate", 600, &Machine::TransactionUpdate},
      {"TransactionGet", 240, &Machine::TransactionGet},
      {"TransactionGetForUpdate", 200, &Machine::TransactionGetForUpdate},
      {"TransactionMultiGet", 80, &Machine::TransactionMultiGet},
      {"TransactionIterate", 160, &Machine::TransactionIterate},
      {"TransactionSavePoint", 160, &Machine::TransactionSavePoint},
      {"TransactionInspect", 80, &Machine::TransactionInspect},
      {"TransactionRebuild", 24, &Machine::TransactionRebuild},
      {"TransactionEnd", 160, &Machine::TransactionEnd},
      {"TransactionTwoPhase", 40, &Machine::TransactionTwoPhase},
      {"Flush", 32, &Machine::Flush},
      {"Compact", 16, &Machine::Compact},
      {"CreateFamily", 48, &Machine::CreateFamily},
      {"DropFamily", 24, &Machine::DropFamily},
      {"SetOptions", 12, &Machine::SetOptions},
      {"OptionString", 24, &Machine::OptionString},
      {"Ingest", 20, &Machine::Ingest},
      {"Backup", 1, &Machine::Backup},
      {"Checkpoint", 1, &Machine::Checkpoint},
      {"Reopen", 5, &Machine::Reopen},
      {"RefusedOpen", 1, &Machine::RefusedOpen},
      {"ReadOnly", 1, &Machine::ReadOnly},
      {"NewSequence", 0, &Machine::NewSequence},
  };
  return operations;
}

Step Machine::Run(const Call& call) {
  const Operation& operation = Operations()[call.operation];
  // RocksDB ends the process if it meets a key that is shorter than the prefix it wants.
  Draw draw(call.seed, life_.prefix_length);
  call_ = operation.name;
  std::string result = (this->*operation.run)(draw);
  has_operands_ |= Mentions("erge");
  return {std::move(call_), std::move(result)};
}

void Machine::Say(std::string_view words) {
  call_ += ' ';
  call_ += words;
}

// ---- Arguments

Machine::Target Machine::PickFamily(Draw& draw) {
  const size_t index = draw.Chance(40) ? 0 : draw.Below(families_.size());
  const Target target{&families_[index], index == 0 && draw.Chance(70)};
  Say(target.by_default ? "-" : target.family->name + (target.family->dropped ? "(dropped)" : ""));
  return target;
}

Machine::Target Machine::PickLivingFamily(Draw& draw) {
  const Target target = PickFamily(draw);
  if (!target.family->dropped) return target;
  Say("that is: -");
  return Default();
}

std::string_view Machine::PickKey(Draw& draw) {
  const std::string_view key = draw.Key();
  Say(Quote(key));
  return key;
}

std::string Machine::PickValue(Draw& draw) {
  std::string value = draw.Value();
  Say(Quote(value));
  return value;
}

std::pair<std::string_view, std::string_view> Machine::PickRange(Draw& draw) {
  std::string_view from = draw.Key();
  std::string_view to = draw.Key();
  // RocksDB takes no writes any more after a deletion of a range that ends before its start: see KnownDifferences.
  if (life_.reverse_order ? from < to : to < from) std::swap(from, to);
  Say(Quote(from) + ".." + Quote(to));
  return {from, to};
}

Machine::ReadOptions Machine::PickReadOptions(Draw& draw, Reads reads) {
  ReadOptions options = PlainReadOptions();
  const auto set = [&](unsigned percent, const char* name, auto&& setter) {
    if (!draw.Chance(percent)) return;
    Say(name);
    setter();
  };
  const braiddb_snapshot_t* const snapshot = snapshots_[draw.Below(snapshots_.size())];
  const bool in_past = draw.Chance(35);
  if (in_past && snapshot != nullptr) {
    Say(snapshot == snapshots_[0] ? "snapshot0" : "snapshot1");
    api_.rocksdb_readoptions_set_snapshot(options.get(), snapshot);
  }
  set(5, "no-fill", [&] { api_.rocksdb_readoptions_set_fill_cache(options.get(), 0); });
  set(5, "no-verify", [&] { api_.rocksdb_readoptions_set_verify_checksums(options.get(), 0); });
  // RocksDB's iterators over batches and transactions do not keep to bounds and prefixes: see KnownDifferences.
  if (reads == Reads::kPoints || (reads == Reads::kIteratorBelow && draw.Chance(97))) return options;
  // The C API keeps pointers to the bytes of bounds: keys of Draw stay.
  set(25, "lower", [&] {
    const std::string_view bound = PickKey(draw);
    api_.rocksdb_readoptions_set_iterate_lower_bound(options.get(), bound.data(), bound.size());
  });
  set(25, "upper", [&] {
    const std::string_view bound = PickKey(draw);
    api_.rocksdb_readoptions_set_iterate_upper_bound(options.get(), bound.data(), bound.size());
  });
  set(25, "same-prefix", [&] { api_.rocksdb_readoptions_set_prefix_same_as_start(options.get(), 1); });
  set(15, "total-order", [&] { api_.rocksdb_readoptions_set_total_order_seek(options.get(), 1); });
  set(8, "pin", [&] { api_.rocksdb_readoptions_set_pin_data(options.get(), 1); });
  set(5, "purge", [&] { api_.rocksdb_readoptions_set_background_purge_on_iterator_cleanup(options.get(), 1); });
  set(1, "managed", [&] { api_.rocksdb_readoptions_set_managed(options.get(), 1); });
  set(1, "persisted", [&] { api_.rocksdb_readoptions_set_read_tier(options.get(), 2); });
  return options;
}

Machine::WriteOptions Machine::PickWriteOptions(Draw& draw) {
  WriteOptions options = PlainWriteOptions();
  const bool sync = draw.Chance(4);
  const bool disable_wal = draw.Chance(4) && !(sync && !is(Kind::kPlain));  // two reasons: see KnownDifferences
  const bool ignore_missing = draw.Chance(4);
  if (sync) Say("sync");
  if (disable_wal) Say("no-wal");
  if (ignore_missing) Say("ignore-missing");
  api_.rocksdb_writeoptions_set_sync(options.get(), sync ? 1 : 0);
  api_.rocksdb_writeoptions_disable_WAL(options.get(), disable_wal ? 1 : 0);
  api_.rocksdb_writeoptions_set_ignore_missing_column_families(options.get(), ignore_missing ? 1 : 0);
  return options;
}

// A write that meets a dropped family, and may not, is RocksDB's last one: see KnownDifferences.
Machine::WriteOptions Machine::PickWriteOptions(Draw& draw, const Target& target) {
  WriteOptions options = PickWriteOptions(draw);
  if (target.family->dropped) api_.rocksdb_writeoptions_set_ignore_missing_column_families(options.get(), 1);
  return options;
}

// ---- Results

// What a call gives: a pointer to nothing may be null.
static std::string Tell(const char* bytes, size_t length) { return Quote({bytes == nullptr ? "" : bytes, length}); }

std::string Machine::TakeValue(char* value, size_t length, Error* error) const {
  if (error->failed()) return error->Take();
  if (value == nullptr) return "none";
  std::string result = Tell(value, length);
  api_.rocksdb_free(value);
  return result;
}

std::string Machine::TakePinned(braiddb_pinnableslice_t* value, Error* error) const {
  if (error->failed()) return error->Take();
  if (value == nullptr) return "none";
  size_t length = 0;
  const char* const bytes = api_.rocksdb_pinnableslice_value(value, &length);
  std::string result = Tell(bytes, length);
  api_.rocksdb_pinnableslice_destroy(value);
  return result;
}

std::string Machine::TakeValues(size_t count, char** values, const size_t* lengths, char** errors) const {
  std::string result;
  for (size_t i = 0; i < count; ++i) {
    Error error(api_);
    *error.pointer() = errors[i];
    result += " " + TakeValue(values[i], lengths[i], &error);
  }
  return result;
}

std::string Machine::TellBatch(const char* data, size_t length) const {
  return BatchText({data, length}, [this](uint32_t id) {
    for (const Family& family : families_) {
      if (api_.rocksdb_column_family_handle_get_id(family.handle) == id) return family.name;
    }
    return std::string("?");
  });
}

std::string Machine::IteratorError(braiddb_iterator_t* iterator) const {
  Error error(api_);
  api_.rocksdb_iter_get_error(iterator, error.pointer());
  return error.Take();
}

std::string Machine::Position(braiddb_iterator_t* iterator) const {
  if (api_.rocksdb_iter_valid(iterator) == 0) return "end, " + IteratorError(iterator);
  size_t key_length = 0;
  size_t value_length = 0;
  const char* const key = api_.rocksdb_iter_key(iterator, &key_length);
  const char* const value = api_.rocksdb_iter_value(iterator, &value_length);
  return Tell(key, key_length) + "=" + Tell(value, value_length);
}

}  // namespace braiddb::test
