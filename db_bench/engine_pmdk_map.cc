// The engine pmdk_map: the maps of libpmemobj's examples, with which MetraDB's paper compares. Their sources come from an
// installed libpmemobj-dev (PMDK_EXAMPLES at configure time); they are compiled as they are.
//
// A map has keys of 64 bits and one object for each value. It locks nothing, so this engine takes one lock for each map: column
// families are maps of their own, as MetraDB gives each thread a container of its own.
#include "db_bench/engine.h"

#ifndef BRAIDDB_PMDK_MAPS

namespace braiddb::bench {

Status MakePmdkMapDriver(const std::string&, const Flags&, std::unique_ptr<Driver>*) {
  return Status::NotSupported(
      "pmdk_map is not built in: libpmemobj's examples (map/map.c) were not in PMDK_EXAMPLES when db_bench was configured");
}

}  // namespace braiddb::bench

#else

#include <libpmemobj.h>
#include <map.h>
#include <map_btree.h>
#include <map_ctree.h>
#include <map_hashmap_atomic.h>
#include <map_hashmap_tx.h>
#include <map_rbtree.h>
#include <map_rtree.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <utility>

#include "db_bench/families.h"

namespace braiddb::bench {

namespace {

namespace fs = std::filesystem;

struct MapKind {
  const char* name;
  const map_ops* operations;
  bool uses_transactions;
  uint64_t key_bytes = 512;  // that a key takes of a pool beside its value, at most
};
const MapKind kMapKinds[] = {
    {"ctree", MAP_CTREE, true},          {"btree", MAP_BTREE, true},           {"rbtree", MAP_RBTREE, true},
    {"rtree", MAP_RTREE, true, 9 << 10}, {"hashmap_tx", MAP_HASHMAP_TX, true}, {"hashmap_atomic", MAP_HASHMAP_ATOMIC, false},
};

constexpr size_t kKeyBytes = 8;
constexpr uint64_t kValueType = 2000;  // its number among types of objects
constexpr uint64_t kLeastPool = uint64_t{64} << 20;

struct Value {
  uint64_t size;
  char bytes[];
};

struct Root {
  uint64_t families;
  TOID(struct map) maps[];
};

// The family of maps of one pool.
class Maps {
 public:
  Maps(const MapKind& kind, PMEMobjpool* pool) : kind_(kind), pool_(pool), context_(map_ctx_init(kind.operations, pool)) {}
  ~Maps() {
    map_ctx_free(context_);
    pmemobj_close(pool_);
  }
  Maps(const Maps&) = delete;
  Maps& operator=(const Maps&) = delete;

  Status Create(size_t families) {
    const PMEMoid oid = pmemobj_root(pool_, sizeof(Root) + families * sizeof(Root::maps[0]));
    if (OID_IS_NULL(oid)) return Failed("cannot make its root");
    root_ = static_cast<Root*>(pmemobj_direct(oid));
    for (size_t i = 0; i < families; ++i) {
      if (map_create(context_, &root_->maps[i], nullptr) != 0) return Failed("cannot make a map");
    }
    root_->families = families;
    pmemobj_persist(pool_, &root_->families, sizeof(root_->families));
    return Open(families);
  }
  Status Open(size_t families) {
    const size_t bytes = pmemobj_root_size(pool_);
    if (bytes >= sizeof(Root)) root_ = static_cast<Root*>(pmemobj_direct(pmemobj_root(pool_, bytes)));
    if (root_ == nullptr || root_->families != families)
      return Status::InvalidArgument("the pool was made with another number of column families, or not to the end");
    for (size_t i = 0; i < families; ++i) {
      if (map_init(context_, root_->maps[i]) != 0) return Failed("cannot open a map");
    }
    locks_ = std::vector<std::shared_mutex>(families);
    return Status::OK();
  }

