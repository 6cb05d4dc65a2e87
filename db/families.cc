// Column families: found at an open, and created.
#include <algorithm>
#include <chrono>
#include <mutex>

#include "db/db_impl.h"
#include "db/hidden_family.h"
#include "db/no_memory.h"
#include "db/options_file.h"
#include "db/read_manifest.h"
#include "db/timestamped_entry.h"
#include "nvtree/leaf.h"
#include "util/comparator_name.h"
#include "util/mutant.h"
#include "util/no_path.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// The creation of a family waits at most this long for the purge of dropped families whose ids or space it needs.
constexpr auto kMaxWaitForPurge = std::chrono::seconds(5);

Status Validate(const ColumnFamilyOptions& options, const std::string& name) {
  if (name.empty() || name.size() > kMaxFamilyName)
    return Status::InvalidArgument("the name of a column family has 1 to " + std::to_string(kMaxFamilyName) + " bytes");
  if (options.comparator == nullptr)
    return Status::InvalidArgument("column family '" + name + "': the comparator is null; use BytewiseComparator()");
  if (FindLevelKind(options.l1) == nullptr)
    return Status::NotSupported("column family '" + name + "': this version has no such l1");
  if (!IsLeafSize(options.nv_leaf_size))
    return Status::InvalidArgument("column family '" + name + "': nv_leaf_size must be 512, 1024, 2048 or 4096 bytes");
  const Status status = CheckForeignOptions(options.foreign_options);
  return status.ok() ? CheckForeignOptions(options.foreign_table_options) : status;
}

Status ReservedName(const std::string& name) {
  return Status::InvalidArgument("column family '" + name + "' is the database's own; choose another name");
}

}  // namespace

// ---- Handles

Family* DBImpl::FamilyOf(const ColumnFamilyHandle* handle, Status* status) const {
  const auto* const known = static_cast<const FamilyHandle*>(handle);
  if (__builtin_expect(known != nullptr && known->db() == this, 1)) {
    Family* const family = known->family();
    if (__builtin_expect(live_reader_ == nullptr || !family->is_gone.load(std::memory_order_acquire), 1)) return family;
    *status = Status::InvalidArgument("column family '" + family->name + "' was dropped by the process that writes the database");
    return nullptr;
  }
  *status = Status::InvalidArgument(handle == nullptr ? "the column family handle is null"
                                                      : "the column family handle belongs to another database");
  return nullptr;
}

std::unique_ptr<ColumnFamilyHandle> DBImpl::MakeHandle(const std::string& name) {
  if (name == kDefaultColumnFamilyName)
    return std::make_unique<FamilyHandle>(this, std::shared_ptr<Family>(std::shared_ptr<void>(), &default_family_));
  return std::make_unique<FamilyHandle>(this, FindFamilyByName(name));
}

std::unique_ptr<ColumnFamilyHandle> DBImpl::MakeUsersHandle(const std::string& name) {
  std::unique_ptr<ColumnFamilyHandle> handle = MakeHandle(name);
  static_cast<FamilyHandle*>(handle.get())->TellOfDeletion(options_.listeners);
  return handle;
}

// REQUIRES: families_mutex_, or that the database is being opened.
std::shared_ptr<Family> DBImpl::FindFamilyByName(const std::string& name) {
  for (const auto& family : families_) {
    if (family->name == name && !family->dropped.load(std::memory_order_relaxed)) return family;
  }
  return nullptr;
}

Family* DBImpl::NewFamily(uint32_t id, uint64_t number, const std::string& name, const ColumnFamilyOptions& options) {
  families_.push_back(std::make_shared<Family>(id, number, name, options));
  return families_.back().get();
}

Options DBImpl::LevelOptions(const ColumnFamilyOptions& options) const {
  Options result = options_;
  result.comparator = options.comparator;
  result.l1 = options.l1;
  result.nv_leaf_size = options.nv_leaf_size;
  return result;
}

LastLevel::Parts DBImpl::LevelParts(const Family& family) {
  return {regions_.get(), segments_.get(), &epochs_, &family.order, family.place(), journal_, 0, &stopping_, &live_heap_};
}

Status DBImpl::GetColumnFamilies(std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles) try {
  const Status status = GetAllFamilies(handles);
  std::erase_if(*handles, [](const auto& handle) { return IsHiddenFamily(handle->GetName()); });
  for (const auto& handle : *handles) static_cast<FamilyHandle*>(handle.get())->TellOfDeletion(options_.listeners);
  return status;
} catch (const std::bad_alloc&) {
  handles->clear();
  return NoMemory();
}

Status DBImpl::GetAllFamilies(std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles) try {
  handles->clear();
  std::lock_guard lock(families_mutex_);
  handles->push_back(MakeHandle(kDefaultColumnFamilyName));
  for (const auto& family : families_) {
    if (!family->dropped.load(std::memory_order_relaxed) && family->name != kRangeTombstonesFamilyName)
      handles->push_back(std::make_unique<FamilyHandle>(this, family));
  }
  return Status::OK();
} catch (const std::bad_alloc&) {
  handles->clear();
  return NoMemory();
}

