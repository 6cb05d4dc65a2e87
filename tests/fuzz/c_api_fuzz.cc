// Sequences of C calls with odd arguments: NULL with length 0, empty and long keys, negative numbers, calls in odd orders.
//
// Puts, deletes and batches are also applied to a model; gets, scans and the state after a reopen must agree with it. A call that
// reports an error must have changed nothing.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "braiddb/c.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/db_test_util.h"

namespace {

using braiddb::test::FuzzInput;
using braiddb::test::TestDirectory;

void Require(bool holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "c_api_fuzz: %s\n", what);
  abort();
}

// The `errptr` of one call.
class Error {
 public:
  ~Error() { braiddb_free(text_); }
  operator char**() { return &text_; }
  bool none() const { return text_ == nullptr; }
  const char* text() const { return text_ == nullptr ? "" : text_; }

 private:
  char* text_ = nullptr;
};

// As a C program passes them: an empty one is NULL half of the time.
const char* Pointer(const std::string& bytes, FuzzInput* input) {
  return bytes.empty() && input->Bool() ? nullptr : bytes.data();
}

int OddInt(FuzzInput* input) { return static_cast<int>(static_cast<uint32_t>(input->OddNumber())); }

braiddb_options_t* MakeOptions(FuzzInput* input) {
  braiddb_options_t* const options = braiddb_options_create();
  braiddb_options_set_create_if_missing(options, 1);
  braiddb_options_set_write_buffer_size(options, 64 << 10);
  using IntSetter = void (*)(braiddb_options_t*, int);
  static constexpr IntSetter kIntSetters[] = {braiddb_options_set_max_write_buffer_number,
                                              braiddb_options_set_max_background_compactions,
                                              braiddb_options_set_max_background_jobs,
                                              braiddb_options_set_level0_file_num_compaction_trigger,
                                              braiddb_options_set_max_open_files,
                                              braiddb_options_set_level0_slowdown_writes_trigger,
                                              braiddb_options_set_level0_stop_writes_trigger,
                                              braiddb_options_set_disable_auto_compactions,
                                              braiddb_options_set_num_levels,
                                              braiddb_options_set_info_log_level,
                                              braiddb_options_set_compression,
                                              braiddb_options_set_target_file_size_multiplier,
                                              braiddb_options_set_table_cache_numshardbits};
  for (uint32_t count = input->Below(4); count > 0; --count)
    kIntSetters[input->Below(std::size(kIntSetters))](options, OddInt(input));
  if (input->Below(4) == 0) braiddb_options_increase_parallelism(options, OddInt(input));
  if (input->Below(4) == 0) braiddb_options_optimize_level_style_compaction(options, input->OddNumber());
  if (input->Below(4) == 0) {
    braiddb_block_based_table_options_t* const table = braiddb_block_based_options_create();
    braiddb_cache_t* const cache = braiddb_cache_create_lru(input->Below(3) << 20);
    braiddb_block_based_options_set_block_cache(table, cache);
    braiddb_block_based_options_set_filter_policy(
        table, braiddb_filterpolicy_create_bloom(static_cast<double>(static_cast<int64_t>(input->OddNumber()))));
    braiddb_options_set_block_based_table_factory(options, table);
    braiddb_cache_destroy(cache);
    braiddb_block_based_options_destroy(table);
  }
  return options;
}

class Session {
 public:
  using Content = std::map<std::string, std::string>;

  explicit Session(FuzzInput* input) : input_(*input) {
    options_ = MakeOptions(input);
    Open();
  }
  ~Session() {
    Close();
    braiddb_readoptions_destroy(read_options_);
    braiddb_writeoptions_destroy(write_options_);
    braiddb_options_destroy(options_);
  }

  void Run() {
    for (int calls = 0; calls < kMaxCalls && !input_.empty(); ++calls) Step();
    Check();
  }

 private:
  static constexpr int kMaxCalls = 120;
  static constexpr size_t kMaxObjects = 4;

  void Open() {
    Error error;
    db_ = braiddb_open(options_, directory_.File("db").c_str(), error);
    Require(db_ != nullptr, error.text());
    batch_ = braiddb_writebatch_create();
  }
  void Close() {
    for (braiddb_iterator_t* iterator : iterators_) braiddb_iter_destroy(iterator);
    iterators_.clear();
    for (const braiddb_snapshot_t* snapshot : snapshots_) braiddb_release_snapshot(db_, snapshot);
    snapshots_.clear();
    braiddb_writebatch_destroy(batch_);
    batch_model_.clear();
    save_points_.clear();
    if (family_ != nullptr) braiddb_column_family_handle_destroy(std::exchange(family_, nullptr));
    braiddb_close(db_);
  }

