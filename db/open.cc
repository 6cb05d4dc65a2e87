// Opening, recovering and closing a database.
#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>

#include "check/check_files.h"
#include "db/db_impl.h"
#include "db/hidden_family.h"
#include "db/new_database.h"
#include "db/no_memory.h"
#include "db/options_file.h"
#include "db/reader_hold.h"
#include "db/temporary_place.h"
#include "db/test_hooks.h"
#include "lsm/memtable_type.h"
#include "nvtree/leaf.h"
#include "pmem/persist_mode.h"
#include "recovery/replay.h"
#include "util/comparator_name.h"
#include "util/format.h"
#include "util/mutant.h"
#include "util/numa_topology.h"

namespace braiddb {
namespace {

constexpr uint32_t kMaxFilterBits = 64;

constexpr double kMinAmplification = 1.05;

const char* PromiseOf(PersistMode mode) {
  switch (mode) {
    case PersistMode::kCacheLine:
    case PersistMode::kEadr:
      return "a write is on persistent memory when it returns";
    case PersistMode::kEmulated:
      return "DRAM stands in for persistent memory: a write survives the process, and no power failure";
    case PersistMode::kPage:
      return "msync: a write is on the disk when it returns if WriteOptions::sync is set";
    case PersistMode::kAuto:
      break;
  }
  return "unknown";
}

// Lines for the LOG: how stores become durable, and the device of each region. They show if a path that was meant to be a mount
// of persistent memory is a directory on a disk.
std::vector<std::string> DescribeMedia(const RegionSet& regions) {
  const PersistMode mode = regions.persistence()->mode();
  std::vector<std::string> lines{std::string("open: persist mode ") + NameOf(mode) + ": " + PromiseOf(mode)};
  size_t region = 0;
  for (const RegionPlace& place : regions.nodes().places()) {
    const Device& device = place.device;
    std::string line = "open: region " + std::to_string(region++) + ": " + place.directory + " on " + NameOf(device.kind);
    if (!device.file_system.empty()) line += ", " + device.file_system + " mounted at " + device.mount_point;
    if (!device.name.empty()) line += ", device " + device.name;
    lines.push_back(std::move(line));
  }
  return lines;
}

Status Validate(const Options& options) {
  if (options.comparator == nullptr) return Status::InvalidArgument("Options::comparator is null; use BytewiseComparator()");
  if (options.regions > kMaxRegions) {
    return Status::InvalidArgument("Options::regions is " + std::to_string(options.regions) + "; at most 16 are possible");
  }
  if (!options.region_paths.empty() && options.regions != 0 && options.region_paths.size() != options.regions) {
    return Status::InvalidArgument("Options::region_paths names " + std::to_string(options.region_paths.size()) +
                                   " directories for " + std::to_string(options.regions) + " regions");
  }
  const size_t named = options.region_paths.empty() ? options.regions : options.region_paths.size();
  if (!options.region_nodes.empty() && named != 0 && options.region_nodes.size() != named) {
    return Status::InvalidArgument("Options::region_nodes names " + std::to_string(options.region_nodes.size()) +
                                   " NUMA nodes for " + std::to_string(named) + " regions");
  }
  if (Status status = CheckRegionNodes(options.region_nodes, NumaTopology::System()); !status.ok()) return status;
  if (options.segment_size < (256u << 10) || options.segment_size > (1u << 30)) {
    return Status::InvalidArgument("Options::segment_size must be between 256 KiB and 1 GiB");
  }
  if (options.memtable_size < DBImpl::kLeastMemtableSize)
    return Status::InvalidArgument("Options::memtable_size must be at least 16 KiB");
  if (options.memtable_max_entries < 1024) return Status::InvalidArgument("Options::memtable_max_entries must be at least 1024");
  if (options.max_region_size != 0 && options.max_region_size < kMinRegionSize) {
    return Status::InvalidArgument("Options::max_region_size must be at least 32 MiB, or 0 for the file system's capacity");
  }
  if (options.max_region_size != 0 && options.initial_region_size > options.max_region_size) {
    return Status::InvalidArgument("Options::initial_region_size must be at most max_region_size");
  }
  if (FindLevelKind(options.l1) == nullptr) return Status::NotSupported("this version has no such Options::l1");
  if (FindMemtableType(options.memtable) == nullptr) return Status::NotSupported("this version has no such Options::memtable");
  if (options.list_kind != ListKind::kBraided && options.list_kind != ListKind::kOblivious)
    return Status::NotSupported("this version has no such Options::list_kind");
  if (options.filter_bits_per_key > kMaxFilterBits)
    return Status::InvalidArgument("Options::filter_bits_per_key must be 0 to 64");
  if (options.max_space_amplification != 0 && !(options.max_space_amplification >= kMinAmplification))
    return Status::InvalidArgument("Options::max_space_amplification must be at least 1.05, or 0 for no relocation");
  if (options.bound_space && options.max_space_amplification == 0)
    return Status::InvalidArgument("Options::bound_space needs relocation: Options::max_space_amplification must not be 0");
  if (!IsLeafSize(options.nv_leaf_size))
    return Status::InvalidArgument("Options::nv_leaf_size must be 512, 1024, 2048 or 4096 bytes");
  return Status::OK();
}

uint32_t CpuCount() { return std::max(1u, std::thread::hardware_concurrency()); }

// More threads only cost memory and time.
constexpr uint32_t kMaxRecoveryThreadsPerCpu = 4;

Options Resolve(Options options) {
  options.max_immutable_memtables = std::max(1u, options.max_immutable_memtables);
  options.checkpoint_tables = std::max(1u, options.checkpoint_tables);
  options.l0_compaction_trigger = std::max(1u, options.l0_compaction_trigger);
  if (options.compaction_threads == 0) options.compaction_threads = std::max(1u, CpuCount() / 2);
  if (options.recovery_threads == 0) options.recovery_threads = CpuCount();
  options.recovery_threads = std::min(options.recovery_threads, kMaxRecoveryThreadsPerCpu * CpuCount());
  return options;
}

uint64_t MicrosSince(std::chrono::steady_clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start).count());
}

}  // namespace

