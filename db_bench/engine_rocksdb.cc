// The engine rocksdb: RocksDB's C interface, of whatever library is loaded for it. A library that lacks a function that is needed
// is refused; the one that sets options may be missing.
#include "db_bench/engine.h"

#ifndef BRAIDDB_ROCKSDB_LIBRARY

namespace braiddb::bench {

Status MakeRocksDbDriver(const std::string&, const Flags&, std::unique_ptr<Driver>*) {
  return Status::NotSupported("rocksdb is not built in: rocksdb/c.h (librocksdb-dev) was not there when db_bench was configured");
}

}  // namespace braiddb::bench

#else

#include <rocksdb/c.h>

#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "db_bench/leveldb_api.h"
#include "db_bench/shared_library.h"

namespace braiddb::bench {

namespace {

// What RocksDB's guide to tuning says for a first setup: more background jobs, bytes_per_sync, filters of 10 bits, blocks of 16
// KiB, format 5, level_compaction_dynamic_level_bytes; a cache that holds the data; and no compression, since values here do not
// compress.
constexpr const char* kSettings =
    "max_background_jobs=6;bytes_per_sync=1048576;compaction_pri=kMinOverlappingRatio;level_compaction_dynamic_level_bytes=true;"
    "compression=kNoCompression;block_based_table_factory={filter_policy=bloomfilter:10:false;block_size=16384;"
    "block_cache=1G;cache_index_and_filter_blocks=true;pin_l0_filter_and_index_blocks_in_cache=true;format_version=5}";

struct RocksDbApi {
  using Db = rocksdb_t;
  using Iterator = rocksdb_iterator_t;
  using WriteOptions = rocksdb_writeoptions_t;
  using ReadOptions = rocksdb_readoptions_t;
  using WriteBatch = rocksdb_writebatch_t;

#define BRAIDDB_DECLARE(name, there) decltype(&::rocksdb_##there) name;
  BRAIDDB_LEVELDB_API(BRAIDDB_DECLARE)
  BRAIDDB_DECLARE(get_pinned, get_pinned)
  BRAIDDB_DECLARE(multi_get, multi_get)
  BRAIDDB_DECLARE(pinned_value, pinnableslice_value)
  BRAIDDB_DECLARE(pinned_destroy, pinnableslice_destroy)
  BRAIDDB_DECLARE(flush, flush)
  BRAIDDB_DECLARE(flush_options_create, flushoptions_create)
  BRAIDDB_DECLARE(flush_options_destroy, flushoptions_destroy)
  BRAIDDB_DECLARE(options_from_string, get_options_from_string)  // null if the library has none
#undef BRAIDDB_DECLARE

  Status Load(SharedLibrary* library) {
#define BRAIDDB_FIND(name, there) library->Find("rocksdb_" #there, &name);
    BRAIDDB_LEVELDB_API(BRAIDDB_FIND)
    BRAIDDB_FIND(get_pinned, get_pinned)
    BRAIDDB_FIND(multi_get, multi_get)
    BRAIDDB_FIND(pinned_value, pinnableslice_value)
    BRAIDDB_FIND(pinned_destroy, pinnableslice_destroy)
    BRAIDDB_FIND(flush, flush)
    BRAIDDB_FIND(flush_options_create, flushoptions_create)
    BRAIDDB_FIND(flush_options_destroy, flushoptions_destroy)
    if (!library->missing().empty()) {
      return Status::NotSupported(library->path() + " is no RocksDB: it has no " + library->missing().front());
    }
    BRAIDDB_FIND(options_from_string, get_options_from_string)
#undef BRAIDDB_FIND
    return Status::OK();
  }

  Status Get(Db* db, const ReadOptions* options, Slice key, std::string* value) const {
    char* error = nullptr;
    rocksdb_pinnableslice_t* const pinned = get_pinned(db, options, key.data(), key.size(), &error);
    if (pinned == nullptr) return error == nullptr ? Status::NotFound() : TakeError(*this, error);
    size_t size = 0;
    const char* const data = pinned_value(pinned, &size);
    value->assign(data, size);
    pinned_destroy(pinned);
    return Status::OK();
  }