  void Step() {
    switch (input_.Below(22)) {
      case 0:
      case 1:
      case 2:
        return Put();
      case 3:
        return Delete();
      case 4:
      case 5:
        return Get();
      case 6:
        return MultiGet();
      case 7:
      case 8:
      case 9:
        return ExtendBatch();
      case 10:
        return SavePoint();
      case 11:
        return WriteBatch();
      case 12:
        return NewIterator();
      case 13:
      case 14:
        return MoveIterator();
      case 15:
        return Snapshot();
      case 16:
        return Property();
      case 17:
        return DeleteRange();
      case 18:
        return Maintain();
      case 19:
        return ApproximateSizes();
      case 20:
        if (input_.Below(4) == 0) {
          Close();
          Open();
          Check();
        }
        return;
      default:
        return OddOpens();
    }
  }

  void Put() {
    const std::string key = input_.Key();
    const std::string value = input_.Below(16) == 0 ? std::string(input_.Below(65536), 'v') : input_.Bytes(200);
    Error error;
    braiddb_put(db_, write_options_, Pointer(key, &input_), key.size(), Pointer(value, &input_), value.size(), error);
    if (error.none()) model_[key] = value;
  }
  void Delete() {
    const std::string key = input_.Key();
    Error error;
    (input_.Bool() ? braiddb_delete : braiddb_singledelete)(db_, write_options_, Pointer(key, &input_), key.size(), error);
    if (error.none()) model_.erase(key);
  }
  void Get() {
    const std::string key = input_.Key();
    Error error;
    size_t size = 99;
    if (input_.Bool()) {
      char* const value = braiddb_get(db_, read_options_, Pointer(key, &input_), key.size(), &size, error);
      Compare(key, error, value != nullptr, value, size);
      braiddb_free(value);
    } else {
      braiddb_pinnableslice_t* const pinned = braiddb_get_pinned(db_, read_options_, Pointer(key, &input_), key.size(), error);
      const char* const value = pinned == nullptr ? nullptr : braiddb_pinnableslice_value(pinned, &size);
      Compare(key, error, pinned != nullptr, value, size);
      braiddb_pinnableslice_destroy(pinned);
    }
  }
  void Compare(const std::string& key, const Error& error, bool found, const char* value, size_t size) {
    if (!error.none()) return Require(!found, "a get has a value and an error");
    const auto expected = model_.find(key);
    Require(found == (expected != model_.end()), "a get finds what the model has not, or the reverse");
    Require(!found || std::string_view(value, size) == expected->second, "a get has another value than the model");
  }
  void MultiGet() {
    std::vector<std::string> keys;
    for (uint32_t count = input_.Below(5); count > 0; --count) keys.push_back(input_.Key());
    std::vector<const char*> pointers;
    std::vector<size_t> sizes;
    for (const std::string& key : keys) {
      pointers.push_back(Pointer(key, &input_));
      sizes.push_back(key.size());
    }
    std::vector<char*> values(keys.size(), nullptr);
    std::vector<size_t> value_sizes(keys.size(), 0);
    std::vector<char*> errors(keys.size(), nullptr);
    braiddb_multi_get(db_, read_options_, keys.size(), pointers.data(), sizes.data(), values.data(), value_sizes.data(),
                      errors.data());
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto expected = model_.find(keys[i]);
      if (errors[i] == nullptr) {
        Require((values[i] != nullptr) == (expected != model_.end()), "MultiGet finds other keys than the model");
        Require(values[i] == nullptr || std::string_view(values[i], value_sizes[i]) == expected->second,
                "MultiGet has another value than the model");
      }
      braiddb_free(values[i]);
      braiddb_free(errors[i]);
    }
  }

  void ExtendBatch() {
    const std::string key = input_.Key();
    const std::string value = input_.Bytes(100);
    if (input_.Below(4) == 0) {
      braiddb_writebatch_delete(batch_, Pointer(key, &input_), key.size());
      batch_model_.push_back({key, "", false});
    } else if (input_.Below(8) == 0) {
      braiddb_writebatch_put_log_data(batch_, Pointer(value, &input_), value.size());
    } else {
      braiddb_writebatch_put(batch_, Pointer(key, &input_), key.size(), Pointer(value, &input_), value.size());
      batch_model_.push_back({key, value, true});
    }
    if (input_.Below(4) == 0) {
      size_t size = 0;
      Require(braiddb_writebatch_data(batch_, &size) != nullptr || size == 0, "the data of a batch is NULL");
    }
  }
  void SavePoint() {
    Error error;
    switch (input_.Below(4)) {
      case 0:
        braiddb_writebatch_set_save_point(batch_);
        save_points_.push_back(batch_model_.size());
        return;
      case 1:
        braiddb_writebatch_rollback_to_save_point(batch_, error);
        Require(error.none() == !save_points_.empty(), "a rollback without a save point");
        if (error.none()) {
          batch_model_.resize(save_points_.back());
          save_points_.pop_back();
        }
        return;
      case 2:
        braiddb_writebatch_pop_save_point(batch_, error);
        Require(error.none() == !save_points_.empty(), "a pop without a save point");
        if (error.none()) save_points_.pop_back();
        return;
      default:
        braiddb_writebatch_clear(batch_);
        batch_model_.clear();
        save_points_.clear();
    }
  }
  void WriteBatch() {
    Error error;
    braiddb_write(db_, write_options_, batch_, error);
    if (!error.none()) return;
    for (const Update& update : batch_model_) {
      if (update.is_put) {
        model_[update.key] = update.value;
      } else {
        model_.erase(update.key);
      }
    }
  }

  void NewIterator() {
    if (iterators_.size() >= kMaxObjects) {
      const size_t i = input_.Below(kMaxObjects);
      braiddb_iter_destroy(iterators_[i]);
      iterators_.erase(iterators_.begin() + static_cast<ptrdiff_t>(i));
    }
    // Bounds are the caller's memory as long as the iterator lives.
    bounds_.push_back(std::make_unique<std::string>(input_.Key()));
    const std::string& bound = *bounds_.back();
    braiddb_readoptions_t* const options = braiddb_readoptions_create();
    switch (input_.Below(4)) {
      case 0:
        braiddb_readoptions_set_iterate_upper_bound(options, bound.data(), bound.size());
        break;
      case 1:
        braiddb_readoptions_set_iterate_lower_bound(options, bound.data(), bound.size());
        break;
      case 2:
        braiddb_readoptions_set_tailing(options, 1);
        break;
      default:
        if (!snapshots_.empty()) braiddb_readoptions_set_snapshot(options, snapshots_[input_.Below(256) % snapshots_.size()]);
    }
    if (input_.Bool()) braiddb_readoptions_set_prefix_same_as_start(options, 1);
    if (input_.Bool()) braiddb_readoptions_set_readahead_size(options, input_.OddNumber());
    if (input_.Below(8) == 0) braiddb_readoptions_set_max_skippable_internal_keys(options, input_.OddNumber());
    iterators_.push_back(braiddb_create_iterator(db_, options));
    braiddb_readoptions_destroy(options);
  }
  void MoveIterator() {
    if (iterators_.empty()) return;
    braiddb_iterator_t* const iterator = iterators_[input_.Below(256) % iterators_.size()];
    const std::string key = input_.Key();
    switch (input_.Below(6)) {
      case 0:
        braiddb_iter_seek_to_first(iterator);
        break;
      case 1:
        braiddb_iter_seek_to_last(iterator);
        break;
      case 2:
        braiddb_iter_seek(iterator, Pointer(key, &input_), key.size());
        break;
      case 3:
        braiddb_iter_seek_for_prev(iterator, Pointer(key, &input_), key.size());
        break;
      case 4:
        if (braiddb_iter_valid(iterator) != 0) braiddb_iter_next(iterator);
        break;
      default:
        if (braiddb_iter_valid(iterator) != 0) braiddb_iter_prev(iterator);
    }
    if (braiddb_iter_valid(iterator) != 0) {
      size_t size = 0;
      Require(braiddb_iter_key(iterator, &size) != nullptr, "the key of a valid iterator is NULL");
      Require(braiddb_iter_value(iterator, &size) != nullptr, "the value of a valid iterator is NULL");
    }
    Error error;
    braiddb_iter_get_error(iterator, error);
  }
  void Snapshot() {
    if (snapshots_.size() < kMaxObjects && input_.Bool()) {
      snapshots_.push_back(braiddb_create_snapshot(db_));
    } else if (!snapshots_.empty()) {
      const size_t i = input_.Below(256) % snapshots_.size();
      braiddb_release_snapshot(db_, snapshots_[i]);
      snapshots_.erase(snapshots_.begin() + static_cast<ptrdiff_t>(i));
    }
  }
  void Property() {
    static const char* const kNames[] = {"rocksdb.stats",
                                         "rocksdb.estimate-num-keys",
                                         "leveldb.num-files-at-level99999999999999999999",
                                         "rocksdb.num-files-at-level0",
                                         "braiddb.dram-bytes",
                                         "leveldb.sstables",
                                         "rocksdb.",
                                         "",
                                         "rocksdb.aggregated-table-properties-at-level-1"};
    std::string name = kNames[input_.Below(std::size(kNames))];
    if (input_.Below(8) == 0) name = input_.Bytes(60);
    braiddb_free(braiddb_property_value(db_, name.c_str()));
    uint64_t value = 0;
    (void)braiddb_property_int(db_, name.c_str(), &value);
  }
  void DeleteRange() {
    const std::string begin = input_.Key();
    const std::string end = input_.Key();
    Error error;
    braiddb_delete_range_cf(db_, write_options_, family(), Pointer(begin, &input_), begin.size(), Pointer(end, &input_),
                            end.size(), error);
    if (!error.none() || begin >= end) return;
    model_.erase(model_.lower_bound(begin), model_.lower_bound(end));
  }
  void Maintain() {
    const std::string begin = input_.Key();
    const std::string end = input_.Key();
    Error error;
    switch (input_.Below(3)) {
      case 0: {
        braiddb_flushoptions_t* const options = braiddb_flushoptions_create();
        braiddb_flush(db_, options, error);
        braiddb_flushoptions_destroy(options);
        return;
      }
      case 1:
        return braiddb_compact_range(db_, Pointer(begin, &input_), begin.size(), Pointer(end, &input_), end.size());
      default:
        return braiddb_suggest_compact_range(db_, Pointer(begin, &input_), begin.size(), Pointer(end, &input_), end.size(),
                                             error);
    }
  }
  void ApproximateSizes() {
    const std::string begin = input_.Key();
    const std::string end = input_.Key();
    const char* const begins[] = {Pointer(begin, &input_)};
    const char* const ends[] = {Pointer(end, &input_)};
    const size_t begin_sizes[] = {begin.size()};
    const size_t end_sizes[] = {end.size()};
    uint64_t sizes[] = {0};
    Error error;
    braiddb_approximate_sizes(db_, 1, begins, begin_sizes, ends, end_sizes, sizes, error);
  }
  // Opens that must fail, and leave the open database alone.
  void OddOpens() {
    Error error;
    const std::string path = directory_.File("db");
    braiddb_t* other = nullptr;
    switch (input_.Below(4)) {
      case 0:
        other = braiddb_open(options_, path.c_str(), error);
        break;
      case 1:
        // A live reader, unless it is of another kind of last level.
        other = braiddb_open_for_read_only(options_, path.c_str(), 0, error);
        if (other == nullptr) break;
        Require(error.none(), "an open returned a database and an error");
        Check(other, read_options_);
        braiddb_close(other);
        return;
      case 2:
        other = braiddb_open(options_, "", error);
        break;
      default:
        braiddb_destroy_db(options_, path.c_str(), error);
        Require(!error.none(), "an open database was destroyed");
        return;
    }
    Require(other == nullptr && !error.none(), "a database was opened that is open, or has no name");
  }

  // All of the database against the model.
  void Check() { Check(db_, read_options_); }
  void Check(braiddb_t* db, const braiddb_readoptions_t* read_options) {
    braiddb_iterator_t* const iterator = braiddb_create_iterator(db, read_options);
    auto expected = model_.begin();
    for (braiddb_iter_seek_to_first(iterator); braiddb_iter_valid(iterator) != 0; braiddb_iter_next(iterator), ++expected) {
      Require(expected != model_.end(), "a scan has a key that the model has not");
      size_t size = 0;
      const char* const key = braiddb_iter_key(iterator, &size);
      Require(std::string_view(key, size) == expected->first, "a scan has another key than the model");
      const char* const value = braiddb_iter_value(iterator, &size);
      Require(std::string_view(value, size) == expected->second, "a scan has another value than the model");
    }
    Require(expected == model_.end(), "a scan ends before the model");
    braiddb_iter_destroy(iterator);
  }

  braiddb_column_family_handle_t* family() {
    if (family_ == nullptr) family_ = braiddb_get_default_column_family_handle(db_);
    return family_;
  }

  struct Update {
    std::string key;
    std::string value;
    bool is_put;
  };

  FuzzInput& input_;
  TestDirectory directory_;
  braiddb_options_t* options_ = nullptr;
  braiddb_t* db_ = nullptr;
  braiddb_column_family_handle_t* family_ = nullptr;
  braiddb_writeoptions_t* const write_options_ = braiddb_writeoptions_create();
  braiddb_readoptions_t* const read_options_ = braiddb_readoptions_create();
  braiddb_writebatch_t* batch_ = nullptr;
  std::vector<Update> batch_model_;
  std::vector<size_t> save_points_;
  std::vector<std::unique_ptr<std::string>> bounds_;
  std::vector<braiddb_iterator_t*> iterators_;
  std::vector<const braiddb_snapshot_t*> snapshots_;
  Content model_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  Session(&input).Run();
  return 0;
}
