// The engine braiddb: calls the database directly.
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <utility>

#include "braiddb/db.h"
#include "braiddb/perf_context.h"
#include "db_bench/engine.h"
#include "db_bench/environment.h"
#include "db_bench/families.h"
#include "db_bench/merge_operators.h"
#include "index/level_kind.h"
#include "pmem/persist_mode.h"

namespace braiddb::bench {

namespace {

using Families = std::vector<std::unique_ptr<ColumnFamilyHandle>>;

class BraidDbSession : public Session {
 public:
  BraidDbSession(DB* db, const Flags& flags, bool sync) : db_(db) {
    write_options_.sync = sync;
    read_options_.verify_checksums = flags.verify_checksum;
  }
  ~BraidDbSession() override {
    if (read_options_.snapshot != nullptr) db_->ReleaseSnapshot(read_options_.snapshot);
  }

  Status Put(Slice key, Slice value) override { return db_->Put(write_options_, key, value); }
  Status Delete(Slice key) override { return db_->Delete(write_options_, key); }
  Status Merge(Slice key, Slice operand) override { return db_->Merge(write_options_, key, operand); }
  Status DeleteRange(Slice begin, Slice end) override { return db_->DeleteRange(write_options_, begin, end); }

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
  // With several families, iterates over the default family, as RocksDB's db_bench does.
  std::unique_ptr<Iterator> NewIterator() override { return db_->NewIterator(read_options_); }
  std::unique_ptr<Iterator> NewBoundedIterator(const std::optional<Slice>& lower, const std::optional<Slice>& upper) override {
    ReadOptions bounded = read_options_;
    bounded.iterate_lower_bound = lower;
    bounded.iterate_upper_bound = upper;
    return db_->NewIterator(bounded);
  }
  Status PinSnapshot() override {
    read_options_.snapshot = db_->GetSnapshot();
    return read_options_.snapshot != nullptr ? Status::OK() : Status::MemoryLimit("no memory for a snapshot");
  }
  void BeginCounting(uint32_t level) override {
    SetPerfLevel(static_cast<PerfLevel>(level));
    GetPerfContext()->Reset();
  }
  std::string EndCounting() override {
    SetPerfLevel(PerfLevel::kDisable);
    return GetPerfContext()->ToString(true);
  }

 protected:
  DB* const db_;
  WriteOptions write_options_;
  ReadOptions read_options_;
  WriteBatch batch_;
};

// A session of a database with several column families.
class FamiliesSession final : public BraidDbSession {
 public:
  FamiliesSession(DB* db, const Families* families, const Flags& flags, bool sync)
      : BraidDbSession(db, flags, sync), families_(*families) {}

  Status Put(Slice key, Slice value) override { return db_->Put(write_options_, HandleOf(key), key, value); }
  Status Delete(Slice key) override { return db_->Delete(write_options_, HandleOf(key), key); }
  Status Merge(Slice key, Slice operand) override { return db_->Merge(write_options_, HandleOf(key), key, operand); }
  // Deletes from the family of the first key, as RocksDB's fill benchmarks do.
  Status DeleteRange(Slice begin, Slice end) override { return db_->DeleteRange(write_options_, HandleOf(begin), begin, end); }

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

 private:
  ColumnFamilyHandle* HandleOf(Slice key) const { return families_[FamilyOf(key, families_.size())].get(); }

  const Families& families_;
  std::vector<ColumnFamilyHandle*> of_keys_;
};

// Names in --json and their properties.
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
    {"punched_pm_bytes", "braiddb.pm-bytes-punched"},
    {"segments_pm_bytes", "braiddb.pm-bytes-in-segments"},
    {"live_pm_bytes", "braiddb.pm-bytes-live"},
    {"last_level_pm_bytes", "braiddb.l1-pm-bytes"},
    {"segments", "braiddb.num-segments"},
    {"free_segments", "braiddb.num-free-segments"},
};

// Adds the entries of each level. Parses the property's table: name, tables, entries.
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

Status ReadAll(std::unique_ptr<Iterator> iterator) {
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
  }
  return iterator->status();
}

class BraidDbEngine final : public Engine {
 public:
  BraidDbEngine(std::unique_ptr<DB> db, Families families, const Flags& flags)
      : db_(std::move(db)), families_(std::move(families)), flags_(flags) {}