DBImpl::DBImpl(const Options& options, const std::string& path, Access access)
    : access_(access),
      options_(Resolve(options)),
      path_(path),
      measures_(options.histograms),
      default_family_(0, 0, kDefaultColumnFamilyName, ColumnFamilyOptions(options)),
      default_handle_(MakeHandle(kDefaultColumnFamilyName)),
      by_id_(std::make_unique<std::atomic<Family*>[]>(kMaxFamilies)),
      cache_share_(options.lookup_cache_limit) {
  by_id_[0].store(&default_family_, std::memory_order_relaxed);
  arenas_.reserve(kKeptArenas);  // the deleter of a memtable adds arenas, and must not fail
}

Status DBImpl::Open(const Options& given, const std::string& path, const std::vector<ColumnFamilyDescriptor>& families,
                    bool takes_prepared, std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles, std::unique_ptr<DB>* db,
                    Access access) try {
  db->reset();
  if (handles != nullptr) handles->clear();
  const auto start = std::chrono::steady_clock::now();
  Options options = given;
  for (const ColumnFamilyDescriptor& descriptor : families) {
    if (descriptor.name != kDefaultColumnFamilyName) continue;
    options.comparator = descriptor.options.comparator;
    options.merge_operator = descriptor.options.merge_operator;
    options.l1 = descriptor.options.l1;
    options.nv_leaf_size = descriptor.options.nv_leaf_size;
    options.compaction_filter = descriptor.options.compaction_filter;
    options.compaction_filter_factory = descriptor.options.compaction_filter_factory;
  }
  Status status = Validate(options);
  if (!status.ok()) return status;
  std::unique_ptr<DBImpl> impl(new DBImpl(options, path, access));
  const auto refuse = [&impl](const Status& why) {
    impl->Log("open: refused: " + why.ToString());
    return why;
  };
  const bool writes = !impl->is_read_only();
  status = writes ? impl->OpenFiles(families) : impl->FindFiles(families);
  if (status.ok()) status = impl->OpenStructures();
  const bool is_found = status.ok();
  if (status.ok()) status = impl->FindFamilies(families);
  if (status.ok()) status = impl->Recover();
  if (status.ok()) status = impl->LoadRanges();
  if (status.ok()) status = writes ? impl->CreateMissing(families) : impl->CheckReplayed();
  if (impl->creation_ != nullptr) {
    impl->given_ = options;
    // The database exists even if its open is refused because of its families.
    const Status created = is_found ? impl->FinishCreation(status.ok()) : status;
    if (!created.ok()) {
      const Status refused = refuse(created);
      AbandonCreation(std::move(impl));
      return refused;
    }
  }
  // After every check that can refuse the open: a region never shrinks.
  if (status.ok() && writes) status = impl->regions_->ReserveBytes(impl->options_.initial_region_size);
  if (!status.ok()) return refuse(status);
  impl->recovery_us_ = MicrosSince(start);
  impl->StartBackground();
  if (!takes_prepared) status = impl->RefusePrepared();
  if (!status.ok()) return refuse(status);
  if (impl->logger_) impl->logger_->BeginRotation();
  impl->Log(Format("open: serving after %.3f ms, %llu entries replayed, sequence number %llu",
                   static_cast<double>(impl->recovery_us_) / 1000.0, static_cast<unsigned long long>(impl->replayed_entries_),
                   static_cast<unsigned long long>(impl->LastDrawn())));
  for (size_t i = 0; handles != nullptr && i < families.size(); ++i) handles->push_back(impl->MakeUsersHandle(families[i].name));
  if (writes) {
    impl->given_ = std::move(options);
    std::vector<std::string> lines;
    {
      std::lock_guard lock(impl->families_mutex_);
      impl->NoteOptions();
      std::vector<ColumnFamilyDescriptor> all;
      for (const auto& family : impl->families_) {
        if (!family->dropped.load(std::memory_order_relaxed) && !IsHiddenFamily(family->name))
          all.push_back({family->name, family->options});
      }
      lines = OptionsAsLogLines(impl->given_, all);
    }
    for (const std::string& line : lines) impl->Log(line);
    TemporaryPlace::KeepOld(path);
  }
  *db = std::move(impl);
  return Status::OK();
} catch (const std::bad_alloc&) {
  return NoMemory();
} catch (const std::system_error& error) {
  return Status::MemoryLimit(std::string("cannot start a thread: ") + error.what() + "; raise the limit of threads (ulimit -u)");
}

