// The engine rocksdb: RocksDB's C interface, from a library that is loaded at run time. A library that lacks a required function
// is refused. Only the function that sets options may be missing.
#include "db_bench/engine.h"

#ifndef BRAIDDB_ROCKSDB_LIBRARY

namespace braiddb::bench {

Status MakeRocksDbDriver(const std::string&, const Flags&, std::unique_ptr<Driver>*) {
  return Status::NotSupported("rocksdb is not built in: rocksdb/c.h (librocksdb-dev) was not there when db_bench was configured");
}

}  // namespace braiddb::bench

#else

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "db_bench/families.h"
#include "db_bench/merge_operators.h"
#include "db_bench/rocksdb_api.h"
#include "db_bench/settle.h"

namespace braiddb::bench {

namespace {

// The initial settings of RocksDB's tuning guide: more background jobs, bytes_per_sync, filters of 10 bits, 16 KiB blocks, format
// 5, level_compaction_dynamic_level_bytes. In addition a cache that holds the data, and no compression, because the benchmark's
// values do not compress.
constexpr const char* kSettings =
    "max_background_jobs=6;bytes_per_sync=1048576;compaction_pri=kMinOverlappingRatio;level_compaction_dynamic_level_bytes=true;"
    "compression=kNoCompression;block_based_table_factory={filter_policy=bloomfilter:10:false;block_size=16384;"
    "block_cache=1G;cache_index_and_filter_blocks=true;pin_l0_filter_and_index_blocks_in_cache=true;format_version=5}";

using Families = std::vector<RocksDbApi::Family*>;

class RocksDbSession : public LevelDbApiSession<RocksDbApi> {
 public:
  RocksDbSession(const RocksDbApi& api, rocksdb_t* db, bool sync, bool log) : LevelDbApiSession(api, db, sync) {
    api.write_options_disable_log(write_options_, log ? 0 : 1);
  }
  ~RocksDbSession() override {
    if (snapshot_ != nullptr) api_.snapshot_release(db_, snapshot_);
  }

  Status Merge(Slice key, Slice operand) override {
    char* error = nullptr;
    api_.merge(db_, write_options_, key.data(), key.size(), operand.data(), operand.size(), &error);
    return TakeError(api_, error);
  }
  Status DeleteRange(Slice begin, Slice end) override {
    api_.batch_clear(batch_);
    api_.batch_remove_range(batch_, begin.data(), begin.size(), end.data(), end.size());
    return CommitBatch();
  }
  Status PinSnapshot() override {
    snapshot_ = api_.snapshot_create(db_);
    api_.read_options_snapshot(read_options_, snapshot_);
    return Status::OK();
  }
  // RocksDB stores the addresses of the bounds, so they must stay valid.
  std::unique_ptr<Iterator> NewBoundedIterator(const std::optional<Slice>& lower, const std::optional<Slice>& upper) override {
    lower_ = lower.value_or(Slice());
    upper_ = upper.value_or(Slice());
    api_.read_options_lower_bound(read_options_, lower ? lower_.data() : nullptr, lower_.size());
    api_.read_options_upper_bound(read_options_, upper ? upper_.data() : nullptr, upper_.size());
    return NewIterator();
  }
  // The library takes the levels of the C++ interface, also those that its C interface has no names for.
  void BeginCounting(uint32_t level) override {
    if (api_.set_perf_level == nullptr) return;
    api_.set_perf_level(static_cast<int>(level));
    perf_context_ = api_.perf_context_create();
    api_.perf_context_reset(perf_context_);
  }
  std::string EndCounting() override {
    if (perf_context_ == nullptr) return {};
    constexpr int kNothing = 1;
    api_.set_perf_level(kNothing);
    char* const report = api_.perf_context_report(perf_context_, 1);
    std::string text = report;
    api_.free(report);
    api_.perf_context_destroy(std::exchange(perf_context_, nullptr));
    return text;
  }

 private:
  rocksdb_perfcontext_t* perf_context_ = nullptr;  // from BeginCounting to EndCounting
  const rocksdb_snapshot_t* snapshot_ = nullptr;
  std::string lower_, upper_;
};

// A session of a database with several column families. Iterators use the default family, as in RocksDB's db_bench.
class FamiliesSession final : public RocksDbSession {
 public:
  FamiliesSession(const RocksDbApi& api, rocksdb_t* db, const Families* families, bool sync, bool log)
      : RocksDbSession(api, db, sync, log), families_(*families) {}

