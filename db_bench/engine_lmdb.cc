// The engine lmdb: LMDB with a writable map, and one transaction per write or batch. Each reader has one read transaction and
// renews it for each lookup, as LMDB's authors recommend for frequent reads.
#include "db_bench/engine.h"

#ifndef BRAIDDB_LMDB_LIBRARY

namespace braiddb::bench {

Status MakeLmdbDriver(const std::string&, const Flags&, std::unique_ptr<Driver>*) {
  return Status::NotSupported("lmdb is not built in: lmdb.h (liblmdb-dev) was not there when db_bench was configured");
}

}  // namespace braiddb::bench

#else

#include <lmdb.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "db_bench/families.h"
#include "db_bench/shared_library.h"
#include "util/format.h"

namespace braiddb::bench {

namespace {

// Size of the address space, not of memory. A database that reaches it refuses writes.
constexpr size_t kMapSize = size_t{64} << 30;
// Includes the readers of iterators.
constexpr unsigned kMaxReaders = 8192;

struct LmdbApi {
#define BRAIDDB_LMDB_API(F) \
  F(env_create)             \
  F(env_set_mapsize)        \
  F(env_set_maxreaders)     \
  F(env_set_maxdbs)         \
  F(env_open)               \
  F(env_close)              \
  F(env_set_flags)          \
  F(stat)                   \
  F(txn_begin)              \
  F(txn_commit)             \
  F(txn_abort)              \
  F(txn_reset) F(txn_renew) F(dbi_open) F(put) F(get) F(del) F(cursor_open) F(cursor_close) F(cursor_get) F(strerror) F(version)
#define BRAIDDB_DECLARE(name) decltype(&::mdb_##name) name;
  BRAIDDB_LMDB_API(BRAIDDB_DECLARE)
#undef BRAIDDB_DECLARE

  Status Load(SharedLibrary* library) {
#define BRAIDDB_FIND(name) library->Find("mdb_" #name, &name);
    BRAIDDB_LMDB_API(BRAIDDB_FIND)
#undef BRAIDDB_FIND
    if (library->missing().empty()) return Status::OK();
    return Status::NotSupported(library->path() + " is not LMDB: it lacks " + library->missing().front());
  }

  Status ToStatus(int code) const {
    if (code == 0) return Status::OK();
    return code == MDB_NOTFOUND ? Status::NotFound() : Status::IOError(strerror(code));
  }
};

MDB_val ToVal(Slice slice) { return {slice.size(), const_cast<char*>(slice.data())}; }
Slice ToSlice(const MDB_val& val) { return {static_cast<const char*>(val.mv_data), val.mv_size}; }

struct LmdbHandle {
  const LmdbApi& api;
  MDB_env* env;
  std::vector<MDB_dbi> families;  // the default family first

  MDB_dbi DatabaseOf(Slice key) const {
    return families.size() == 1 ? families.front() : families[FamilyOf(key, families.size())];
  }
};

// Iterates over the default family.
class LmdbIterator final : public Iterator {
 public:
  explicit LmdbIterator(const LmdbHandle& handle) : api_(handle.api) {
    code_ = api_.txn_begin(handle.env, nullptr, MDB_RDONLY, &txn_);
    if (code_ == 0) code_ = api_.cursor_open(txn_, handle.families.front(), &cursor_);
  }
  ~LmdbIterator() override {
    if (cursor_ != nullptr) api_.cursor_close(cursor_);
    if (txn_ != nullptr) api_.txn_abort(txn_);
  }

  bool Valid() const override { return code_ == 0 && positioned_; }
  void SeekToFirst() override { Move(MDB_FIRST); }
  void SeekToLast() override { Move(MDB_LAST); }
  void Seek(Slice target) override {
    key_ = ToVal(target);
    Move(MDB_SET_RANGE);
  }
  void SeekForPrev(Slice target) override {
    Seek(target);
    if (!Valid()) {
      SeekToLast();
    } else if (key() != target) {
      Prev();
    }
  }
  void Next() override { Move(MDB_NEXT); }
  void Prev() override { Move(MDB_PREV); }
  Slice key() const override { return ToSlice(key_); }
  Slice value() const override { return ToSlice(value_); }
  Status status() const override { return code_ == MDB_NOTFOUND ? Status::OK() : api_.ToStatus(code_); }