  Status NewSession(bool sync, std::unique_ptr<Session>* session) override {
    if (families_.size() > 1) {
      *session = std::make_unique<FamiliesSession>(db_.get(), &families_, flags_, sync);
    } else {
      *session = std::make_unique<BraidDbSession>(db_.get(), flags_, sync);
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
  // Verifies all visible entries. `braiddb check` also verifies older versions.
  Status VerifyChecksums() override {
    ReadOptions options;
    options.verify_checksums = true;
    Status status = ReadAll(db_->NewIterator(options));
    for (size_t i = 1; i < families_.size() && status.ok(); ++i) status = ReadAll(db_->NewIterator(options, families_[i].get()));
    return status;
  }

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
    // Omits figures that are not counted: 0 would claim that nothing was written.
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
  Families families_;  // empty: only the default family
  const Flags& flags_;
};

// The mode that kAuto selects in this directory, found with a temporary file. None if it cannot be found.
std::optional<PersistMode> ModeIn(const std::string& path) {
  std::string file = NearestDirectory(path) + "/db_bench-probe-XXXXXX";
  const int descriptor = mkstemp(file.data());
  if (descriptor < 0) return std::nullopt;
  close(descriptor);
  PersistMode mode;
  const bool told = ResolvePersistMode(file, PersistMode::kAuto, &mode).ok();
  unlink(file.c_str());
  return told ? std::optional<PersistMode>(mode) : std::nullopt;
}

class BraidDbDriver final : public Driver {
 public:
  BraidDbDriver(const Flags& flags, L1Kind l1, std::shared_ptr<const MergeOperator> merge_operator)
      : flags_(flags), options_(flags.options), families_(flags.num_column_families) {
    options_.l1 = l1;
    options_.merge_operator = std::move(merge_operator);
  }

  std::string Version() const override { return "BraidDB " BRAIDDB_VERSION; }
  std::string Settings() const override { return "last level " + std::string(FindLevelKind(options_.l1)->name); }
  std::string Pages() const override {
    return "2 MiB for files on tmpfs and for DRAM, by madvise(2), where the kernel has them; 4 KiB for files on disks";
  }
  std::string Durability(bool sync) const override {
    const std::string paged =
        sync ? "power failure: msync before a write is acknowledged" : "the process's end: the page cache has it";
    const std::string fenced = "power failure, whatever --sync says: each write is flushed and fenced before it is acknowledged";
    const std::optional<PersistMode> mode = Mode();
    if (!mode) return "on DAX and tmpfs " + fenced + " (as far as the medium keeps it); on other file systems " + paged;
    if (*mode == PersistMode::kPage) return paged;
    if (*mode == PersistMode::kEmulated) return fenced + " (where tmpfs stands in for persistent memory: the process's end)";
    return fenced;
  }

  Status Open(const std::string& path, bool exists, std::unique_ptr<Engine>* engine) override {
    options_.create_if_missing = !exists;
    std::unique_ptr<DB> db;
    Families families;
    Status status = families_ == 1 ? OpenPlain(path, &db) : OpenFamilies(path, exists, &families, &db);
    if (status.ok()) *engine = std::make_unique<BraidDbEngine>(std::move(db), std::move(families), flags_);
    families.clear();  // destroyed before the database
    return status;
  }
  Status OpenToRead(const std::string& path, std::unique_ptr<Engine>* engine) override {
    std::unique_ptr<DB> db;
    Families families;
    Status status = families_ == 1 ? DB::OpenForReadOnly(options_, path, &db)
                                   : DB::OpenForReadOnly(options_, path, Descriptors(families_), &families, &db);
    if (status.ok()) *engine = std::make_unique<BraidDbEngine>(std::move(db), std::move(families), flags_);
    families.clear();  // destroyed before the database
    return status;
  }
  Status Destroy(const std::string& path) override { return DB::Destroy(options_, path); }

 private:
  // The mode of all regions. Different media have only page mode in common.
  std::optional<PersistMode> Mode() const {
    if (options_.persist_mode != PersistMode::kAuto) return options_.persist_mode;
    const std::vector<std::string> own{flags_.db};
    std::optional<PersistMode> common;
    for (const std::string& path : options_.region_paths.empty() ? own : options_.region_paths) {
      const std::optional<PersistMode> mode = ModeIn(path);
      if (!mode) return std::nullopt;
      common = !common || common == mode ? mode : PersistMode::kPage;
    }
    return common;
  }

  Status OpenPlain(const std::string& path, std::unique_ptr<DB>* db) const {
    return flags_.readonly ? DB::OpenForReadOnly(options_, path, db) : DB::Open(options_, path, db);
  }
  std::vector<ColumnFamilyDescriptor> Descriptors(size_t count) const {
    std::vector<ColumnFamilyDescriptor> descriptors;
    for (size_t i = 0; i < count; ++i) descriptors.push_back({FamilyName(i), ColumnFamilyOptions(options_)});
    return descriptors;
  }
  Status OpenFamilies(const std::string& path, bool exists, Families* families, std::unique_ptr<DB>* db) const {
    const ColumnFamilyOptions family_options(options_);
    const std::vector<ColumnFamilyDescriptor> descriptors = Descriptors(exists ? families_ : 1);
    if (flags_.readonly) return DB::OpenForReadOnly(options_, path, descriptors, families, db);
    Status status = DB::Open(options_, path, descriptors, families, db);
    for (size_t i = families->size(); i < families_ && status.ok(); ++i) {
      families->emplace_back();
      status = (*db)->CreateColumnFamily(family_options, FamilyName(i), &families->back());
    }
    return status;
  }

  const Flags& flags_;
  Options options_;
  const size_t families_;
};

}  // namespace

Status MakeBraidDbDriver(const std::string& argument, const Flags& flags, std::unique_ptr<Driver>* driver) {
  const LevelKind* const l1 = argument.empty() ? FindLevelKind(flags.options.l1) : FindLevelKind(argument);
  if (l1 == nullptr) return Status::InvalidArgument("braiddb:" + argument + " is neither " + LevelKindNames(" nor ", "braiddb:"));
  std::shared_ptr<const MergeOperator> merge_operator;
  if (Status status = FindMergeOperator(flags.merge_operator, &merge_operator); !status.ok()) return status;
  *driver = std::make_unique<BraidDbDriver>(flags, l1->id, std::move(merge_operator));
  return Status::OK();
}

}  // namespace braiddb::bench
