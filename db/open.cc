// Opening a database.
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <thread>

#include "check/check_files.h"
#include "db/db_impl.h"
#include "db/hidden_family.h"
#include "db/live_db.h"
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
#include "util/numa_topology.h"
#include "util/perf.h"

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
  for (const auto* foreign : {&options.foreign_options, &options.foreign_family_options, &options.foreign_table_options}) {
    if (Status status = CheckForeignOptions(*foreign); !status.ok()) return status;
  }
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

// Links and dots stay as they are: directories that they lead through may have to be created.
std::string WithWorkingDirectory(const std::string& path) {
  if (path.empty() || path.front() == '/') return path;
  std::error_code error;
  const std::filesystem::path directory = std::filesystem::current_path(error);
  return error ? path : directory.string() + "/" + path;
}

}  // namespace

DBImpl::DBImpl(const Options& options, const std::string& path, Access access)
    : access_(access),
      options_(Resolve(options)),
      name_(path),
      path_(WithWorkingDirectory(path)),
      measures_(options.histograms),
      default_family_(0, 0, kDefaultColumnFamilyName, ColumnFamilyOptions(options)),
      default_handle_(MakeHandle(kDefaultColumnFamilyName)),
      by_id_(std::make_unique<std::atomic<Family*>[]>(kMaxFamilies)),
      cache_share_(options.lookup_cache_limit),
      board_memory_(access == Access::kWrite) {
  board_->next_sequence.store(1, std::memory_order_relaxed);
  by_id_[0].store(&default_family_, std::memory_order_relaxed);
}

Status DBImpl::Open(const Options& given, const std::string& path, const std::vector<ColumnFamilyDescriptor>& families,
                    bool takes_prepared, std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles, std::unique_ptr<DB>* db,
                    Access access) try {
  db->reset();
  if (handles != nullptr) handles->clear();
  const uint64_t begin_ns = perf::NowNs();
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
  if (access == Access::kLive) {
    status = impl->AttachToOwner(families);
    // Before this process follows the owner, which may drop the families.
    for (size_t i = 0; status.ok() && handles != nullptr && i < families.size(); ++i)
      handles->push_back(impl->MakeUsersHandle(families[i].name));
    BRAIDDB_SYNC_POINT("DBImpl::Open:MadeHandles");
    if (status.ok()) status = impl->FollowOwner();
    if (!status.ok()) {
      if (handles != nullptr) handles->clear();
      return refuse(status);
    }
    impl->StartFollowing();
    *db = std::make_unique<LiveDB>(std::move(impl));
    return Status::OK();
  }
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
  impl->recovery_us_ = (perf::NowNs() - begin_ns) / 1000;
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
    std::vector<OptionsLogMessage> messages;
    {
      std::lock_guard lock(impl->families_mutex_);
      impl->NoteOptions();
      std::vector<ColumnFamilyDescriptor> all;
      for (const auto& family : impl->families_) {
        if (!family->dropped.load(std::memory_order_relaxed) && !IsHiddenFamily(family->name))
          all.push_back({family->name, family->options});
      }
      messages = OptionsAsLogMessages(impl->given_, all);
    }
    for (const OptionsLogMessage& message : messages) {
      if (impl->logger_) impl->logger_->Log(message.line, message.details);
    }
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
  result.on_growth = [this] { board_->growths.fetch_add(1, std::memory_order_seq_cst); };
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

Status DBImpl::CheckDefaultFamily(const std::string& comparator, uint8_t l1_kind) const {
  if (comparator != StoredName(*options_.comparator)) {
    // RocksDB's text, which programs look for.
    return Status::InvalidArgument(std::string(FamiliarName(options_.comparator->Name())) +
                                   ": does not match existing comparator " + std::string(FamiliarName(comparator)));
  }
  if (l1_kind == static_cast<uint8_t>(options_.l1)) return Status::OK();
  return Status::InvalidArgument("the database was made with Options::l1 " + NameOfL1(l1_kind) + "; open it with that kind");
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
  stamp_at_open_ = manifest_.stamp();
  // A creation that was killed after its last step may not have synced the name of the file DATABASE, and has never closed the
  // database. [CC-1] [CC-46]
  if (creation_ == nullptr && !is_read_only() && !manifest_state_.clean) status = SyncDir(path_);
  if (!status.ok()) return status;
  status = CheckDefaultFamily(manifest_state_.comparator, manifest_state_.l1_kind);
  if (!status.ok()) return status;
  options_.list_kind = manifest_state_.list_kind;
  options_.index_unified_logging = !manifest_state_.copying_flush;
  regions_->SetListKind(options_.list_kind);
  return Status::OK();
}

void DBImpl::StartBackground() {
  uses_filter_ = options_.filter_bits_per_key > 0 && default_family_.is_hashed;
  CreateLookupCache();
  l0_index_ = std::make_unique<L0IndexWriter>(regions_.get(), options_.memtable_max_entries);
  if (is_read_only()) return StartReading();
  live_readers_.SetReminder([this] { TellReaders(); });
  epochs_.Share(&board_->epoch, [this] { return live_readers_.MinEpoch(); });
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
    flush_ends_.store(true, std::memory_order_release);
    NotifyWork();
    flush_thread_.join();
    if (events_ != nullptr) events_->Stop();
    throw;
  }
  closed_ = false;
  BeginServing();
}

}  // namespace braiddb