 private:
  void Move(MDB_cursor_op operation) {
    if (cursor_ == nullptr) return;
    code_ = api_.cursor_get(cursor_, &key_, &value_, operation);
    positioned_ = code_ == 0;
  }

  const LmdbApi& api_;
  MDB_txn* txn_ = nullptr;
  MDB_cursor* cursor_ = nullptr;
  int code_ = 0;
  bool positioned_ = false;
  MDB_val key_{};
  MDB_val value_{};
};

class LmdbSession final : public Session {
 public:
  explicit LmdbSession(const LmdbHandle& handle) : handle_(handle), api_(handle.api) {}
  ~LmdbSession() override {
    if (reader_ != nullptr) api_.txn_abort(reader_);
  }

  Status Put(Slice key, Slice value) override {
    return InTransaction([&](MDB_txn* txn) { return PutIn(txn, key, value); });
  }
  Status Delete(Slice key) override {
    return InTransaction([&](MDB_txn* txn) { return DeleteIn(txn, key); });
  }
  Status Write(const std::vector<Update>& updates) override {
    return InTransaction([&](MDB_txn* txn) {
      for (const Update& update : updates) {
        const int code = update.removes ? DeleteIn(txn, update.key) : PutIn(txn, update.key, update.value);
        if (code != 0) return code;
      }
      return 0;
    });
  }
  Status Get(Slice key, std::string* value) override {
    const int begun = BeginRead();
    if (begun != 0) return api_.ToStatus(begun);
    Status status = GetInRead(key, value);
    api_.txn_reset(reader_);
    return status;
  }
  // Uses one transaction for all keys.
  void MultiGet(const std::vector<Slice>& keys, std::vector<std::string>* values, std::vector<Status>* statuses) override {
    values->resize(keys.size());
    const int begun = BeginRead();
    statuses->assign(keys.size(), api_.ToStatus(begun));
    if (begun != 0) return;
    for (size_t i = 0; i < keys.size(); ++i) (*statuses)[i] = GetInRead(keys[i], &(*values)[i]);
    api_.txn_reset(reader_);
  }
  std::unique_ptr<Iterator> NewIterator() override { return std::make_unique<LmdbIterator>(handle_); }

 private:
  int BeginRead() {
    return reader_ != nullptr ? api_.txn_renew(reader_) : api_.txn_begin(handle_.env, nullptr, MDB_RDONLY, &reader_);
  }
  Status GetInRead(Slice key, std::string* value) const {
    MDB_val found_key = ToVal(key), found;
    const int code = api_.get(reader_, handle_.DatabaseOf(key), &found_key, &found);
    if (code == 0) value->assign(static_cast<const char*>(found.mv_data), found.mv_size);
    return api_.ToStatus(code);
  }
  template <class Body>
  Status InTransaction(Body body) {
    MDB_txn* txn = nullptr;
    int code = api_.txn_begin(handle_.env, nullptr, 0, &txn);
    if (code != 0) return api_.ToStatus(code);
    code = body(txn);
    if (code == 0) return api_.ToStatus(api_.txn_commit(txn));
    api_.txn_abort(txn);
    return api_.ToStatus(code);
  }
  int PutIn(MDB_txn* txn, Slice key, Slice value) const {
    MDB_val key_val = ToVal(key), value_val = ToVal(value);
    return api_.put(txn, handle_.DatabaseOf(key), &key_val, &value_val, 0);
  }
  int DeleteIn(MDB_txn* txn, Slice key) const {
    MDB_val key_val = ToVal(key);
    const int code = api_.del(txn, handle_.DatabaseOf(key), &key_val, nullptr);
    return code == MDB_NOTFOUND ? 0 : code;
  }