// Writes the options file. An error is only logged: the database and its options are right without the file.
void DBImpl::NoteOptions() const try {
  Options given = given_;
  given.regions = options_.regions;
  given.list_kind = options_.list_kind;
  given.index_unified_logging = options_.index_unified_logging;
  const auto change = [this](uint32_t family, std::map<std::string, std::string>* foreign) {
    const auto changed = changed_foreign_.find(family);
    if (changed == changed_foreign_.end()) return;
    for (const auto& [name, value] : changed->second) (*foreign)[name] = value;
  };
  change(0, &given.foreign_family_options);
  std::vector<ColumnFamilyDescriptor> families;
  for (const auto& family : families_) {
    if (family->dropped.load(std::memory_order_relaxed) || IsHiddenFamily(family->name)) continue;
    families.push_back({family->name, family->options});
    change(family->id, &families.back().options.foreign_options);
  }
  const Status status = WriteOptionsFile(given, families, path_);
  if (OutcomeOf(Work::kOptionsFile, status) == Outcome::kLater) Log("the options file is not up to date: " + status.ToString());
} catch (const std::bad_alloc&) {  // the next change of options writes the file again
}

RegionSetOptions DBImpl::MakeRegionOptions() const {
  RegionSetOptions result;
  result.database_path = path_;
  result.region_paths = options_.region_paths;
  result.region_nodes = options_.region_nodes;
  result.database_id = place_.database_id;
  result.regions = options_.regions;
  result.max_region_size = options_.max_region_size;
  result.persist_mode = options_.persist_mode;
  result.emulation = options_.emulation;
  result.count_writes = options_.count_pm_writes;
  result.on_mapped = test::NotifyPoolsMapped;
  result.info_log = [this](std::string_view line) {
    if (logger_) logger_->Log(line);
  };
  return result;
}