// ---- At an open

Status DB::ListColumnFamilies(const Options& options, const std::string& path, std::vector<std::string>* names) try {
  names->clear();
  if (path.empty()) return NoPath();
  ManifestState manifest;
  if (Status status = ReadManifest(options, path, &manifest); !status.ok()) return status;
  names->push_back(kDefaultColumnFamilyName);
  for (const ManifestState::Family& family : manifest.families) {
    if (!family.dropped && !IsHiddenFamily(family.name)) names->push_back(family.name);
  }
  return Status::OK();
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status DBImpl::FindFamilies(const std::vector<ColumnFamilyDescriptor>& descriptors) {
  const auto find = [&](const std::string& name) {
    return std::find_if(descriptors.begin(), descriptors.end(), [&](const auto& descriptor) { return descriptor.name == name; });
  };
  std::string missing;
  for (const ManifestState::Family& listed : manifest_state_.families) {
    if (listed.dropped) {
      purge_waits_.store(true, std::memory_order_relaxed);
      continue;
    }
    const auto descriptor = find(listed.name);
    const bool is_hidden = IsHiddenFamily(listed.name);
    if (descriptor == descriptors.end() && !is_hidden) {
      missing += (missing.empty() ? "" : ", ") + listed.name;
      continue;
    }
    ColumnFamilyOptions options = is_hidden ? ColumnFamilyOptions() : descriptor->options;
    if (is_hidden) options.l1 = static_cast<L1Kind>(listed.l1_kind);
    if (Status status = Validate(options, listed.name); !status.ok()) return status;
    if (listed.comparator != StoredName(*options.comparator)) {
      // RocksDB's text, which programs look for.
      return Status::InvalidArgument(std::string(FamiliarName(options.comparator->Name())) +
                                     ": does not match existing comparator " + std::string(FamiliarName(listed.comparator)) +
                                     " of column family '" + listed.name + "'; open it with the one it was made with");
    }
    if (listed.l1_kind != static_cast<uint8_t>(options.l1)) {
      return Status::InvalidArgument("column family '" + listed.name + "' was made with another l1 (" + NameOfL1(listed.l1_kind) +
                                     "); open it with that kind");
    }
    Family* const family = NewFamily(listed.id, listed.number, listed.name, options);
    family->l1_entries.store(listed.l1_entries, std::memory_order_relaxed);
    by_id_[listed.id].store(family, std::memory_order_release);
  }
  if (!missing.empty() && !is_read_only())
    return Status::InvalidArgument("You have to open all column families. Column families not opened: " + missing);
  for (size_t i = 0; i < descriptors.size(); ++i) {
    const std::string& name = descriptors[i].name;
    if (find(name) - descriptors.begin() != static_cast<std::ptrdiff_t>(i))
      return Status::InvalidArgument("column family '" + name + "' is given twice");
    if (IsHiddenFamily(name)) return ReservedName(name);
    const bool is_there = name == kDefaultColumnFamilyName || FindFamilyByName(name) != nullptr;
    if (!is_there && is_read_only()) return Status::InvalidArgument("Column family not found: " + name);
    if (!is_there && !options_.create_missing_column_families) {
      return Status::InvalidArgument("Column family not found: " + name +
                                     "; set Options::create_missing_column_families to have it made");
    }
    if (Status status = Validate(descriptors[i].options, name); !status.ok()) return status;
  }
  return Status::OK();
}

// Prepared transactions need the locks of a TransactionDB. Other writes would not respect these locks.
Status DBImpl::RefusePrepared() {
  const auto hidden = FindFamilyByName(kPreparedFamilyName);
  if (hidden == nullptr) return Status::OK();
  FamilyHandle handle(this, hidden);
  const auto records = NewIterator(ReadOptions(), &handle);
  records->SeekToFirst();
  if (!records->Valid()) return records->status();
  return Status::NotSupported(
      "the database has prepared transactions; open it with TransactionDB::Open, and commit them or roll them back");
}

Status DBImpl::CreateMissing(const std::vector<ColumnFamilyDescriptor>& descriptors) {
  for (const ColumnFamilyDescriptor& descriptor : descriptors) {
    if (descriptor.name == kDefaultColumnFamilyName || FindFamilyByName(descriptor.name) != nullptr) continue;
    if (Status status = MakeFamily(descriptor.options, descriptor.name); !status.ok()) return status;
  }
  return Status::OK();
}

// ---- Creation

// A free id; 0 if none is free. Ids of users' families are given in ascending order from 1 on, and start again at 1 after the
// last, so that a batch with the id of a dropped family does not soon meet another family. Hidden families get the largest ids,
// so that users' ids do not depend on whether hidden families exist.
uint32_t DBImpl::FreeFamilyId(bool is_hidden) {
  constexpr uint32_t kUsersIds = kMaxFamilies - 1 - kHiddenFamilies;  // without the default family
  const auto is_free = [this](uint32_t id) { return manifest_state_.FindFamily(id) == nullptr; };
  if (is_hidden) {
    uint32_t id = kMaxFamilies - 1;
    while (id > 0 && !is_free(id)) --id;
    return id;
  }
  for (uint32_t i = 0; i < kUsersIds; ++i) {
    const uint32_t id = 1 + (last_family_id_ + i) % kUsersIds;
    if (!is_free(id)) continue;
    last_family_id_ = id;
    return id;
  }
  return 0;
}

// STEPS   1 create an empty last level, durable  2 list the family in the MANIFEST  3 install a view that has the family.
// ORDER   1 before 2. [CC-49]
// CRASH   Before 2: the new level has no owner. The next open releases its segments. Its places are rewritten when they are used
//         again.
// REQUIRES: families_mutex_, or that the database is being opened.
Status DBImpl::MakeFamily(const ColumnFamilyOptions& options, const std::string& name) {
  if (Status status = Validate(options, name); !status.ok()) return status;
  std::lock_guard lock(manifest_mutex_);
  const uint32_t id = FreeFamilyId(IsHiddenFamily(name));
  if (id == 0) {
    return Status::NoSpace("the database has " + std::to_string(kMaxFamilies - kHiddenFamilies) +
                           " column families, those that are being dropped included, and cannot have more; drop one");
  }
  ManifestState state = manifest_state_;
  ManifestState::Family listed;
  listed.id = id;
  listed.name = name;
  listed.comparator = StoredName(*options.comparator);
  listed.l1_kind = static_cast<uint8_t>(options.l1);
  listed.number = state.next_id++;
  const auto at = std::find_if(state.families.begin(), state.families.end(), [id](const auto& other) { return other.id > id; });
  state.families.insert(at, listed);
  Status status = manifest_.Reserve(state, Manifest::Room::kCopiesAndFlush);
  if (!status.ok()) return status;
  if (BRAIDDB_MUTANT("family-listed-early")) status = manifest_.Commit(state);
  const Options level_options = LevelOptions(options);
  if (status.ok()) status = LastLevel::Create(level_options, regions_.get(), segments_.get(), {id, listed.number});
  if (status.ok() && journal_ == nullptr && FindLevelKind(options.l1)->relinks_entries) status = OpenJournal();
  if (!status.ok()) return status;
  families_.reserve(families_.size() + 1);
  const auto family = std::make_shared<Family>(id, listed.number, name, options);
  std::unique_ptr<LastLevel> level;
  status = LastLevel::Open(level_options, LevelParts(*family), 0, &level);
  BRAIDDB_SYNC_POINT("DBImpl::MakeFamily:Made");
  if (!status.ok()) return status;
  family->last_level = std::move(level);
  std::lock_guard view_lock(view_mutex_);
  auto view = std::make_shared<ReadView>(*current_view_);
  view->Alter(id, [&](FamilyView* levels) { levels->l1 = family->last_level->View(); });
  status = manifest_.Commit(state);
  if (!status.ok()) return status;
  manifest_state_ = std::move(state);  // no step after this one fails
  families_.push_back(family);
  by_id_[id].store(family.get(), std::memory_order_release);
  InstallView(view);
  return Status::OK();
}

Status DBImpl::CreateColumnFamily(const ColumnFamilyOptions& options, const std::string& name,
                                  std::unique_ptr<ColumnFamilyHandle>* handle) {
  handle->reset();
  if (IsHiddenFamily(name)) return ReservedName(name);
  if (!HasTimestamps(options.comparator)) return CreateAnyFamily(options, name, handle);
  return Status::NotSupported("column family '" + name + "' has timestamps, and the database was opened without such a family; " +
                              "open it with DB::Open, this family and Options::create_missing_column_families");
}

Status DBImpl::CreateAnyFamily(const ColumnFamilyOptions& options, const std::string& name,
                               std::unique_ptr<ColumnFamilyHandle>* handle) try {
  handle->reset();
  if (fork_mark_.is_in_child()) return InChild();
  const auto deadline = std::chrono::steady_clock::now() + kMaxWaitForPurge;
  std::unique_lock drop_lock(drop_mutex_);  // the name may belong to a family that is being dropped
  std::unique_lock lock(families_mutex_);
  for (;;) {
    if (write_failed_.load(std::memory_order_acquire)) return BackgroundError();
    if (name == kDefaultColumnFamilyName || FindFamilyByName(name) != nullptr)
      return Status::InvalidArgument("Column family already exists: " + name);
    const uint64_t forgotten = families_forgotten_.load(std::memory_order_acquire);
    Status status = MakeFamily(options, name);
    if (status.ok()) break;
    Settle(Work::kCreateFamily, status);
    if (!status.IsNoSpace()) return status;
    lock.unlock();
    drop_lock.unlock();
    if (!WaitForPurge(forgotten, deadline)) return status;
    drop_lock.lock();
    lock.lock();
  }
  *handle = IsHiddenFamily(name) ? MakeHandle(name) : MakeUsersHandle(name);
  NoteOptions();
  Log("column family '" + name + "' created");
  return Status::OK();
} catch (const std::bad_alloc&) {
  return NoMemory();
}

}  // namespace braiddb
