// Opening, closing, and what is refused there; checkpoints and sequences.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "tests/differential/machine.h"

namespace braiddb::test {

namespace {

int CompareReversed(void*, const char* a, size_t a_length, const char* b, size_t b_length) {
  return std::string_view(b, b_length).compare(std::string_view(a, a_length));
}

char* Join(const char* existing, size_t existing_length, const char* const* operands, const size_t* lengths, int count,
           unsigned char* success, size_t* length) {
  std::string joined = existing == nullptr ? "" : std::string(existing, existing_length);
  for (int i = 0; i < count; ++i) {
    if (i > 0 || existing != nullptr) joined += ',';
    joined.append(operands[i], lengths[i]);
  }
  char* const result = static_cast<char*>(std::malloc(joined.size() + 1));
  std::memcpy(result, joined.data(), joined.size());
  *length = joined.size();
  *success = 1;
  return result;
}

char* JoinAll(void*, const char*, size_t, const char* existing, size_t existing_length, const char* const* operands,
              const size_t* lengths, int count, unsigned char* success, size_t* length) {
  return Join(existing, existing_length, operands, lengths, count, success, length);
}

char* JoinOperands(void*, const char*, size_t, const char* const* operands, const size_t* lengths, int count,
                   unsigned char* success, size_t* length) {
  return Join(nullptr, 0, operands, lengths, count, success, length);
}

}  // namespace

Machine::Machine(const Api& api, std::string directory, const LifeOptions& life)
    : api_(api), directory_(std::move(directory)), path_(directory_ + "/db"), life_(life) {
  std::filesystem::create_directories(directory_);
  comparator_ = api_.rocksdb_comparator_create(
      nullptr, [](void*) {}, CompareReversed, [](void*) { return "differential.reversed"; });
  options_ = MakeOptions(life_.reverse_order);
  if (const std::string result = Open(life_.kind); !open()) throw std::runtime_error("the first open: " + result);
  // RocksDB's snapshots of number 0 lose operands: see KnownDifferences.
  const WriteOptions options = PlainWriteOptions();
  PutTo(Default(), options.get(), "first", "");
  DeleteFrom(Default(), options.get(), "first");
}

Machine::~Machine() {
  EndObjects();
  Close();
  api_.rocksdb_options_destroy(options_);
  api_.rocksdb_comparator_destroy(comparator_);
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

braiddb_options_t* Machine::MakeOptions(bool reverse_order) const {
  braiddb_options_t* const options = api_.rocksdb_options_create();
  api_.rocksdb_options_set_create_if_missing(options, 1);
  api_.rocksdb_options_set_write_buffer_size(options, life_.write_buffer_size);
  api_.rocksdb_options_set_level0_file_num_compaction_trigger(options, 2);
  api_.rocksdb_options_set_disable_auto_compactions(options, life_.automatic_merges ? 0 : 1);
  api_.rocksdb_options_set_compression(options, 0);
  api_.rocksdb_options_set_stats_dump_period_sec(options, 0);
  api_.rocksdb_options_set_stats_persist_period_sec(options, 0);
  api_.rocksdb_options_set_max_background_jobs(options, 2);
  if (reverse_order) api_.rocksdb_options_set_comparator(options, comparator_);
  if (life_.prefix_length > 0) {
    api_.rocksdb_options_set_prefix_extractor(options, api_.rocksdb_slicetransform_create_fixed_prefix(life_.prefix_length));
  }
  if (life_.adds_numbers) {
    api_.rocksdb_options_set_uint64add_merge_operator(options);
  } else {
    api_.rocksdb_options_set_merge_operator(
        options, api_.rocksdb_mergeoperator_create(
                     nullptr, [](void*) {}, JoinAll, JoinOperands, nullptr, [](void*) { return "differential.join"; }));
  }
  return options;
}

std::vector<std::string> Machine::ListFamilies(const std::string& path, std::string* result) const {
  Error error(api_);
  size_t count = 0;
  char** const list = api_.rocksdb_list_column_families(options_, path.c_str(), &count, error.pointer());
  if (error.failed()) {
    *result += error.Take();
    return {};
  }
  std::vector<std::string> names(list, list + count);
  api_.rocksdb_list_column_families_destroy(list, count);
  // The first one is the default one; the order of the others is each library's own.
  std::sort(names.begin() + 1, names.end());
  for (const std::string& name : names) *result += name + " ";
  return names;
}

std::string Machine::OpenFamilies(const std::string& path, const std::vector<std::string>& names, Kind kind) {
  std::vector<const char*> name_pointers;
  for (const std::string& name : names) name_pointers.push_back(name.c_str());
  const std::vector<const braiddb_options_t*> options(names.size(), options_);
  std::vector<braiddb_column_family_handle_t*> handles(names.size());
  const int count = static_cast<int>(names.size());
  Error error(api_);
  if (kind == Kind::kTransactions) {
    braiddb_transactiondb_options_t* const transaction_options = api_.rocksdb_transactiondb_options_create();
    api_.rocksdb_transactiondb_options_set_default_lock_timeout(transaction_options, 0);
    api_.rocksdb_transactiondb_options_set_transaction_lock_timeout(transaction_options, 0);
    transaction_db_ =
        api_.rocksdb_transactiondb_open_column_families(options_, transaction_options, path.c_str(), count, name_pointers.data(),
                                                        options.data(), handles.data(), error.pointer());
    api_.rocksdb_transactiondb_options_destroy(transaction_options);
  } else if (kind == Kind::kOptimistic) {
    optimistic_db_ = api_.rocksdb_optimistictransactiondb_open_column_families(
        options_, path.c_str(), count, name_pointers.data(), options.data(), handles.data(), error.pointer());
    if (optimistic_db_ != nullptr) db_ = api_.rocksdb_optimistictransactiondb_get_base_db(optimistic_db_);
  } else {
    db_ = api_.rocksdb_open_column_families(options_, path.c_str(), count, name_pointers.data(), options.data(), handles.data(),
                                            error.pointer());
  }
  if (error.failed()) return error.Take();
  kind_ = kind;
  for (size_t i = 0; i < names.size(); ++i) families_.push_back({handles[i], names[i], false});
  return "ok";
}

std::string Machine::Open(Kind kind) {
  std::string result;
  std::vector<std::string> names{"default"};
  if (std::filesystem::exists(path_)) names = ListFamilies(path_, &result);
  if (names.empty()) return result;
  return result + OpenFamilies(path_, names, kind);
}

void Machine::EndBatches() {
  for (auto& batch : batches_) {
    if (batch != nullptr) api_.rocksdb_writebatch_destroy(batch);
    batch = nullptr;
  }
  for (auto& batch : indexed_batches_) {
    if (batch != nullptr) api_.rocksdb_writebatch_wi_destroy(batch);
    batch = nullptr;
  }
  indexed_merges_ = false;
}

void Machine::EndObjects() {
  for (OpenIterator& each : iterators_) {
    if (each.iterator != nullptr) api_.rocksdb_iter_destroy(each.iterator);
    each = OpenIterator{};
  }
  for (OpenTransaction& each : transactions_) DestroyTransaction(&each);
  for (auto& snapshot : snapshots_) {
    if (snapshot == nullptr) continue;
    is(Kind::kTransactions) ? api_.rocksdb_transactiondb_release_snapshot(transaction_db_, snapshot)
                            : api_.rocksdb_release_snapshot(db_, snapshot);
    snapshot = nullptr;
  }
  EndBatches();
}

void Machine::Close() {
  for (const Family& family : families_) api_.rocksdb_column_family_handle_destroy(family.handle);
  families_.clear();
  if (transaction_db_ != nullptr) {
    api_.rocksdb_transactiondb_close(transaction_db_);
  } else if (optimistic_db_ != nullptr) {
    api_.rocksdb_optimistictransactiondb_close_base_db(db_);
    api_.rocksdb_optimistictransactiondb_close(optimistic_db_);
  } else if (db_ != nullptr) {
    api_.rocksdb_close(db_);
  }
  db_ = nullptr;
  transaction_db_ = nullptr;
  optimistic_db_ = nullptr;
}

std::string Machine::Reopen(Draw& draw) {
  const Kind wanted = draw.Chance(80) ? life_.kind : static_cast<Kind>(draw.Below(3));
  const Kind kind = prepared_ ? Kind::kTransactions : wanted;
  Say(kind == Kind::kPlain ? "plain" : kind == Kind::kTransactions ? "transactions" : "optimistic");
  EndObjects();
  Close();
  std::string result = Open(kind);
  if (!open()) return result;
  for (Family& family : families_) result += "\n" + Content({&family, false});
  return result;
}

// Opens that have to fail, of a database that is closed for them.
std::string Machine::RefusedOpen(Draw& draw) {
  if (prepared_) return "not here";
  const Kind kind = kind_;
  EndObjects();
  Close();
  const bool other_order = draw.Chance(25);
  braiddb_options_t* const options = MakeOptions(life_.reverse_order != other_order);
  api_.rocksdb_options_set_create_if_missing(options, 0);
  if (other_order) Say("other comparator");
  std::string path = path_;
  switch (draw.Below(3)) {
    case 0:
      Say("does not exist");
      path += "-not";
      break;
    case 1:
      Say("exists");
      api_.rocksdb_options_set_error_if_exists(options, 1);
      break;
    default:
      Say("no family f9");
  }
  const std::array<const char*, 2> names{"default", "f9"};
  const std::array<const braiddb_options_t*, 2> family_options{options, options};
  std::array<braiddb_column_family_handle_t*, 2> handles{};
  Error error(api_);
  braiddb_t* const db = api_.rocksdb_open_column_families(options, path.c_str(), 2, names.data(), family_options.data(),
                                                          handles.data(), error.pointer());
  std::string result = error.Take();
  if (db != nullptr) {
    for (auto* const handle : handles) api_.rocksdb_column_family_handle_destroy(handle);
    api_.rocksdb_close(db);
  }
  api_.rocksdb_options_destroy(options);
  return result + ", " + Open(kind);
}

std::string Machine::ReadOnly(Draw&) {
  if (prepared_) return "not here";
  const Kind kind = kind_;
  EndObjects();
  Close();
  std::string result;
  const std::vector<std::string> names = ListFamilies(path_, &result);
  std::vector<const char*> name_pointers;
  for (const std::string& name : names) name_pointers.push_back(name.c_str());
  const std::vector<const braiddb_options_t*> options(names.size(), options_);
  std::vector<braiddb_column_family_handle_t*> handles(names.size());
  Error error(api_);
  db_ = api_.rocksdb_open_for_read_only_column_families(options_, path_.c_str(), static_cast<int>(names.size()),
                                                        name_pointers.data(), options.data(), handles.data(), 0, error.pointer());
  result += error.Take();
  if (db_ != nullptr) {
    kind_ = Kind::kPlain;
    for (size_t i = 0; i < names.size(); ++i) families_.push_back({handles[i], names[i], false});
    for (Family& family : families_) result += "\n" + Content({&family, false});
    const WriteOptions write_options = PlainWriteOptions();
    result += "\nput " + PutTo(Default(), write_options.get(), "key", "value");
    Close();
  }
  return result + ", " + Open(kind);
}

std::string Machine::Checkpoint(Draw& draw) {
  if (prepared_) return "not here";
  const std::string path = directory_ + "/checkpoint" + std::to_string(++files_);
  Error error(api_);
  braiddb_checkpoint_t* const checkpoint =
      is(Kind::kTransactions) ? api_.rocksdb_transactiondb_checkpoint_object_create(transaction_db_, error.pointer())
      : is(Kind::kOptimistic) ? api_.rocksdb_optimistictransactiondb_checkpoint_object_create(optimistic_db_, error.pointer())
                              : api_.rocksdb_checkpoint_object_create(db_, error.pointer());
  if (error.failed()) return error.Take();
  api_.rocksdb_checkpoint_create(checkpoint, draw.Chance(10) ? path_.c_str() : path.c_str(), 0, error.pointer());
  std::string result = error.Take();
  api_.rocksdb_checkpoint_object_destroy(checkpoint);
  if (result == "ok") result += ContentOfCopy(path);
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
  return result;
}

std::string Machine::ContentOfCopy(const std::string& path) {
  EndObjects();
  const Kind kind = kind_;
  Close();
  std::string result;
  const std::vector<std::string> names = ListFamilies(path, &result);
  result += OpenFamilies(path, names, Kind::kPlain);
  for (Family& family : families_) result += "\n" + Content({&family, false});
  Close();
  return result + Open(kind);
}

std::string Machine::Backup(Draw& draw) {
  // RocksDB's backups fail an assertion where the comparator is not its own: see KnownDifferences.
  if (prepared_ || is(Kind::kTransactions) || life_.reverse_order) return "not here";
  const std::string backups = directory_ + "/backups";
  const std::string path = directory_ + "/restored";
  const int count = 1 + static_cast<int>(draw.Below(2));
  std::string result;
  Error error(api_);
  braiddb_backup_engine_t* const engine = api_.rocksdb_backup_engine_open(options_, backups.c_str(), error.pointer());
  if (error.failed()) return error.Take();
  for (int i = 0; i < count; ++i) {
    api_.rocksdb_backup_engine_create_new_backup_flush(engine, db_, 1, error.pointer());
    result += error.Take() + " ";
  }
  const braiddb_backup_engine_info_t* const info = api_.rocksdb_backup_engine_get_backup_info(engine);
  result += std::to_string(api_.rocksdb_backup_engine_info_count(info)) + " ";
  api_.rocksdb_backup_engine_info_destroy(info);
  braiddb_restore_options_t* const restore_options = api_.rocksdb_restore_options_create();
  api_.rocksdb_backup_engine_restore_db_from_latest_backup(engine, path.c_str(), path.c_str(), restore_options, error.pointer());
  result += error.Take() + " ";
  api_.rocksdb_restore_options_destroy(restore_options);
  api_.rocksdb_backup_engine_close(engine);
  if (std::filesystem::exists(path)) result += ContentOfCopy(path);
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
  std::filesystem::remove_all(backups, ignored);
  return result;
}

std::string Machine::NewSequence(Draw& draw) {
  std::string result = ScanAll(draw);
  EndObjects();
  const WriteOptions write_options = PlainWriteOptions();
  for (size_t i = families_.size(); i > 0; --i) {
    Family& family = families_[i - 1];
    if (family.dropped) {
      api_.rocksdb_column_family_handle_destroy(family.handle);
      families_.erase(families_.begin() + static_cast<std::ptrdiff_t>(i - 1));
      continue;
    }
    const ReadOptions options = PlainReadOptions();
    const Target target{&family, false};
    braiddb_iterator_t* const iterator = NewIterator(target, options.get());
    for (api_.rocksdb_iter_seek_to_first(iterator); api_.rocksdb_iter_valid(iterator) != 0; api_.rocksdb_iter_next(iterator)) {
      size_t length = 0;
      const char* const key = api_.rocksdb_iter_key(iterator, &length);
      DeleteFrom(target, write_options.get(), {key, length});
    }
    api_.rocksdb_iter_destroy(iterator);
  }
  put_once_.clear();
  ++round_;
  return result;
}

}  // namespace braiddb::test