  Status Put(Slice key, Slice value) {
    Place place;
    const Status status = Find(key, &place);
    if (!status.ok()) return status;
    const std::unique_lock lock(locks_[place.family]);
    return PutLocked(place, value) ? Status::OK() : Failed("cannot put");
  }
  Status Delete(Slice key) {
    Place place;
    const Status status = Find(key, &place);
    if (!status.ok()) return status;
    const std::unique_lock lock(locks_[place.family]);
    return DeleteLocked(place) ? Status::OK() : Failed("cannot delete");
  }
  Status Get(Slice key, std::string* value) {
    Place place;
    const Status status = Find(key, &place);
    if (!status.ok()) return status;
    const std::shared_lock lock(locks_[place.family]);
    const PMEMoid oid = map_get(context_, root_->maps[place.family], place.key);
    if (OID_IS_NULL(oid)) return Status::NotFound();
    const auto* const found = static_cast<const Value*>(pmemobj_direct(oid));
    value->assign(found->bytes, found->size);
    return Status::OK();
  }
  // One transaction, if the maps use them.
  Status Write(const std::vector<Update>& updates) {
    std::vector<Place> places(updates.size());
    for (size_t i = 0; i < updates.size(); ++i) {
      if (const Status status = Find(updates[i].key, &places[i]); !status.ok()) return status;
    }
    // In one order, so that batches do not wait for each other in a circle.
    std::vector<size_t> families;
    for (const Place& place : places) families.push_back(place.family);
    std::sort(families.begin(), families.end());
    families.erase(std::unique(families.begin(), families.end()), families.end());
    std::vector<std::unique_lock<std::shared_mutex>> held;
    for (const size_t family : families) held.emplace_back(locks_[family]);
    return InTransaction([&] {
      for (size_t i = 0; i < updates.size(); ++i) {
        if (!(updates[i].removes ? DeleteLocked(places[i]) : PutLocked(places[i], updates[i].value))) return false;
      }
      return true;
    })
               ? Status::OK()
               : Failed("cannot write a batch");
  }

 private:
  struct Place {
    size_t family = 0;
    uint64_t key = 0;
  };

  static Status Failed(const char* what) {
    const std::string text = std::string(what) + ": " + pmemobj_errormsg();
    return errno == ENOMEM || errno == ENOSPC ? Status::NoSpace(text + "; the pool's size follows --num and --value_size")
                                              : Status::IOError(text);
  }
  // The maps take 0 for no key.
  Status Find(Slice key, Place* place) const {
    if (key.size() != kKeyBytes) return Status::NotSupported("PMDK's maps have keys of 8 bytes: --key_size=8");
    for (const char byte : key) place->key = place->key << 8 | static_cast<unsigned char>(byte);
    place->family = FamilyOf(key, locks_.size());
    if (++place->key == 0) return Status::NotSupported("a key of eight bytes 0xff");
    return Status::OK();
  }

  // Calls `body`, which returns whether all went well, in a transaction, or without one. The maps' own transactions are nested:
  // one that aborts makes this one abort.
  template <class Body>
  bool InTransaction(const Body& body) {
    if (!kind_.uses_transactions) return body();
    if (pmemobj_tx_begin(pool_, nullptr, TX_PARAM_NONE) != 0) return false;
    const bool is_well = body();
    if (pmemobj_tx_stage() == TX_STAGE_WORK) {
      if (is_well) {
        pmemobj_tx_commit();
      } else {
        pmemobj_tx_abort(ECANCELED);
      }
    }
    const bool has_ended_well = pmemobj_tx_stage() == TX_STAGE_ONCOMMIT;
    return pmemobj_tx_end() == 0 && has_ended_well;
  }