Status DBImpl::CheckBeforeOpen(const std::vector<ColumnFamilyDescriptor>& families) const {
  CheckOptions check;
  check.region_paths = options_.region_paths;
  check.comparator = options_.comparator;
  for (const ColumnFamilyDescriptor& family : families) check.comparators.push_back(family.options.comparator);
  CheckReport report;
  Status status = CheckFiles(check, path_, &report);
  if (!status.ok() || report.sound()) return status;
  for (const CheckFinding& finding : report.findings) Log("check: " + finding.what + ": " + finding.where);
  const CheckFinding& first = report.findings.front();
  const uint64_t others = report.findings.size() - 1 + report.more_findings;
  return Status::Corruption(first.what + ": " + first.where + (others != 0 ? ", and " + std::to_string(others) + " more" : "") +
                            "; " + first.advice);
}

Status DBImpl::CheckDramBudget() const {
  const uint64_t least = DramBudget::Least(regions_->count());
  if (options_.dram_budget == 0 || (options_.dram_budget >= least && options_.dram_budget <= DramBudget::kMost))
    return Status::OK();
  return Status::InvalidArgument(Format("Options::dram_budget must be %llu MiB, with %u regions, to 1 PiB, or 0 for no limit",
                                        static_cast<unsigned long long>(least >> 20), regions_->count()));
}

Status DBImpl::OpenStructures() {
  options_.regions = regions_->count();
  for (const std::string& line : DescribeMedia(*regions_)) Log(line);
  if (Status budget = CheckDramBudget(); !budget.ok()) return budget;
  dram_ = DramBudget::Share(&options_);
  changing_.Begin(options_);
  changing_.memtable_size = MemtableSize(options_.memtable_size);
  test::NotifyDatabaseFound(regions_.get());
  Status status;
  if (segments_ == nullptr) status = SegmentAllocator::Open(regions_.get(), options_.segment_size, &segments_);
  if (status.ok()) status = Manifest::Open(regions_.get(), &manifest_, &manifest_state_);
  if (!status.ok()) return status;
  // A creation that was killed after its last step may not have synced the name of the file DATABASE, and has never closed the
  // database. [CC-1] [CC-46]
  if (creation_ == nullptr && !is_read_only() && !manifest_state_.clean) status = SyncDir(path_);
  if (!status.ok()) return status;
  if (manifest_state_.comparator != StoredName(*options_.comparator)) {
    // RocksDB's text, which programs look for.
    return Status::InvalidArgument(std::string(FamiliarName(options_.comparator->Name())) +
                                   ": does not match existing comparator " +
                                   std::string(FamiliarName(manifest_state_.comparator)));
  }
  if (manifest_state_.l1_kind != static_cast<uint8_t>(options_.l1)) {
    return Status::InvalidArgument("the database was made with Options::l1 " + NameOfL1(manifest_state_.l1_kind) +
                                   "; open it with that kind");
  }
  options_.list_kind = manifest_state_.list_kind;
  options_.index_unified_logging = !manifest_state_.copying_flush;
  regions_->SetListKind(options_.list_kind);
  return Status::OK();
}