  Status Put(Slice key, Slice value) override {
    char* error = nullptr;
    api_.put_in(db_, write_options_, HandleOf(key), key.data(), key.size(), value.data(), value.size(), &error);
    return TakeError(api_, error);
  }
  Status Delete(Slice key) override {
    char* error = nullptr;
    api_.remove_in(db_, write_options_, HandleOf(key), key.data(), key.size(), &error);
    return TakeError(api_, error);
  }
  Status Merge(Slice key, Slice operand) override {
    char* error = nullptr;
    api_.merge_in(db_, write_options_, HandleOf(key), key.data(), key.size(), operand.data(), operand.size(), &error);
    return TakeError(api_, error);
  }
  Status DeleteRange(Slice begin, Slice end) override {
    api_.batch_clear(batch_);
    api_.batch_remove_range_in(batch_, HandleOf(begin), begin.data(), begin.size(), end.data(), end.size());
    return CommitBatch();
  }
  Status Write(const std::vector<Update>& updates) override {
    api_.batch_clear(batch_);
    for (const auto& [key, value, removes] : updates) {
      if (removes) {
        api_.batch_remove_in(batch_, HandleOf(key), key.data(), key.size());
      } else {
        api_.batch_put_in(batch_, HandleOf(key), key.data(), key.size(), value.data(), value.size());
      }
    }
    return CommitBatch();
  }
  Status Get(Slice key, std::string* value) override { return api_.Get(db_, read_options_, HandleOf(key), key, value); }
  void MultiGet(const std::vector<Slice>& keys, std::vector<std::string>* values, std::vector<Status>* statuses) override {
    of_keys_.clear();
    for (const Slice key : keys) of_keys_.push_back(HandleOf(key));
    api_.MultiGet(db_, read_options_, of_keys_, keys, &buffers_, values, statuses);
  }

 private:
  RocksDbApi::Family* HandleOf(Slice key) const { return families_[FamilyOf(key, families_.size())]; }

  const Families& families_;
  std::vector<const RocksDbApi::Family*> of_keys_;
};

class RocksDbEngine final : public LevelDbApiEngine<RocksDbApi> {
 public:
  // Takes over the handles. They are empty if the database has only the default family.
  RocksDbEngine(const RocksDbApi& api, rocksdb_t* db, Families families, bool log)
      : LevelDbApiEngine(api, db), families_(std::move(families)), log_(log) {}
  ~RocksDbEngine() override { DestroyHandles(); }

  Status NewSession(bool sync, std::unique_ptr<Session>* session) override {
    if (families_.empty()) {
      *session = std::make_unique<RocksDbSession>(api_, db_, sync, log_);
    } else {
      *session = std::make_unique<FamiliesSession>(api_, db_, &families_, sync, log_);
    }
    return Status::OK();
  }
  Status Flush() override {
    rocksdb_flushoptions_t* const options = api_.flush_options_create();
    char* error = nullptr;
    if (families_.empty()) api_.flush(db_, options, &error);
    for (size_t i = 0; i < families_.size() && error == nullptr; ++i) api_.flush_in(db_, options, families_[i], &error);
    api_.flush_options_destroy(options);
    return TakeError(api_, error);
  }
  Status Compact() override {
    if (families_.empty()) return LevelDbApiEngine::Compact();
    for (RocksDbApi::Family* const family : families_) api_.compact_range_in(db_, family, nullptr, 0, nullptr, 0);
    return Status::OK();
  }
  // Polls properties for pending work, as RocksDB's db_bench does.
  Status WaitForCompaction() override {
    constexpr std::chrono::milliseconds kPause{1};
    WaitUntilIdle([this] { return HasWork(); }, [kPause] { std::this_thread::sleep_for(kPause); });
    return Status::OK();
  }
  // The property of the default family and of the whole database, as in RocksDB's db_bench.
  bool GetText(std::string_view name, std::string* text) override { return GetProperty("rocksdb." + std::string(name), text); }
  Status Close() override {
    DestroyHandles();
    return LevelDbApiEngine::Close();
  }

 private:
  void DestroyHandles() {
    for (RocksDbApi::Family* const family : families_) api_.family_destroy(family);
    families_.clear();
  }

  bool HasWork() const {
    if (families_.empty()) return HasWork(nullptr);
    return std::any_of(families_.begin(), families_.end(), [this](RocksDbApi::Family* family) { return HasWork(family); });
  }
  // Null: the default family.
  bool HasWork(RocksDbApi::Family* family) const {
    for (const char* property : {"rocksdb.mem-table-flush-pending", "rocksdb.num-running-flushes", "rocksdb.compaction-pending",
                                 "rocksdb.num-running-compactions"}) {
      char* const value = family == nullptr ? api_.property_value(db_, property) : api_.property_value_in(db_, family, property);
      const bool has = value != nullptr && std::string_view(value) != "0";
      if (value != nullptr) api_.free(value);
      if (has) return true;
    }
    return false;
  }

  Families families_;  // empty: only the default family
  const bool log_;     // writes use the log
};

class RocksDbDriver final : public Driver {
 public:
  explicit RocksDbDriver(const Flags& flags)
      : families_(flags.num_column_families), log_(!flags.disable_wal), reads_only_(flags.readonly) {}

  Status Load(const std::string& path, const std::string& more_settings) {
    Status status = library_.Load(path, BRAIDDB_ROCKSDB_LIBRARY);
    if (status.ok()) status = api_.Load(&library_, families_ > 1);
    if (!status.ok()) return status;
    LookForAssertions();
    if (api_.options_from_string == nullptr) {
      if (!more_settings.empty()) return Status::NotSupported("this library takes no --rocksdb_options");
      return Status::OK();
    }
    settings_ = kSettings;
    if (!more_settings.empty()) settings_ += ";" + more_settings;
    // Creates the options here, so that a wrong option is reported at once.
    rocksdb_options_t* options = nullptr;
    status = MakeOptions(&options);
    if (status.ok()) api_.options_destroy(options);
    return status;
  }