  bool PutLocked(const Place& place, Slice value) {
    const TOID(struct map) map = root_->maps[place.family];
    const PMEMoid old = map_get(context_, map, place.key);
    const size_t bytes = sizeof(Value) + value.size();
    // A value that fits is changed where it is.
    if (!OID_IS_NULL(old) && pmemobj_alloc_usable_size(old) >= bytes) {
      if (pmemobj_tx_stage() == TX_STAGE_WORK) return ChangeInTransaction(old, value);
      if (pmemobj_tx_begin(pool_, nullptr, TX_PARAM_NONE) != 0) return false;
      const bool is_well = ChangeInTransaction(old, value);
      if (pmemobj_tx_stage() == TX_STAGE_WORK) pmemobj_tx_commit();
      return pmemobj_tx_end() == 0 && is_well;
    }
    if (!kind_.uses_transactions) {
      PMEMoid fresh = OID_NULL;
      Slice content = value;
      if (pmemobj_alloc(pool_, &fresh, bytes, kValueType, Construct, &content) != 0) return false;
      // Not one atomic step: the map has no way to replace a value.
      PMEMoid gone = OID_IS_NULL(old) ? OID_NULL : map_remove(context_, map, place.key);
      if (map_insert(context_, map, place.key, fresh) != 0) return false;
      if (!OID_IS_NULL(gone)) pmemobj_free(&gone);
      return true;
    }
    return InTransaction([&] {
      const PMEMoid fresh = pmemobj_tx_alloc(bytes, kValueType);
      if (OID_IS_NULL(fresh)) return false;
      Slice content = value;
      Construct(pool_, pmemobj_direct(fresh), &content);
      if (!OID_IS_NULL(old)) {
        map_remove(context_, map, place.key);
        if (pmemobj_tx_stage() != TX_STAGE_WORK || pmemobj_tx_free(old) != 0) return false;
      }
      return map_insert(context_, map, place.key, fresh) == 0 && pmemobj_tx_stage() == TX_STAGE_WORK;
    });
  }
  static bool ChangeInTransaction(PMEMoid oid, Slice value) {
    if (pmemobj_tx_add_range(oid, 0, sizeof(Value) + value.size()) != 0) return false;
    auto* const object = static_cast<Value*>(pmemobj_direct(oid));
    object->size = value.size();
    memcpy(object->bytes, value.data(), value.size());
    return true;
  }
  bool DeleteLocked(const Place& place) {
    const TOID(struct map) map = root_->maps[place.family];
    PMEMoid old = map_get(context_, map, place.key);
    if (OID_IS_NULL(old)) return true;
    if (!kind_.uses_transactions) {
      map_remove(context_, map, place.key);
      pmemobj_free(&old);
      return true;
    }
    return InTransaction([&] {
      map_remove(context_, map, place.key);
      return pmemobj_tx_stage() == TX_STAGE_WORK && pmemobj_tx_free(old) == 0;
    });
  }
  static int Construct(PMEMobjpool* pool, void* place, void* argument) {
    const Slice value = *static_cast<Slice*>(argument);
    auto* const object = static_cast<Value*>(place);
    object->size = value.size();
    memcpy(object->bytes, value.data(), value.size());
    pmemobj_persist(pool, object, sizeof(Value) + value.size());
    return 0;
  }

  const MapKind& kind_;
  PMEMobjpool* const pool_;
  map_ctx* const context_;
  Root* root_ = nullptr;
  std::vector<std::shared_mutex> locks_;  // one for each family
};

class PmdkMapSession final : public Session {
 public:
  explicit PmdkMapSession(Maps* maps) : maps_(*maps) {}
  Status Put(Slice key, Slice value) override { return maps_.Put(key, value); }
  Status Delete(Slice key) override { return maps_.Delete(key); }
  Status Write(const std::vector<Update>& updates) override { return maps_.Write(updates); }
  Status Get(Slice key, std::string* value) override { return maps_.Get(key, value); }
  // The maps can be walked, and not be searched for the next key.
  std::unique_ptr<Iterator> NewIterator() override { return nullptr; }

 private:
  Maps& maps_;
};

class PmdkMapEngine final : public Engine {
 public:
  explicit PmdkMapEngine(std::unique_ptr<Maps> maps) : maps_(std::move(maps)) {}
  Status NewSession(bool, std::unique_ptr<Session>* session) override {
    *session = std::make_unique<PmdkMapSession>(maps_.get());
    return Status::OK();
  }
  Status Flush() override { return Status::OK(); }
  Status Compact() override { return Status::NotSupported("PMDK's maps have no such call"); }
  Status WaitForCompaction() override { return Status::OK(); }
  bool GetText(std::string_view name, std::string* text) override {
    if (name != "stats") return false;
    *text = "PMDK's maps count nothing\n";
    return true;
  }
  Status Close() override {
    maps_.reset();
    return Status::OK();
  }

