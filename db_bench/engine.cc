#include "db_bench/engine.h"

namespace braiddb::bench {

namespace {

struct Entry {
  EngineName name;
  Status (*make)(const std::string& argument, const Flags& flags, std::unique_ptr<Driver>* driver);
  const char* why_no_families = nullptr;  // reason why --num_column_families is refused; null: supported
  bool does_all = false;                  // supports all methods of Session
  bool opens_to_read = false;             // supports Driver::OpenToRead
};

constexpr Entry kEngines[] = {
    {{"braiddb", "this project; argument: the last level, as --l1 names it (else --l1)"}, MakeBraidDbDriver, nullptr, true, true},
    {{"rocksdb", "RocksDB by its C interface; argument: the library to load"}, MakeRocksDbDriver, nullptr, true},
    {{"leveldb", "LevelDB by its C interface; argument: the library to load"},
     MakeLevelDbDriver,
     "LevelDB has no column families"},
    {{"lmdb", "LMDB; argument: the library to load"}, MakeLmdbDriver, nullptr, false, true},
    {{"dram-checkpoint",
      "an index in DRAM and a log, checkpointed by Boost.Serialization; argument: updates between two, 0: none"},
     MakeDramCheckpointDriver,
     "it has one index"},
    {{"redis", "a Redis server on a unix socket; argument: the server program to start, else redis-server"},
     MakeRedisDriver,
     "db_bench uses one database of the server"},
    {{"pmdk_map", "a map of libpmemobj's examples; argument: ctree (default), btree, rbtree, rtree, hashmap_tx, hashmap_atomic"},
     MakePmdkMapDriver},
    {{"null", "nothing is kept and nothing is found: what db_bench itself costs"}, MakeNullDriver, "it keeps nothing"},
};

// The first flag that needs an optional feature of engines; null if none is set.
const char* SpecialFlag(const Flags& flags) {
  if (flags.readonly) return "--readonly";
  if (!flags.merge_operator.empty()) return "--merge_operator";
  if (flags.range_deletions.writes_between > 0 && !flags.range_deletions.expand) return "--writes_per_range_tombstone";
  if (flags.explicit_snapshot) return "--explicit_snapshot";
  if (flags.max_scan_distance > 0) return "--max_scan_distance";
  return nullptr;
}

}  // namespace

Status Session::Merge(Slice, Slice) { return Status::NotSupported("this engine does not merge"); }
Status Session::DeleteRange(Slice, Slice) { return Status::NotSupported("this engine cannot delete ranges"); }
Status Session::PinSnapshot() { return Status::NotSupported("this engine has no snapshots"); }
std::unique_ptr<Iterator> Session::NewBoundedIterator(const std::optional<Slice>&, const std::optional<Slice>&) {
  return nullptr;
}

void Session::MultiGet(const std::vector<Slice>& keys, std::vector<std::string>* values, std::vector<Status>* statuses) {
  values->resize(keys.size());
  statuses->resize(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) (*statuses)[i] = Get(keys[i], &(*values)[i]);
}

Status Driver::OpenToRead(const std::string&, std::unique_ptr<Engine>*) {
  return Status::NotSupported("other processes cannot read a database of this engine while it is open for writing");
}

std::vector<EngineName> EngineNames() {
  std::vector<EngineName> names;
  for (const Entry& engine : kEngines) names.push_back(engine.name);
  return names;
}

Status MakeDriver(const std::string& engine, const Flags& flags, std::unique_ptr<Driver>* driver) {
  const size_t colon = engine.find(':');
  const std::string name = engine.substr(0, colon);
  std::string names;
  for (const Entry& entry : kEngines) {
    names += std::string(names.empty() ? "" : ", ") + entry.name.name;
    if (name != entry.name.name) continue;
    if (flags.num_column_families > 1 && entry.why_no_families != nullptr)
      return Status::NotSupported("--num_column_families above 1 is refused: " + std::string(entry.why_no_families));
    const char* const special = SpecialFlag(flags);
    if (special != nullptr && !entry.does_all)
      return Status::NotSupported(std::string(special) + " is refused: db_bench can do it with braiddb and rocksdb only");
    if (flags.reader_processes > 0 && !entry.opens_to_read)
      return Status::NotSupported("--reader_processes is refused: db_bench can do it with braiddb and lmdb only");
    return entry.make(colon == std::string::npos ? "" : engine.substr(colon + 1), flags, driver);
  }
  return Status::InvalidArgument("there is no engine '" + name + "'; there are " + names);
}

}  // namespace braiddb::bench