// STEPS   1 finish the changes of the last levels that a crash interrupted  2 restore the listed tables  3 replay the log above
//         the boundary into one more table per family  4 make these tables durable and list them.
// CRASH   After any step: the next recovery repeats the steps, with the same result. [CC-5]
Status DBImpl::Recover() {
  Status status = OpenLevels();
  if (!status.ok()) return status;
  log_floor_.store(manifest_state_.log_boundary - 1, std::memory_order_seq_cst);
  resume_merge_ = manifest_state_.merge_id != 0 && !BRAIDDB_MUTANT("merge-not-resumed");
  manifest_state_.clean = false;  // from the next commit on
  RestoreTables();
  const bool has_relocation = HasRelocation(manifest_state_);
  if (status = FinishRelocation(segments_.get(), has_relocation); !status.ok()) return status;
  if (!options_.index_unified_logging) status = FinishFlushes(segments_.get(), manifest_state_.log_boundary);
  if (!status.ok()) return status;

  std::vector<const KeyOrder*> orders{&default_family_.order};
  for (const auto& family : families_) {
    orders.resize(std::max<size_t>(orders.size(), family->id + 1));
    orders[family->id] = &family->order;
  }
  const std::shared_ptr<Family> ranges = FindFamilyByName(kRangeTombstonesFamilyName);
  const std::shared_ptr<Family> prepared = FindFamilyByName(kPreparedFamilyName);
  ReplayContext context{regions_.get(),
                        segments_.get(),
                        std::move(orders),
                        manifest_state_.log_boundary,
                        next_memtable_id_++,
                        options_.recovery_threads,
                        [this](std::string_view line) { Log(std::string(line)); },
                        manifest_state_.may_lose_writes,
                        ranges == nullptr ? 0 : ranges->id,
                        prepared == nullptr ? 0 : prepared->id};
  ReplayResult replay;
  const auto start = std::chrono::steady_clock::now();
  status = ReplayLog(context, &replay);
  if (status.ok() && !options_.index_unified_logging && !is_read_only()) status = CopyReplayed(&replay);
  if (!status.ok()) return status;
  replayed_entries_ = replay.entries;
  if (replay.entries > 0) {
    Log(Format("replay: %llu entries of %llu log bytes in %.3f ms by %u threads", static_cast<unsigned long long>(replay.entries),
               static_cast<unsigned long long>(replay.bytes), static_cast<double>(MicrosSince(start)) / 1000.0,
               options_.recovery_threads));
  }
  const uint64_t last = std::max({replay.last_sequence, manifest_state_.last_sequence, manifest_state_.log_boundary - 1});
  next_sequence_.store(last + 1, std::memory_order_relaxed);
  // Entries that are not replayed are below the floor of the log's history; see log_iterator.h.
  last_update_at_open_ = std::max(replay.last_update, manifest_state_.log_boundary - 1);

  // All tables in the view count as flushed, whichever memtables they come from.
  last_rotated_id_ = context.table_id;
  flushed_memtable_id_.store(context.table_id, std::memory_order_relaxed);
  auto view = std::make_shared<ReadView>(*current_view_);
  for (const auto& table : replay.tables) {
    table->waits_for_index = tables_wait_for_index_ = true;
    view->Alter(table->family(), [&table](FamilyView* levels) { levels->AddTable(table); });
  }
  view->active = NewMemtable(nullptr);
  if (view->active == nullptr) return Status::MemoryLimit("no address space for a memtable");
  active_.store(view->active.get(), std::memory_order_seq_cst);
  active_first_sequence_ = last + 1;
  {
    std::lock_guard lock(view_mutex_);
    InstallView(view);
  }
  // Segments whose entries are to be counted. Excluded are segments that a flush by copies may release at any time, and segments
  // that this open has written and counted.
  segments_->ForEachLog([this](Segment* segment) {
    const bool is_counted = segment->entries.load(std::memory_order_relaxed) != 0;
    if (!is_counted && !IsFlushedByCopies(*segment)) unaccounted_.push_back(segment);
  });
  // Open segments of the last session are sealed. From here on segments are written in the persist mode of this open.
  const bool may_lose_writes = regions_->persistence()->mode() == PersistMode::kPage;
  const bool changed = std::exchange(manifest_state_.may_lose_writes, may_lose_writes) != may_lose_writes;
  if (!replay.tables.empty()) return CheckpointTables();
  {
    std::lock_guard lock(manifest_mutex_);
    ReleaseFlushedLog(manifest_state_.log_boundary);
  }
  return changed ? manifest_.Commit(manifest_state_) : Status::OK();
}

// Copies the replayed tables, as a copying flush would copy their memtables. Entries in the log are counted as one: a flush by
// copies releases their segments as a whole.
Status DBImpl::CopyReplayed(ReplayResult* replay) {
  segments_->ForEachLog([](Segment* segment) {
    if (!segment->holds_copies.load(std::memory_order_relaxed)) segment->entries.store(1, std::memory_order_relaxed);
  });
  FlushCopier copier(regions_.get(), segments_.get());
  for (std::shared_ptr<PmTable>& table : replay->tables) {
    auto copy = std::make_shared<PmTable>(table->id(), table->boundary(), regions_.get(), &FindFamily(table->family())->order,
                                          table->family());
    copy->log_bytes = table->log_bytes;
    if (Status status = CopyTable(*table, &copier, copy.get()); !status.ok()) return status;
    table = std::move(copy);
  }
  uint64_t lines = 0;
  Status status = copier.Finish(&lines);
  counters_.flushed_lines.fetch_add(lines, std::memory_order_relaxed);
  return status;
}

