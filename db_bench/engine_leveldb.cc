// The engine leveldb: LevelDB's C interface, from a library that is loaded at run time.
#include "db_bench/engine.h"

#ifndef BRAIDDB_LEVELDB_LIBRARY

namespace braiddb::bench {

Status MakeLevelDbDriver(const std::string&, const Flags&, std::unique_ptr<Driver>*) {
  return Status::NotSupported("leveldb is not built in: leveldb/c.h (libleveldb-dev) was not there when db_bench was configured");
}

}  // namespace braiddb::bench

#else

#include <leveldb/c.h>

#include <filesystem>
#include <utility>

#include "db_bench/leveldb_api.h"
#include "db_bench/shared_library.h"

namespace braiddb::bench {

namespace {

constexpr size_t kWriteBuffer = size_t{64} << 20;
constexpr size_t kCache = size_t{1} << 30;
constexpr int kFilterBits = 10;

struct LevelDbApi {
  using Db = leveldb_t;
  using Iterator = leveldb_iterator_t;
  using WriteOptions = leveldb_writeoptions_t;
  using ReadOptions = leveldb_readoptions_t;
  using WriteBatch = leveldb_writebatch_t;

#define BRAIDDB_LEVELDB_ONLY(F)                          \
  F(get, get)                                            \
  F(options_filter, options_set_filter_policy)           \
  F(options_cache, options_set_cache)                    \
  F(options_write_buffer, options_set_write_buffer_size) \
  F(options_compression, options_set_compression)        \
  F(filter_create, filterpolicy_create_bloom)            \
  F(cache_create, cache_create_lru)                      \
  F(filter_destroy, filterpolicy_destroy)                \
  F(cache_destroy, cache_destroy)                        \
  F(major_version, major_version)                        \
  F(minor_version, minor_version)
#define BRAIDDB_DECLARE(name, there) decltype(&::leveldb_##there) name;
  BRAIDDB_LEVELDB_API(BRAIDDB_DECLARE)
  BRAIDDB_LEVELDB_ONLY(BRAIDDB_DECLARE)
#undef BRAIDDB_DECLARE

  Status Load(SharedLibrary* library) {
#define BRAIDDB_FIND(name, there) library->Find("leveldb_" #there, &name);
    BRAIDDB_LEVELDB_API(BRAIDDB_FIND)
    BRAIDDB_LEVELDB_ONLY(BRAIDDB_FIND)
#undef BRAIDDB_FIND
    if (library->missing().empty()) return Status::OK();
    return Status::NotSupported(library->path() + " is not LevelDB: it lacks " + library->missing().front());
  }

  Status Get(Db* db, const ReadOptions* options, Slice key, std::string* value) const {
    char* error = nullptr;
    size_t size = 0;
    char* const data = get(db, options, key.data(), key.size(), &size, &error);
    if (data == nullptr) return error == nullptr ? Status::NotFound() : TakeError(*this, error);
    value->assign(data, size);
    free(data);
    return Status::OK();
  }
};

class LevelDbEngine final : public LevelDbApiEngine<LevelDbApi> {
 public:
  using LevelDbApiEngine::LevelDbApiEngine;

  Status Flush() override { return Status::NotSupported("LevelDB has no such call"); }
  Status WaitForCompaction() override { return Status::NotSupported("LevelDB does not tell whether it is compacting"); }
  bool GetText(std::string_view name, std::string* text) override {
    return GetProperty(name == "levelstats" ? "leveldb.sstables" : "leveldb." + std::string(name), text);
  }
};

class LevelDbDriver final : public Driver {
 public:
  ~LevelDbDriver() override {
    if (options_ == nullptr) return;
    api_.options_destroy(options_);
    api_.cache_destroy(cache_);
    api_.filter_destroy(filter_);
  }

  Status Load(const std::string& path) {
    Status status = library_.Load(path, BRAIDDB_LEVELDB_LIBRARY);
    if (status.ok()) status = api_.Load(&library_);
    if (!status.ok()) return status;
    options_ = api_.options_create();
    filter_ = api_.filter_create(kFilterBits);
    cache_ = api_.cache_create(kCache);
    api_.options_filter(options_, filter_);
    api_.options_cache(options_, cache_);
    api_.options_write_buffer(options_, kWriteBuffer);
    api_.options_compression(options_, leveldb_no_compression);
    return Status::OK();
  }

  std::string Version() const override {
    return "LevelDB " + std::to_string(api_.major_version()) + "." + std::to_string(api_.minor_version()) + " (" +
           library_.path() + ")";
  }
  std::string Settings() const override {
    return "write_buffer_size=64M; block_cache=1G; bloom filter of 10 bits; no compression";
  }
  std::string Durability(bool sync) const override {
    return sync ? "power failure: its log is synced before a write is acknowledged (on tmpfs that costs a system call only)"
                : "the process's end: the page cache has its log (more with --sync)";
  }

  Status Open(const std::string& path, bool exists, std::unique_ptr<Engine>* engine) override {
    api_.options_create_if_missing(options_, exists ? 0 : 1);
    api_.options_error_if_exists(options_, exists ? 0 : 1);
    char* error = nullptr;
    leveldb_t* const db = api_.open(options_, path.c_str(), &error);
    if (error != nullptr) return TakeError(api_, error);
    *engine = std::make_unique<LevelDbEngine>(api_, db);
    return Status::OK();
  }
  Status Destroy(const std::string& path) override {
    char* error = nullptr;
    api_.destroy(options_, path.c_str(), &error);
    return TakeError(api_, error);
  }

 private:
  SharedLibrary library_;
  LevelDbApi api_{};
  leveldb_options_t* options_ = nullptr;  // null: not loaded
  leveldb_filterpolicy_t* filter_ = nullptr;
  leveldb_cache_t* cache_ = nullptr;
};

}  // namespace

Status MakeLevelDbDriver(const std::string& argument, const Flags&, std::unique_ptr<Driver>* driver) {
  auto made = std::make_unique<LevelDbDriver>();
  Status status = made->Load(argument);
  if (status.ok()) *driver = std::move(made);
  return status;
}

}  // namespace braiddb::bench

#endif
