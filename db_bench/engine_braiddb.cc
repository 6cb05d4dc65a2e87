// The engine braiddb: each method is the database's own.
#include <sstream>
#include <utility>

#include "braiddb/db.h"
#include "db_bench/engine.h"
#include "db_bench/families.h"
#include "db_bench/last_level.h"

namespace braiddb::bench {

namespace {

using Families = std::vector<std::unique_ptr<ColumnFamilyHandle>>;

class BraidDbSession final : public Session {
 public:
  BraidDbSession(DB* db, bool sync) : db_(db) { write_options_.sync = sync; }

  Status Put(Slice key, Slice value) override { return db_->Put(write_options_, key, value); }
  Status Delete(Slice key) override { return db_->Delete(write_options_, key); }

  Status Write(const std::vector<Update>& updates) override {
    batch_.Clear();
    for (const Update& update : updates) {
      if (update.removes) {
        batch_.Delete(update.key);
      } else {
        batch_.Put(update.key, update.value);
      }
    }
    return db_->Write(write_options_, batch_);
  }

  Status Get(Slice key, std::string* value) override { return db_->Get(read_options_, key, value); }
  void MultiGet(const std::vector<Slice>& keys, std::vector<std::string>* values, std::vector<Status>* statuses) override {
    *statuses = db_->MultiGet(read_options_, keys, values);
  }
  std::unique_ptr<Iterator> NewIterator() override { return db_->NewIterator(read_options_); }

 private:
  DB* const db_;
  WriteOptions write_options_;
  const ReadOptions read_options_;
  WriteBatch batch_;
};

// Of a database with several column families.
class FamiliesSession final : public Session {
 public:
  FamiliesSession(DB* db, const Families* families, bool sync) : db_(db), families_(*families) { write_options_.sync = sync; }

  Status Put(Slice key, Slice value) override { return db_->Put(write_options_, HandleOf(key), key, value); }
  Status Delete(Slice key) override { return db_->Delete(write_options_, HandleOf(key), key); }

  Status Write(const std::vector<Update>& updates) override {
    batch_.Clear();
    for (const Update& update : updates) {
      if (update.removes) {
        batch_.Delete(HandleOf(update.key), update.key);
      } else {
        batch_.Put(HandleOf(update.key), update.key, update.value);
      }
    }
    return db_->Write(write_options_, batch_);
  }

  Status Get(Slice key, std::string* value) override { return db_->Get(read_options_, HandleOf(key), key, value); }
  void MultiGet(const std::vector<Slice>& keys, std::vector<std::string>* values, std::vector<Status>* statuses) override {
    of_keys_.clear();
    for (const Slice key : keys) of_keys_.push_back(HandleOf(key));
    *statuses = db_->MultiGet(read_options_, of_keys_, keys, values);
  }
  // Of the default one, as RocksDB's db_bench.
  std::unique_ptr<Iterator> NewIterator() override { return db_->NewIterator(read_options_); }

 private:
  ColumnFamilyHandle* HandleOf(Slice key) const { return families_[FamilyOf(key, families_.size())].get(); }

  DB* const db_;
  const Families& families_;
  WriteOptions write_options_;
  const ReadOptions read_options_;
  WriteBatch batch_;
  std::vector<ColumnFamilyHandle*> of_keys_;
};

// Names in --json, and the properties that they are.
constexpr struct {
  const char* name;
  const char* property;
} kState[] = {
    {"immutable_memtables", "braiddb.num-immutable-mem-table"},
    {"memtables_dram_bytes", "braiddb.cur-size-all-mem-tables"},
    {"l0_tables", "braiddb.num-l0-tables"},
    {"dram_bytes", "braiddb.dram-bytes"},
    {"lookup_cache_dram_bytes", "braiddb.lookup-cache-bytes"},
    {"filter_dram_bytes", "braiddb.filter-bytes"},
    {"last_level_dram_bytes", "braiddb.l1-dram-bytes"},
    {"pm_bytes", "braiddb.pm-bytes-reserved"},
    {"segments_pm_bytes", "braiddb.pm-bytes-in-segments"},
    {"live_pm_bytes", "braiddb.pm-bytes-live"},
    {"last_level_pm_bytes", "braiddb.l1-pm-bytes"},
    {"segments", "braiddb.num-segments"},
    {"free_segments", "braiddb.num-free-segments"},
};

// Of each level its entries, by the table that the property is: name, tables, entries.
void AddEntries(const std::string& levels, std::vector<Figure>* figures) {
  constexpr struct {
    const char* level;
    const char* name;
  } kLevels[] = {{"memtable", "memtable_entries"}, {"L0", "l0_entries"}, {"L1", "last_level_entries"}};
  std::istringstream lines(levels);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string level;
    uint64_t tables = 0, entries = 0;
    if (!(words >> level >> tables >> entries)) continue;
    for (const auto& known : kLevels) {
      if (level == known.level) figures->push_back({known.name, entries});
    }
  }
}

class BraidDbEngine final : public Engine {
 public:
  BraidDbEngine(std::unique_ptr<DB> db, Families families) : db_(std::move(db)), families_(std::move(families)) {}

  Status NewSession(bool sync, std::unique_ptr<Session>* session) override {
    if (families_.size() > 1) {
      *session = std::make_unique<FamiliesSession>(db_.get(), &families_, sync);
    } else {
      *session = std::make_unique<BraidDbSession>(db_.get(), sync);
    }
    return Status::OK();
  }
  Status Flush() override { return db_->Flush(); }
  Status Compact() override {
    if (families_.empty()) return db_->CompactRange(CompactRangeOptions(), nullptr, nullptr);
    Status status;
    for (size_t i = 0; i < families_.size() && status.ok(); ++i)
      status = db_->CompactRange(CompactRangeOptions(), families_[i].get(), nullptr, nullptr);
    return status;
  }
  Status WaitForCompaction() override { return db_->WaitForCompaction(); }

