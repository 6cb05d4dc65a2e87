#include "db_bench/engine.h"

namespace braiddb::bench {

namespace {

struct Entry {
  EngineName name;
  Status (*make)(const std::string& argument, const Flags& flags, std::unique_ptr<Driver>* driver);
  const char* why_no_families = nullptr;  // null: it takes --num_column_families
};

constexpr Entry kEngines[] = {
    {{"braiddb", "this project; argument: the last level, braided_skiplist, nv_tree or sorted_runs (else --l1)"},
     MakeBraidDbDriver},
    {{"rocksdb", "RocksDB by its C interface; argument: the library to load"}, MakeRocksDbDriver},
    {{"leveldb", "LevelDB by its C interface; argument: the library to load"},
     MakeLevelDbDriver,
     "LevelDB has no column families"},
    {{"lmdb", "LMDB; argument: the library to load"}, MakeLmdbDriver},
    {{"dram-checkpoint",
      "an index in DRAM and a log, checkpointed by Boost.Serialization; argument: updates between two, 0: none"},
     MakeDramCheckpointDriver,
     "it has one index"},
    {{"null", "nothing is kept and nothing is found: what db_bench itself costs"}, MakeNullDriver, "it keeps nothing"},
};

}  // namespace

void Session::MultiGet(const std::vector<Slice>& keys, std::vector<std::string>* values, std::vector<Status>* statuses) {
  values->resize(keys.size());
  statuses->resize(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) (*statuses)[i] = Get(keys[i], &(*values)[i]);
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
    return entry.make(colon == std::string::npos ? "" : engine.substr(colon + 1), flags, driver);
  }
  return Status::InvalidArgument("there is no engine '" + name + "'; there are " + names);
}

}  // namespace braiddb::bench