  const LmdbHandle handle_;
  const LmdbApi& api_;
  MDB_txn* reader_ = nullptr;  // between two lookups it holds no pages
};

class LmdbEngine final : public Engine {
 public:
  explicit LmdbEngine(const LmdbHandle& handle) : handle_(handle) {}
  ~LmdbEngine() override {
    if (handle_.env != nullptr) handle_.api.env_close(handle_.env);
  }

  Status NewSession(bool sync, std::unique_ptr<Session>* session) override {
    *session = std::make_unique<LmdbSession>(handle_);
    return handle_.api.ToStatus(handle_.api.env_set_flags(handle_.env, MDB_NOSYNC, sync ? 0 : 1));
  }
  Status Flush() override { return Status::NotSupported("LMDB has no memtables"); }
  Status Compact() override { return Status::NotSupported("LMDB has nothing to compact"); }
  Status WaitForCompaction() override { return Status::NotSupported("LMDB does nothing in the background"); }
  bool GetText(std::string_view name, std::string* text) override {
    MDB_stat stat{};
    if (name != "stats" || !Sum(&stat)) return false;
    *text = Format("entries %zu, depth %u, pages of %u bytes: %zu branch, %zu leaf, %zu overflow", stat.ms_entries, stat.ms_depth,
                   stat.ms_psize, stat.ms_branch_pages, stat.ms_leaf_pages, stat.ms_overflow_pages);
    return true;
  }
  Status Close() override {
    handle_.api.env_close(std::exchange(handle_.env, nullptr));
    return Status::OK();
  }

 private:
  // Sums the statistics of all families. The depth is the maximum.
  bool Sum(MDB_stat* sum) const {
    const LmdbApi& api = handle_.api;
    MDB_txn* txn = nullptr;
    if (api.txn_begin(handle_.env, nullptr, MDB_RDONLY, &txn) != 0) return false;
    int code = 0;
    for (const MDB_dbi family : handle_.families) {
      MDB_stat stat;
      code = api.stat(txn, family, &stat);
      if (code != 0) break;
      sum->ms_psize = stat.ms_psize;
      sum->ms_depth = std::max(sum->ms_depth, stat.ms_depth);
      sum->ms_branch_pages += stat.ms_branch_pages;
      sum->ms_leaf_pages += stat.ms_leaf_pages;
      sum->ms_overflow_pages += stat.ms_overflow_pages;
      sum->ms_entries += stat.ms_entries;
    }
    api.txn_abort(txn);
    return code == 0;
  }

  LmdbHandle handle_;
};

class LmdbDriver final : public Driver {
 public:
  explicit LmdbDriver(size_t families) : families_(families) {}

  Status Load(const std::string& path) {
    Status status = library_.Load(path, BRAIDDB_LMDB_LIBRARY);
    return status.ok() ? api_.Load(&library_) : status;
  }

  std::string Version() const override {
    return std::string(api_.version(nullptr, nullptr, nullptr)) + " (" + library_.path() + ")";
  }
  std::string Settings() const override { return "MDB_WRITEMAP, MDB_NOTLS, map of 64 GiB; MDB_NOSYNC without --sync"; }
  std::string Durability(bool sync) const override {
    return sync
               ? "power failure: msync when a transaction commits (on tmpfs that costs a system call only)"
               : "the process's end: the page cache has it; power failure may damage the database (MDB_NOSYNC; more with --sync)";
  }

  Status Open(const std::string& path, bool exists, std::unique_ptr<Engine>* engine) override {
    if (exists && !std::filesystem::exists(path + "/data.mdb")) return Status::NotFound("no database in " + path);
    std::error_code error;
    std::filesystem::create_directories(path, error);
    return OpenAs(0, path, exists, engine);
  }
  Status OpenToRead(const std::string& path, std::unique_ptr<Engine>* engine) override {
    return OpenAs(MDB_RDONLY, path, true, engine);
  }
  Status Destroy(const std::string& path) override {
    std::error_code error;
    for (const char* file : {"/data.mdb", "/lock.mdb"}) {
      std::filesystem::remove(path + file, error);
      if (error) return Status::IOError(error.message());
    }
    std::filesystem::remove(path, error);  // fails if the directory has other files
    return Status::OK();
  }