  void MultiGet(Db* db, const ReadOptions* options, const std::vector<Slice>& keys, MultiGetBuffers* buffers,
                std::vector<std::string>* values, std::vector<Status>* statuses) const {
    buffers->Take(keys);
    multi_get(db, options, keys.size(), buffers->keys.data(), buffers->key_sizes.data(), buffers->values.data(),
              buffers->value_sizes.data(), buffers->errors.data());
    values->resize(keys.size());
    statuses->resize(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      char* const value = buffers->values[i];
      if (char* const error = buffers->errors[i]) {
        (*statuses)[i] = TakeError(*this, error);
      } else if (value == nullptr) {
        (*statuses)[i] = Status::NotFound();
      } else {
        (*statuses)[i] = Status::OK();
        (*values)[i].assign(value, buffers->value_sizes[i]);
      }
      if (value != nullptr) free(value);
    }
  }
};

class RocksDbEngine final : public LevelDbApiEngine<RocksDbApi> {
 public:
  using LevelDbApiEngine::LevelDbApiEngine;

  Status Flush() override {
    rocksdb_flushoptions_t* const options = api_.flush_options_create();
    char* error = nullptr;
    api_.flush(db_, options, &error);
    api_.flush_options_destroy(options);
    return TakeError(api_, error);
  }
  // Properties say whether there is work, as for RocksDB's own db_bench. What ends may have begun something else: until twice in
  // turn there is none of any kind.
  Status WaitForCompaction() override {
    constexpr std::chrono::milliseconds kPause{20};
    for (int quiet = 0; quiet < 2; std::this_thread::sleep_for(kPause)) quiet = HasWork() ? 0 : quiet + 1;
    return Status::OK();
  }
  bool GetText(std::string_view name, std::string* text) override { return GetProperty("rocksdb." + std::string(name), text); }

 private:
  bool HasWork() {
    for (const char* property : {"rocksdb.mem-table-flush-pending", "rocksdb.num-running-flushes", "rocksdb.compaction-pending",
                                 "rocksdb.num-running-compactions"}) {
      std::string text;
      if (GetProperty(property, &text) && text != "0") return true;
    }
    return false;
  }
};

class RocksDbDriver final : public Driver {
 public:
  Status Load(const std::string& path, const std::string& more_settings) {
    Status status = library_.Load(path, BRAIDDB_ROCKSDB_LIBRARY);
    if (status.ok()) status = api_.Load(&library_);
    if (!status.ok()) return status;
    LookForAssertions();
    if (api_.options_from_string == nullptr) {
      if (!more_settings.empty()) return Status::NotSupported("this library takes no --rocksdb_options");
      return Status::OK();
    }
    settings_ = kSettings;
    if (!more_settings.empty()) settings_ += ";" + more_settings;
    // Here, so that a wrong option is told at once.
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
    rocksdb_t* const db = api_.open(options, path.c_str(), &error);
    api_.options_destroy(options);
    if (error != nullptr) return TakeError(api_, error);
    *engine = std::make_unique<RocksDbEngine>(api_, db);
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
  // A library with assertions has the class behind RocksDB's test hooks.
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

  SharedLibrary library_;
  RocksDbApi api_{};
  std::string settings_;  // empty: the library takes none
  bool assertions_ = false;
};

}  // namespace

Status MakeRocksDbDriver(const std::string& argument, const Flags& flags, std::unique_ptr<Driver>* driver) {
  auto made = std::make_unique<RocksDbDriver>();
  Status status = made->Load(argument, flags.rocksdb_options);
  if (status.ok()) *driver = std::move(made);
  return status;
}

}  // namespace braiddb::bench

#endif
