// LMDB by its C interface. The declarations are those of lmdb.h, which keeps its ABI.
#include <sys/stat.h>

#include "tools/store_reader.h"
#include "tools/stores/cursor_reader.h"
#include "tools/stores/shared_object.h"

namespace braiddb::tools {
namespace {

struct Environment;
struct Transaction;
struct Cursor;
using Handle = unsigned int;
struct Value {  // MDB_val
  size_t size;
  void* data;
};
struct Stat {  // MDB_stat
  unsigned int page_size;
  unsigned int depth;
  size_t branch_pages;
  size_t leaf_pages;
  size_t overflow_pages;
  size_t entries;
};

constexpr unsigned kNoSubdirectory = 0x4000;
constexpr unsigned kReadOnly = 0x20000;
constexpr int kNotFound = -30798;
constexpr int kFirst = 0;
constexpr int kNext = 8;
constexpr int kSetRange = 17;
constexpr Handle kMaxNamed = 4096;

struct LmdbApi {
  SharedObject library;
  int (*env_create)(Environment**);
  int (*env_set_maxdbs)(Environment*, Handle);
  int (*env_open)(Environment*, const char*, unsigned, mode_t);
  void (*env_close)(Environment*);
  int (*txn_begin)(Environment*, Transaction*, unsigned, Transaction**);
  void (*txn_abort)(Transaction*);
  int (*dbi_open)(Transaction*, const char*, unsigned, Handle*);
  int (*stat)(Transaction*, Handle, Stat*);
  int (*cursor_open)(Transaction*, Handle, Cursor**);
  void (*cursor_close)(Cursor*);
  int (*cursor_get)(Cursor*, Value*, Value*, int);
  char* (*strerror)(int);

  Status Find() {
    Status status;
    const auto find = [&](const char* name, auto** function) {
      if (status.ok()) status = library.Find(name, function);
    };
    find("mdb_env_create", &env_create);
    find("mdb_env_set_maxdbs", &env_set_maxdbs);
    find("mdb_env_open", &env_open);
    find("mdb_env_close", &env_close);
    find("mdb_txn_begin", &txn_begin);
    find("mdb_txn_abort", &txn_abort);
    find("mdb_dbi_open", &dbi_open);
    find("mdb_stat", &stat);
    find("mdb_cursor_open", &cursor_open);
    find("mdb_cursor_close", &cursor_close);
    find("mdb_cursor_get", &cursor_get);
    find("mdb_strerror", &strerror);
    return status;
  }
  Status Check(const std::string& path, int error) const {
    return error == 0 ? Status::OK() : Status::IOError(path + ": " + strerror(error));
  }
};

// The environment with one transaction that reads. The default family's records whose keys name databases are left out, as
// mdb_dump does: they are LMDB's own.
class LmdbReader final : public CursorReader {
 public:
  LmdbReader(std::string path, const LmdbApi& api, Environment* environment, Transaction* transaction,
             std::vector<std::string> names, std::vector<Handle> handles)
      : CursorReader(names),
        path_(std::move(path)),
        api_(api),
        environment_(environment),
        transaction_(transaction),
        names_(std::move(names)),
        handles_(std::move(handles)) {}
  ~LmdbReader() override {
    if (cursor_ != nullptr) api_.cursor_close(cursor_);
    api_.txn_abort(transaction_);
    api_.env_close(environment_);
  }

 protected:
  Status Seek(size_t family, Slice key) override {
    if (cursor_ != nullptr) api_.cursor_close(cursor_);
    cursor_ = nullptr;
    family_ = family;
    if (Status status = api_.Check(path_, api_.cursor_open(transaction_, handles_[family], &cursor_)); !status.ok())
      return status;
    key_ = {key.size(), const_cast<char*>(key.data())};
    return Settle(api_.cursor_get(cursor_, &key_, &value_, key.empty() ? kFirst : kSetRange));
  }
  Status Next() override { return Settle(api_.cursor_get(cursor_, &key_, &value_, kNext)); }
  bool Current(Slice* key, Slice* value) const override {
    if (!is_valid_) return false;
    *key = Slice(static_cast<const char*>(key_.data), key_.size);
    *value = Slice(static_cast<const char*>(value_.data), value_.size);
    return true;
  }