  bool GetText(std::string_view name, std::string* text) override {
    if (name == "statistics") {
      *text = db_->GetStatistics().ToString();
      return true;
    }
    if (name != "levelstats") return db_->GetProperty("braiddb." + std::string(name), text);
    std::string last_level;
    const bool there = db_->GetProperty("braiddb.levels", text) && db_->GetProperty("braiddb.l1", &last_level);
    if (there) *text += "\n" + last_level;
    return there;
  }
  std::vector<Figure> State() override {
    std::vector<Figure> figures;
    for (const auto& [name, property] : kState) {
      uint64_t value = 0;
      if (db_->GetIntProperty(property, &value)) figures.push_back({name, value});
    }
    std::string levels;
    if (db_->GetProperty("braiddb.levels", &levels)) AddEntries(levels, &figures);
    return figures;
  }
  std::vector<Figure> Counters() override {
    const Statistics s = db_->GetStatistics();
    std::vector<Figure> figures{{"writes", s.writes},
                                {"log_bytes", s.log_bytes},
                                {"gets", s.gets},
                                {"gets_found", s.gets_found},
                                {"lookup_cache_hits", s.lookup_cache_hits},
                                {"filter_negatives", s.filter_negatives},
                                {"local_visits", s.local_visits},
                                {"remote_visits", s.remote_visits},
                                {"write_delays", s.write_delays},
                                {"write_delay_us", s.write_delay_us},
                                {"flushes", s.flushes},
                                {"flushed_entries", s.flushed_entries},
                                {"checkpoints", s.checkpoints},
                                {"compactions", s.compactions},
                                {"merged_entries", s.merged_entries},
                                {"dropped_entries", s.dropped_entries},
                                {"relocated_bytes", s.relocated_bytes},
                                {"background_flushed_lines", s.flushed_lines},
                                {"replayed_entries", s.replayed_entries},
                                {"recovery_us", s.recovery_us}};
    // Figures that nobody counts are left out, where 0 would say that nothing is written.
    std::string mode;
    if (db_->GetOptions().count_pm_writes && db_->GetProperty("braiddb.persist-mode", &mode) && mode != "page") {
      figures.insert(
          figures.end(),
          {{"pm_written_lines", s.pm_written_lines}, {"pm_written_xplines", s.pm_written_xplines}, {"pm_fences", s.pm_fences}});
    }
    return figures;
  }
  Status Close() override {
    families_.clear();
    return db_->Close();
  }

 private:
  const std::unique_ptr<DB> db_;
  Families families_;  // empty: the default one only
};

class BraidDbDriver final : public Driver {
 public:
  BraidDbDriver(const Flags& flags, L1Kind l1) : options_(flags.options), families_(flags.num_column_families) {
    options_.l1 = l1;
  }

  std::string Version() const override { return "BraidDB " BRAIDDB_VERSION; }
  std::string Settings() const override { return std::string("last level ") + NameOfL1(options_.l1); }
  std::string Durability(bool sync) const override {
    const std::string paged =
        sync ? "power failure: msync before a write is acknowledged" : "the process's end: the page cache has it";
    if (options_.persist_mode == PersistMode::kPage) return paged;
    const std::string fenced = "power failure, whatever --sync says: each write is flushed and fenced before it is acknowledged";
    if (options_.persist_mode != PersistMode::kAuto) return fenced + " (as far as the medium keeps it)";
    return "on DAX and tmpfs " + fenced + " (as far as the medium keeps it); on other file systems " + paged;
  }

  Status Open(const std::string& path, bool exists, std::unique_ptr<Engine>* engine) override {
    options_.create_if_missing = !exists;
    std::unique_ptr<DB> db;
    Families families;
    if (families_ == 1) {
      Status status = DB::Open(options_, path, &db);
      if (status.ok()) *engine = std::make_unique<BraidDbEngine>(std::move(db), std::move(families));
      return status;
    }
    const ColumnFamilyOptions family_options(options_);
    std::vector<ColumnFamilyDescriptor> descriptors{{FamilyName(0), family_options}};
    for (size_t i = 1; i < families_ && exists; ++i) descriptors.push_back({FamilyName(i), family_options});
    Status status = DB::Open(options_, path, descriptors, &families, &db);
    for (size_t i = families.size(); i < families_ && status.ok(); ++i) {
      families.emplace_back();
      status = db->CreateColumnFamily(family_options, FamilyName(i), &families.back());
    }
    if (status.ok()) *engine = std::make_unique<BraidDbEngine>(std::move(db), std::move(families));
    families.clear();  // before the database
    return status;
  }
  Status Destroy(const std::string& path) override { return DB::Destroy(options_, path); }

 private:
  Options options_;
  const size_t families_;
};

}  // namespace

Status MakeBraidDbDriver(const std::string& argument, const Flags& flags, std::unique_ptr<Driver>* driver) {
  std::optional<L1Kind> l1 = flags.options.l1;
  if (!argument.empty()) l1 = FindL1(argument);
  if (!l1) {
    return Status::InvalidArgument("braiddb:" + argument +
                                   " is neither braiddb:braided_skiplist nor braiddb:nv_tree nor braiddb:sorted_runs");
  }
  *driver = std::make_unique<BraidDbDriver>(flags, *l1);
  return Status::OK();
}

}  // namespace braiddb::bench