 private:
  // `access`: 0 or MDB_RDONLY.
  Status OpenAs(unsigned access, const std::string& path, bool exists, std::unique_ptr<Engine>* engine) {
    MDB_env* env = nullptr;
    Status status = api_.ToStatus(api_.env_create(&env));
    if (!status.ok()) return status;
    status = OpenEnv(env, access, path, exists, engine);
    if (!status.ok()) api_.env_close(env);
    return status;
  }
  Status OpenEnv(MDB_env* env, unsigned access, const std::string& path, bool exists, std::unique_ptr<Engine>* engine) {
    MDB_txn* txn = nullptr;
    int code = api_.env_set_mapsize(env, kMapSize);
    if (code == 0) code = api_.env_set_maxreaders(env, kMaxReaders);
    if (code == 0 && families_ > 1) code = api_.env_set_maxdbs(env, static_cast<MDB_dbi>(families_));
    if (code == 0) code = api_.env_open(env, path.c_str(), access | MDB_WRITEMAP | MDB_NOTLS, 0644);
    if (code == 0) code = api_.txn_begin(env, nullptr, access, &txn);
    if (code != 0) return api_.ToStatus(code);
    std::vector<MDB_dbi> families;
    Status status = OpenFamilies(txn, exists, &families);
    if (!status.ok()) {
      api_.txn_abort(txn);
      return status;
    }
    status = api_.ToStatus(api_.txn_commit(txn));
    if (status.ok()) *engine = std::make_unique<LmdbEngine>(LmdbHandle{api_, env, std::move(families)});
    return status;
  }

  // A family is an LMDB database. A single family is the unnamed database. With several families all have names, because the
  // names are entries of the unnamed database and its iterators would return them. A database with another number of families is
  // refused, as by the other engines.
  Status OpenFamilies(MDB_txn* txn, bool exists, std::vector<MDB_dbi>* families) const {
    MDB_dbi unnamed = 0;
    int code = api_.dbi_open(txn, nullptr, 0, &unnamed);
    if (code != 0) return api_.ToStatus(code);
    if (families_ == 1) {
      families->push_back(unnamed);
      return HasFamilies(txn, unnamed) ? Status::InvalidArgument("the database has several column families") : Status::OK();
    }
    for (size_t i = 0; i < families_; ++i) {
      code = api_.dbi_open(txn, FamilyName(i).c_str(), exists ? 0 : MDB_CREATE, &families->emplace_back());
      if (code == MDB_NOTFOUND) return Status::InvalidArgument("the database has no column family " + FamilyName(i));
      if (code != 0) return api_.ToStatus(code);
    }
    MDB_stat names;
    code = api_.stat(txn, unnamed, &names);
    if (code == 0 && names.ms_entries != families_) {
      return Status::InvalidArgument("the database has " + std::to_string(names.ms_entries) + " column families");
    }
    return api_.ToStatus(code);
  }
  bool HasFamilies(MDB_txn* txn, MDB_dbi unnamed) const {
    const std::string second = FamilyName(1);
    MDB_val name = ToVal(second), family;
    return api_.get(txn, unnamed, &name, &family) != MDB_NOTFOUND;
  }

  const size_t families_;
  SharedLibrary library_;
  LmdbApi api_{};
};

}  // namespace

Status MakeLmdbDriver(const std::string& argument, const Flags& flags, std::unique_ptr<Driver>* driver) {
  auto made = std::make_unique<LmdbDriver>(flags.num_column_families);
  Status status = made->Load(argument);
  if (status.ok()) *driver = std::move(made);
  return status;
}

}  // namespace braiddb::bench

#endif
