// RocksDB and LevelDB by their C interfaces. The declarations are those of rocksdb/c.h and leveldb/c.h, which keep their ABI.
#include <functional>
#include <memory>

#include "tools/store_reader.h"
#include "tools/stores/cursor_reader.h"
#include "tools/stores/shared_object.h"

namespace braiddb::tools {
namespace {

struct Options;
struct ReadOptions;
struct Database;
struct Family;
struct Cursor;

// The functions that both libraries have, under their prefixes.
struct Api {
  SharedObject library;
  Options* (*options_create)();
  void (*options_destroy)(Options*);
  ReadOptions* (*readoptions_create)();
  void (*readoptions_destroy)(ReadOptions*);
  void (*readoptions_set_verify_checksums)(ReadOptions*, unsigned char);
  void (*close)(Database*);
  void (*free)(void*);
  void (*iter_seek)(Cursor*, const char*, size_t);
  void (*iter_next)(Cursor*);
  unsigned char (*iter_valid)(const Cursor*);
  const char* (*iter_key)(const Cursor*, size_t*);
  const char* (*iter_value)(const Cursor*, size_t*);
  void (*iter_get_error)(const Cursor*, char**);
  void (*iter_destroy)(Cursor*);

  Status Find(const std::string& prefix) {
    Status status;
    const auto find = [&](const char* name, auto** function) {
      if (status.ok()) status = library.Find((prefix + name).c_str(), function);
    };
    find("options_create", &options_create);
    find("options_destroy", &options_destroy);
    find("readoptions_create", &readoptions_create);
    find("readoptions_destroy", &readoptions_destroy);
    find("readoptions_set_verify_checksums", &readoptions_set_verify_checksums);
    find("close", &close);
    find("free", &free);
    find("iter_seek", &iter_seek);
    find("iter_next", &iter_next);
    find("iter_valid", &iter_valid);
    find("iter_key", &iter_key);
    find("iter_value", &iter_value);
    find("iter_get_error", &iter_get_error);
    find("iter_destroy", &iter_destroy);
    return status;
  }
  std::shared_ptr<Options> MakeOptions() const { return {options_create(), options_destroy}; }
  std::shared_ptr<ReadOptions> MakeReadOptions() const { return {readoptions_create(), readoptions_destroy}; }
  Status TakeError(const std::string& path, char* error) const {
    if (error == nullptr) return Status::OK();
    const Status status = Status::IOError(path + ": " + error);
    free(error);
    return status;
  }
};

class LsmReader : public CursorReader {
 public:
  using MakeCursor = std::function<Cursor*(size_t family)>;
  using CloseFamilies = std::function<void()>;

  LsmReader(std::string path, std::vector<std::string> families, const Api& api, Database* db, MakeCursor make,
            CloseFamilies close_families)
      : CursorReader(std::move(families)),
        path_(std::move(path)),
        api_(api),
        db_(db),
        make_(std::move(make)),
        close_families_(std::move(close_families)) {}
  ~LsmReader() override {
    if (cursor_ != nullptr) api_.iter_destroy(cursor_);
    if (close_families_) close_families_();
    api_.close(db_);
  }

 protected:
  Status Seek(size_t family, Slice key) override {
    if (cursor_ != nullptr) api_.iter_destroy(cursor_);
    cursor_ = make_(family);
    api_.iter_seek(cursor_, key.data() == nullptr ? "" : key.data(), key.size());
    return Check();
  }
  Status Next() override {
    api_.iter_next(cursor_);
    return Check();
  }
  bool Current(Slice* key, Slice* value) const override {
    if (cursor_ == nullptr || api_.iter_valid(cursor_) == 0) return false;
    size_t size = 0;
    const char* data = api_.iter_key(cursor_, &size);
    *key = Slice(data, size);
    data = api_.iter_value(cursor_, &size);
    *value = Slice(data, size);
    return true;
  }

 private:
  Status Check() const {
    char* error = nullptr;
    if (api_.iter_valid(cursor_) == 0) api_.iter_get_error(cursor_, &error);
    return api_.TakeError(path_, error);
  }