 private:
  bool NamesDatabase() const {
    const Slice key(static_cast<const char*>(key_.data), key_.size);
    for (size_t i = 1; i < names_.size(); ++i) {
      if (key == names_[i]) return true;
    }
    return false;
  }
  Status Settle(int error) {
    while (error == 0 && family_ == 0 && NamesDatabase()) error = api_.cursor_get(cursor_, &key_, &value_, kNext);
    is_valid_ = error == 0;
    return error == kNotFound ? Status::OK() : api_.Check(path_, error);
  }

  const std::string path_;
  const LmdbApi api_;
  Environment* const environment_;
  Transaction* const transaction_;
  const std::vector<std::string> names_;
  const std::vector<Handle> handles_;
  size_t family_ = 0;
  Cursor* cursor_ = nullptr;
  bool is_valid_ = false;
  Value key_{};
  Value value_{};
};

// Adds the named databases: keys of the main database that dbi_open accepts.
Status FindNamed(const std::string& path, const LmdbApi& api, Transaction* transaction, std::vector<std::string>* names,
                 std::vector<Handle>* handles) {
  Cursor* cursor = nullptr;
  Status status = api.Check(path, api.cursor_open(transaction, handles->front(), &cursor));
  if (!status.ok()) return status;
  Value key{};
  Value value{};
  constexpr size_t kDatabaseRecord = 48;  // MDB_db
  int error = api.cursor_get(cursor, &key, &value, kFirst);
  for (; error == 0; error = api.cursor_get(cursor, &key, &value, kNext)) {
    const std::string name(static_cast<const char*>(key.data), key.size);
    Handle handle = 0;
    if (value.size != kDatabaseRecord || name.empty() || name.find('\0') != std::string::npos) continue;
    if (api.dbi_open(transaction, name.c_str(), 0, &handle) != 0) continue;
    names->push_back(name);
    handles->push_back(handle);
  }
  api.cursor_close(cursor);
  return error == kNotFound ? Status::OK() : api.Check(path, error);
}

}  // namespace

Status OpenLmdb(const std::string& path, const std::string& library, std::unique_ptr<RecordReader>* reader, uint64_t* entries) {
  LmdbApi api;
  Status status = api.library.Load(library, {"liblmdb.so", "liblmdb.so.0"}, "liblmdb0");
  if (status.ok()) status = api.Find();
  Environment* environment = nullptr;
  if (status.ok()) status = api.Check(path, api.env_create(&environment));
  if (!status.ok()) return status;
  struct stat file {};
  const bool is_file = ::stat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode);
  Transaction* transaction = nullptr;
  status = api.Check(path, api.env_set_maxdbs(environment, kMaxNamed));
  if (status.ok())
    status = api.Check(path, api.env_open(environment, path.c_str(), kReadOnly | (is_file ? kNoSubdirectory : 0), 0600));
  if (status.ok()) status = api.Check(path, api.txn_begin(environment, nullptr, kReadOnly, &transaction));
  std::vector<std::string> names{"default"};
  std::vector<Handle> handles(1);
  if (status.ok()) status = api.Check(path, api.dbi_open(transaction, nullptr, 0, &handles[0]));
  if (status.ok()) status = FindNamed(path, api, transaction, &names, &handles);
  if (!status.ok()) {
    if (transaction != nullptr) api.txn_abort(transaction);
    api.env_close(environment);
    return status;
  }
  for (const Handle handle : handles) {
    Stat counts{};
    if (api.stat(transaction, handle, &counts) == 0) *entries += counts.entries;
  }
  *reader = std::make_unique<LmdbReader>(path, api, environment, transaction, names, handles);
  return Status::OK();
}

}  // namespace braiddb::tools