Status DBImpl::OpenJournal() {
  auto journal = std::make_shared<MergeJournal>();
  Status status = MergeJournal::Open(regions_.get(), journal.get());
  PmPtr ignored;
  if (status.ok()) status = journal->Redo(0, &ignored);
  if (status.ok()) journal_ = std::move(journal);
  return status;
}

Status DBImpl::OpenLevels() {
  std::vector<Family*> families{&default_family_};
  for (const auto& family : families_) families.push_back(family.get());
  if (std::any_of(families.begin(), families.end(), [](const Family* family) { return family->kind->relinks_entries; })) {
    if (Status status = OpenJournal(); !status.ok()) return status;
  }
  default_family_.l1_entries.store(manifest_state_.l1_entries, std::memory_order_relaxed);
  for (Family* const family : families) {
    const uint64_t job = family->id == manifest_state_.merging_family ? manifest_state_.merge_id : 0;
    std::unique_ptr<LastLevel> level;
    Status status = LastLevel::Open(LevelOptions(family->options), LevelParts(*family), job, &level);
    if (!status.ok()) return status;
    family->last_level = std::move(level);
    counters_.l1_entries.fetch_add(family->l1_entries.load(std::memory_order_relaxed), std::memory_order_relaxed);
    const bool has_tables = std::any_of(manifest_state_.tables.begin(), manifest_state_.tables.end(),
                                        [family](const auto& table) { return table.family == family->id; });
    if (!has_tables) family->merged_boundary = manifest_state_.log_boundary;
  }
  return ReleaseUnownedSegments();
}

// Releases segments without an owner: of last levels whose creation was interrupted, of purged families, and of other interrupted
// changes.
Status DBImpl::ReleaseUnownedSegments() {
  std::vector<Segment*> unowned;
  segments_->ForEachIndex([&](Segment* segment) {
    bool is_owned = default_family_.last_level->Owns(segment);
    for (const auto& family : families_) is_owned = is_owned || family->last_level->Owns(segment);
    if (!is_owned) unowned.push_back(segment);
  });
  for (Segment* const segment : unowned) {
    if (Status status = segments_->Release(segment); !status.ok()) return status;
  }
  return Status::OK();
}

void DBImpl::RestoreTables() {
  auto view = std::make_shared<ReadView>();
  view->l1 = default_family_.last_level->View();
  for (const auto& family : families_) {
    view->Alter(family->id, [&family](FamilyView* levels) { levels->l1 = family->last_level->View(); });
  }
  // The MANIFEST may be damaged: the number of entries is limited to what the regions can hold, because memory is allocated for
  // it.
  uint64_t most_entries = 0;
  for (uint32_t region = 0; region < regions_->count(); ++region)
    most_entries += regions_->ReservedBytes(region) / LogEntrySize(1, 0, 0);
  for (const ManifestState::Table& listed : manifest_state_.tables) {
    if (FindFamily(listed.family) == nullptr) continue;  // the family was dropped
    auto table =
        std::make_shared<PmTable>(listed.id, listed.boundary, regions_.get(), &FindFamily(listed.family)->order, listed.family);
    table->heads() = listed.heads;
    for (uint32_t region = 0; region < regions_->count(); ++region) {
      table->list.SetHead(region, &table->heads()[region * kMaxHeight]);
    }
    table->entries = std::min(listed.entries, most_entries);
    table->checkpointed.store(true, std::memory_order_relaxed);
    table->waits_for_index = tables_wait_for_index_ = true;
    next_memtable_id_ = std::max(next_memtable_id_, listed.id + 1);
    view->Alter(listed.family, [&table](FamilyView* levels) { levels->AddTable(std::move(table)); });
  }
  next_memtable_id_ = std::max(next_memtable_id_, manifest_state_.next_id);
  current_view_ = std::move(view);
}