  const std::string path_;
  const Api api_;
  Database* const db_;
  const MakeCursor make_;
  const CloseFamilies close_families_;
  Cursor* cursor_ = nullptr;
};

}  // namespace

Status OpenRocksDb(const std::string& path, const std::string& library, std::unique_ptr<RecordReader>* reader,
                   uint64_t* entries) {
  Api api;
  Status status = api.library.Load(library,
                                   {"librocksdb.so", "librocksdb.so.7.8", "librocksdb.so.8.9", "librocksdb.so.9.10",
                                    "librocksdb.so.7", "librocksdb.so.8", "librocksdb.so.9", "librocksdb.so.10"},
                                   "librocksdb7.8");
  if (status.ok()) status = api.Find("rocksdb_");
  char** (*list_families)(const Options*, const char*, size_t*, char**) = nullptr;
  void (*list_destroy)(char**, size_t) = nullptr;
  Database* (*open)(const Options*, const char*, int, const char* const*, const Options* const*, Family**, unsigned char,
                    char**) = nullptr;
  Cursor* (*create_iterator)(Database*, const ReadOptions*, Family*) = nullptr;
  void (*family_destroy)(Family*) = nullptr;
  int (*property_int)(Database*, Family*, const char*, uint64_t*) = nullptr;
  if (status.ok()) status = api.library.Find("rocksdb_list_column_families", &list_families);
  if (status.ok()) status = api.library.Find("rocksdb_list_column_families_destroy", &list_destroy);
  if (status.ok()) status = api.library.Find("rocksdb_open_for_read_only_column_families", &open);
  if (status.ok()) status = api.library.Find("rocksdb_create_iterator_cf", &create_iterator);
  if (status.ok()) status = api.library.Find("rocksdb_column_family_handle_destroy", &family_destroy);
  if (status.ok()) status = api.library.Find("rocksdb_property_int_cf", &property_int);
  if (!status.ok()) return status;

  char* error = nullptr;
  size_t count = 0;
  const std::shared_ptr<Options> options = api.MakeOptions();
  char** const names = list_families(options.get(), path.c_str(), &count, &error);
  if (error != nullptr) return api.TakeError(path, error);
  const std::vector<std::string> families(names, names + count);
  const std::vector<const Options*> all(count, options.get());
  std::vector<Family*> handles(count);
  Database* const db = open(options.get(), path.c_str(), static_cast<int>(count), names, all.data(), handles.data(), 0, &error);
  list_destroy(names, count);
  if (error != nullptr) return api.TakeError(path, error);
  for (Family* handle : handles) {
    uint64_t keys = 0;
    if (property_int(db, handle, "rocksdb.estimate-num-keys", &keys) == 0) *entries += keys;
  }
  const std::shared_ptr<ReadOptions> read = api.MakeReadOptions();
  *reader = std::make_unique<LsmReader>(
      path, families, api, db, [=](size_t family) { return create_iterator(db, read.get(), handles[family]); },
      [=] {
        for (Family* handle : handles) family_destroy(handle);
      });
  return Status::OK();
}

Status OpenLevelDb(const std::string& path, const std::string& library, std::unique_ptr<RecordReader>* reader, uint64_t*) {
  Api api;
  Status status = api.library.Load(library, {"libleveldb.so", "libleveldb.so.1d", "libleveldb.so.1"}, "libleveldb1d");
  if (status.ok()) status = api.Find("leveldb_");
  Database* (*open)(const Options*, const char*, char**) = nullptr;
  Cursor* (*create_iterator)(Database*, const ReadOptions*) = nullptr;
  if (status.ok()) status = api.library.Find("leveldb_open", &open);
  if (status.ok()) status = api.library.Find("leveldb_create_iterator", &create_iterator);
  if (!status.ok()) return status;
  char* error = nullptr;
  Database* const db = open(api.MakeOptions().get(), path.c_str(), &error);
  if (error != nullptr) return api.TakeError(path, error);
  const std::shared_ptr<ReadOptions> read = api.MakeReadOptions();
  api.readoptions_set_verify_checksums(read.get(), 1);
  *reader = std::make_unique<LsmReader>(
      path, std::vector<std::string>{"default"}, api, db, [=](size_t) { return create_iterator(db, read.get()); }, nullptr);
  return Status::OK();
}

}  // namespace braiddb::tools