  std::string Version() const override {
    std::error_code error;
    const auto file = std::filesystem::canonical(library_.path(), error);
    return "RocksDB (" + (error ? library_.path() : file.string()) + ")";
  }
  std::string Settings() const override {
    return (settings_.empty() ? "the library's defaults: it takes no options" : settings_) +
           (assertions_ ? "\nWARNING: this RocksDB was built with assertions, as Debian's is, and is slower for it; "
                          "--engine=rocksdb:/path/to/librocksdb.so takes another one"
                        : "");
  }
  std::string Durability(bool sync) const override {
    if (!log_) return "nothing, until it is flushed: there is no log (--disable_wal)";
    return sync ? "power failure: its log is synced before a write is acknowledged (on tmpfs that costs a system call only)"
                : "the process's end: the page cache has its log (more with --sync)";
  }

  Status Open(const std::string& path, bool exists, std::unique_ptr<Engine>* engine) override {
    rocksdb_options_t* options = nullptr;
    Status status = MakeOptions(&options);
    if (!status.ok()) return status;
    api_.options_create_if_missing(options, exists ? 0 : 1);
    api_.options_error_if_exists(options, exists ? 0 : 1);
    char* error = nullptr;
    Families families;
    rocksdb_t* const db =
        families_ == 1 ? OpenPlain(options, path, &error) : OpenFamilies(options, path, exists, &families, &error);
    api_.options_destroy(options);
    if (error != nullptr) return TakeError(api_, error);
    *engine = std::make_unique<RocksDbEngine>(api_, db, std::move(families), log_);
    return Status::OK();
  }
  Status Destroy(const std::string& path) override {
    rocksdb_options_t* const options = api_.options_create();
    char* error = nullptr;
    api_.destroy(options, path.c_str(), &error);
    api_.options_destroy(options);
    return TakeError(api_, error);
  }

 private:
  rocksdb_t* OpenPlain(const rocksdb_options_t* options, const std::string& path, char** error) const {
    return reads_only_ ? api_.open_for_reading(options, path.c_str(), 0, error) : api_.open(options, path.c_str(), error);
  }

  // All families use the same options, and so one cache.
  rocksdb_t* OpenFamilies(rocksdb_options_t* options, const std::string& path, bool exists, Families* families,
                          char** error) const {
    std::vector<std::string> names;
    std::vector<const char*> name_pointers;
    for (size_t i = 0; i < families_; ++i) names.push_back(FamilyName(i));
    for (const std::string& name : names) name_pointers.push_back(name.c_str());
    const std::vector<const rocksdb_options_t*> family_options(families_, options);
    families->resize(families_);
    api_.options_create_missing_families(options, exists ? 0 : 1);
    if (reads_only_) {
      return api_.open_families_for_reading(options, path.c_str(), static_cast<int>(families_), name_pointers.data(),
                                            family_options.data(), families->data(), 0, error);
    }
    return api_.open_families(options, path.c_str(), static_cast<int>(families_), name_pointers.data(), family_options.data(),
                              families->data(), error);
  }

  // A library with assertions exports the class of RocksDB's test hooks.
  void LookForAssertions() {
    void* hooks = nullptr;
    library_.Find("_ZN7rocksdb9SyncPoint11GetInstanceEv", &hooks);
    assertions_ = hooks != nullptr;
  }

  Status MakeOptions(rocksdb_options_t** options) const {
    *options = api_.options_create();
    if (settings_.empty()) return Status::OK();
    rocksdb_options_t* const base = *options;
    *options = api_.options_create();
    char* error = nullptr;
    api_.options_from_string(base, settings_.c_str(), *options, &error);
    api_.options_destroy(base);
    if (error != nullptr) api_.options_destroy(*options);
    return TakeError(api_, error);
  }

  const size_t families_;
  const bool log_;
  const bool reads_only_;
  SharedLibrary library_;
  RocksDbApi api_{};
  std::string settings_;  // empty: the library cannot parse options
  bool assertions_ = false;
};

std::string WithMergeOperator(const Flags& flags) {
  if (flags.merge_operator.empty()) return flags.rocksdb_options;
  return flags.rocksdb_options + (flags.rocksdb_options.empty() ? "" : ";") + "merge_operator=" + flags.merge_operator;
}

}  // namespace

Status MakeRocksDbDriver(const std::string& argument, const Flags& flags, std::unique_ptr<Driver>* driver) {
  // RocksDB's own operator of the same name.
  std::shared_ptr<const MergeOperator> known;
  Status status = FindMergeOperator(flags.merge_operator, &known);
  if (!status.ok()) return status;
  auto made = std::make_unique<RocksDbDriver>(flags);
  status = made->Load(argument, WithMergeOperator(flags));
  if (status.ok()) *driver = std::move(made);
  return status;
}

}  // namespace braiddb::bench

#endif