void DBImpl::StartBackground() {
  uses_filter_ = options_.filter_bits_per_key > 0 && default_family_.is_hashed;
  CreateLookupCache();
  l0_index_ = std::make_unique<L0IndexWriter>(regions_.get(), options_.memtable_max_entries);
  if (is_read_only()) return StartReading();
  segments_->SetReaderCheck(
      [holds = std::make_shared<ReaderHolds>(path_)](uint64_t bytes_in_use) { return holds->Any(bytes_in_use); });
  if (!options_.listeners.empty() || options_.info_log) events_ = std::make_unique<EventQueue>(options_.listeners);
  if (BoundsSpace()) LookAtSpace(true);  // the first round of the compaction thread may come late
  NoteSuperfluous();
  flush_thread_ = std::thread([this] { FlushLoop(); });
  try {
    compaction_thread_ = std::thread([this] { CompactionLoop(); });
  } catch (...) {
    stopping_.store(true, std::memory_order_release);
    NotifyWork();
    flush_thread_.join();
    if (events_ != nullptr) events_->Stop();
    throw;
  }
  closed_ = false;
}

void DBImpl::operator delete(DBImpl* db, std::destroying_delete_t) {
  if (db->fork_mark_.is_in_child()) return;
  db->~DBImpl();
  static_assert(alignof(DBImpl) > __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  ::operator delete(static_cast<void*>(db), std::align_val_t(alignof(DBImpl)));
}

DBImpl::~DBImpl() {
  Status ignored = Close();
  (void)ignored;  // the error is in the log; a caller that needs it calls Close
  // If Close ran out of memory, the event thread still runs; its functions use members that are destroyed below.
  if (events_ != nullptr) events_->Stop();
  view_.store(nullptr);
  current_view_.reset();
  pending_flushes_.clear();
  // Old views own memtables, whose deleters return arenas to this object. So they are freed while all members exist.
  for (int round = 0; round < 3 && epochs_.Reclaim() > 0; ++round) {
  }
  // Last levels retire the objects that they free, so they are destroyed before the epochs.
  default_family_.last_level.reset();
  for (const auto& family : families_) family->last_level.reset();
}

// Refuses all writes from here on: the MANIFEST says that the database was closed, so a later write would be lost.
void DBImpl::EndWrites() {
  const std::lock_guard lock(work_mutex_);
  if (background_error_.ok()) background_error_ = Status::Aborted("the database in " + path_ + " is closed; open it again");
  write_failed_.store(true, std::memory_order_release);
}

// STEPS   1 flush all memtables  2 end the background threads; a user's function that waits for them gets Aborted  3 deliver the
//         events so far; later events wait for 5  4 store what makes the next open fast  5 refuse writes, and deliver the
//         remaining events.
// 3 and 5 come to an end: they do not wait for events that user's functions cause during delivery.
Status DBImpl::Close() try {
  if (fork_mark_.is_in_child()) return InChild();
  if (closed_) return close_status_;
  closed_ = true;
  if (is_read_only()) return close_status_ = CloseReadOnly();
  close_status_ = Status::MemoryLimit({});  // the result if an allocation below fails
  EndFilterWrites();                        // later writes of filters would have to be replayed
  uint64_t last_id = 0;
  Status status;
  try {
    if (!write_failed_.load(std::memory_order_acquire)) status = FlushMemtables(&last_id);
  } catch (const std::bad_alloc&) {
    status = NoMemory();  // the threads must be joined all the same
  }
  stopping_.store(true, std::memory_order_release);
  NotifyWork();
  flush_thread_.join();
  compaction_thread_.join();
  if (events_ != nullptr) events_->Pause();  // until here the user's functions may use the database
  if (status.ok()) status = BackgroundError();
  std::vector<Segment*> sealing;
  if (status.ok()) {
    threads_.ForEach([&](ThreadState& thread) {
      if (Segment* const segment = thread.writer.PrepareSeal(segments_.get()); segment != nullptr) sealing.push_back(segment);
    });
  }
  epochs_.Reclaim();
  if (status.ok()) ReleaseMoved();
  if (status.ok()) status = default_family_.last_level->Close();
  for (const auto& family : families_) {
    if (status.ok() && !family->dropped.load(std::memory_order_relaxed)) status = family->last_level->Close();
  }
  if (status.ok()) status = segments_->FreeDeferred(true);
  if (status.ok()) status = CheckpointAndClose(sealing);
  close_status_ = status;
  EndWrites();
  Log("close: " + status.ToString());
  if (events_ != nullptr) events_->Stop();
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();  // the next open replays unflushed entries
}

}  // namespace braiddb