 private:
  std::unique_ptr<Maps> maps_;
};

// The layouts of pools are this and the name of the map.
constexpr std::string_view kLayout = "db_bench ";

// Whether the file has the signature and the layout of a pool that this engine made.
bool IsPoolOfDbBench(const std::string& path) {
  constexpr std::string_view kSignature("PMEMOBJ", 8);
  constexpr size_t kLayoutAt = 4096;  // behind the header of the pool set
  std::string head(kLayoutAt + kLayout.size(), 0);
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  return file.good() && head.starts_with(kSignature) && head.substr(kLayoutAt) == kLayout;
}

class PmdkMapDriver final : public Driver {
 public:
  PmdkMapDriver(const MapKind& kind, const Flags& flags) : kind_(kind), flags_(flags) {}

  std::string Version() const override {
    return std::string("PMDK's ") + kind_.name + ", libpmemobj " + std::to_string(PMEMOBJ_MAJOR_VERSION) + "." +
           std::to_string(PMEMOBJ_MINOR_VERSION);
  }
  std::string Settings() const override {
    return "one lock for each map; a value that fits is changed in place by a transaction; cache lines are flushed on tmpfs, too "
           "(PMEM_IS_PMEM_FORCE)";
  }
  std::string Durability(bool) const override { return "power failure"; }

  Status Open(const std::string& path, bool exists, std::unique_ptr<Engine>* engine) override {
    setenv("PMEM_IS_PMEM_FORCE", "1", 0);  // libpmem reads it at the first pool
    const std::string file = path + "/pool";
    const std::string layout = std::string(kLayout) + kind_.name;
    PMEMobjpool* pool = nullptr;
    if (exists) {
      pool = pmemobj_open(file.c_str(), layout.c_str());
    } else {
      std::error_code error;
      fs::create_directories(path, error);
      pool = pmemobj_create(file.c_str(), layout.c_str(), PoolBytes(), S_IRUSR | S_IWUSR);
    }
    if (pool == nullptr) return Status::IOError("the pool " + file + ": " + pmemobj_errormsg());
    auto maps = std::make_unique<Maps>(kind_, pool);
    const size_t families = std::max<size_t>(1, flags_.num_column_families);
    const Status status = exists ? maps->Open(families) : maps->Create(families);
    if (status.ok()) *engine = std::make_unique<PmdkMapEngine>(std::move(maps));
    return status;
  }
  // Removes only what a pool of db_bench has at its begin.
  Status Destroy(const std::string& path) override {
    std::error_code error;
    const std::string file = path + "/pool";
    if (!fs::exists(file, error)) return Status::OK();
    if (!IsPoolOfDbBench(file)) return Status::InvalidArgument(file + " is not of db_bench; name another directory with --db");
    fs::remove(file, error);
    if (!error) fs::remove(path, error);
    return error ? Status::IOError("cannot remove " + path + ": " + error.message()) : Status::OK();
  }

 private:
  uint64_t PoolBytes() const {
    return kLeastPool + static_cast<uint64_t>(flags_.num) * (2 * flags_.value_size + kind_.key_bytes);
  }

  const MapKind& kind_;
  const Flags& flags_;
};

}  // namespace

Status MakePmdkMapDriver(const std::string& argument, const Flags& flags, std::unique_ptr<Driver>* driver) {
  std::string names;
  for (const MapKind& kind : kMapKinds) {
    names += std::string(names.empty() ? "" : ", ") + kind.name;
    if (argument != (argument.empty() ? "" : kind.name)) continue;
    *driver = std::make_unique<PmdkMapDriver>(kind, flags);  // the first one by default
    return Status::OK();
  }
  return Status::InvalidArgument("PMDK has no map '" + argument + "'; it has " + names);
}

}  // namespace braiddb::bench

#endif
