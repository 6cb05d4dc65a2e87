// Column families: found at an open, created, dropped, and purged after a drop.
#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

#include "db/db_impl.h"
#include "db/hidden_family.h"
#include "db/no_memory.h"
#include "db/read_manifest.h"
#include "db/timestamped_entry.h"
#include "index/key_hash.h"
#include "log/log_reader.h"
#include "nvtree/leaf.h"
#include "util/comparator_name.h"
#include "util/mutant.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

// The creation of a family waits at most this long for the purge of dropped families whose ids or space it needs.
constexpr auto kMaxWaitForPurge = std::chrono::seconds(5);
constexpr auto kPurgePollInterval = std::chrono::milliseconds(1);

Status Validate(const ColumnFamilyOptions& options, const std::string& name) {
  if (name.empty() || name.size() > kMaxFamilyName)
    return Status::InvalidArgument("the name of a column family has 1 to " + std::to_string(kMaxFamilyName) + " bytes");
  if (options.comparator == nullptr)
    return Status::InvalidArgument("column family '" + name + "': the comparator is null; use BytewiseComparator()");
  if (FindLevelKind(options.l1) == nullptr)
    return Status::NotSupported("column family '" + name + "': this version has no such l1");
  if (!IsLeafSize(options.nv_leaf_size))
    return Status::InvalidArgument("column family '" + name + "': nv_leaf_size must be 512, 1024, 2048 or 4096 bytes");
  return Status::OK();
}

Status ReservedName(const std::string& name) {
  return Status::InvalidArgument("column family '" + name + "' is the database's own; choose another name");
}

}  // namespace

// ---- Handles

Family* DBImpl::FamilyOf(const ColumnFamilyHandle* handle, Status* status) const {
  const auto* const known = static_cast<const FamilyHandle*>(handle);
  if (__builtin_expect(known != nullptr && known->db() == this, 1)) return known->family();
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
  return {regions_.get(), segments_.get(), &epochs_, &family.order, family.place(), journal_, 0, &stopping_};
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
      return Status::InvalidArgument("column family '" + listed.name + "' is ordered by comparator '" + listed.comparator +
                                     "', not by '" + options.comparator->Name() + "'; open it with the one it was made with");
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

// Runs the steps of PurgeFamilies without the pauses that the compaction thread makes.
bool DBImpl::WaitForPurge(uint64_t forgotten, std::chrono::steady_clock::time_point deadline) {
  const auto can_be_forgotten = [this] {
    std::lock_guard lock(manifest_mutex_);
    return std::any_of(manifest_state_.families.begin(), manifest_state_.families.end(), [this](const auto& listed) {
      const Family* const family = listed.dropped ? FindFamily(listed.id) : nullptr;
      return listed.dropped && (family == nullptr || family->handles.load(std::memory_order_acquire) == 0);
    });
  };
  while (families_forgotten_.load(std::memory_order_acquire) == forgotten) {
    if (stopping_.load(std::memory_order_acquire) || write_failed_.load(std::memory_order_acquire)) return false;
    if (std::chrono::steady_clock::now() >= deadline || !can_be_forgotten()) return false;
    bool stepped = false;
    {
      // A compaction may hold the mutex for a long time.
      const std::unique_lock lock(compaction_mutex_, std::try_to_lock);
      stepped = lock.owns_lock() && PurgeFamilies();
    }
    if (!stepped) std::this_thread::sleep_for(kPurgePollInterval);
  }
  return true;
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

// ---- Dropping

// STEPS   1 refuse new writes to the family, and wait for announced ones  2 flush all memtables, so that all entries are in
//         tables and below the log boundary  3 finish a merge that is to be resumed  4 commit a MANIFEST that marks the family as
//         dropped and forgets its tables.
// 2 and 3 may take long. Only calls that create or drop families wait for them.
// CRASH   Before 4 the family is unchanged. After 4 the family does not exist, and PurgeFamilies continues at the next open.
//         [CC-49]
Status DBImpl::DropColumnFamily(ColumnFamilyHandle* handle) try {
  if (fork_mark_.is_in_child()) return InChild();
  Status status;
  Family* const family = FamilyOf(handle, &status);
  if (family == nullptr) return status;
  if (family->id == 0) return Status::InvalidArgument("Can't drop default column family");
  if (write_failed_.load(std::memory_order_acquire)) return BackgroundError();
  std::lock_guard drop_lock(drop_mutex_);
  if (family->dropped.exchange(true, std::memory_order_seq_cst)) return Status::InvalidArgument("Column family already dropped!");
  // Without a commit the family stays, also if an exception ends the call.
  struct Undo {
    Family* const family;
    ~Undo() {
      if (!family->is_gone.load(std::memory_order_acquire)) family->dropped.store(false, std::memory_order_seq_cst);
    }
  };
  const Undo undo{family};
  WaitWriters(next_sequence_.load(std::memory_order_seq_cst));
  uint64_t last_id = 0;
  status = FlushWritten(&last_id);
  if (status.ok()) {
    std::lock_guard compaction_lock(compaction_mutex_);
    if (write_failed_.load(std::memory_order_acquire)) status = BackgroundError();
    if (status.ok() && resume_merge_) {
      status = CompactTables();
      Settle(Work::kMerge, status);
    }
    if (status.ok()) {
      status = CommitDrop(family);
      Settle(Work::kDropFamily, status);
    }
  }
  if (!status.ok()) return status;
  {
    std::lock_guard lock(families_mutex_);
    changed_foreign_.erase(family->id);
    NoteOptions();
  }
  Log("column family '" + family->name + "' dropped");
  NotifyWork();
  return Status::OK();
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// REQUIRES: compaction_mutex_, and no merge to resume.
Status DBImpl::CommitDrop(Family* family) {
  std::lock_guard lock(manifest_mutex_);
  ManifestState state = manifest_state_;
  state.FindFamily(family->id)->dropped = true;
  std::erase_if(state.tables, [family](const ManifestState::Table& table) { return table.family == family->id; });
  std::lock_guard view_lock(view_mutex_);
  auto view = std::make_shared<ReadView>(*current_view_);
  Status status = manifest_.Commit(state);
  if (!status.ok()) return status;
  manifest_state_ = std::move(state);
  family->is_gone.store(true, std::memory_order_release);
  purge_waits_.store(true, std::memory_order_release);
  counters_.l1_entries.fetch_sub(family->l1_entries.load(std::memory_order_relaxed), std::memory_order_relaxed);
  InstallView(view);  // the view no longer counts the family's tables
  return Status::OK();
}

// STEPS   1 install a view without the family, and wait until readers of older views have left  2 release the segments of its
//         last level  3 mark all its entries dead in all segments of the log  4 commit a MANIFEST that forgets the family. Its id
//         is free then.
// ORDER   3 before 4: otherwise live entries would belong to the next family with this id, or to no family for ever. [CC-49] Also
//         before 4: segments of 2 that wait for readers (SegmentAllocator::FreeDeferred) are freed, because entries of sorted
//         runs have no dead marks.
// CRASH   Before 4 the next open continues with 3; entries that are marked stay marked. Segments of the last level have no owner
//         then, and the open releases them.
// REQUIRES: compaction_mutex_
bool DBImpl::PurgeFamilies() try {
  if (write_failed_.load(std::memory_order_acquire)) return false;
  if (purged_families_.empty()) {
    std::vector<bool> ready(kMaxFamilies);
    bool any = false;
    std::vector<uint32_t> dropped;
    {
      std::lock_guard lock(manifest_mutex_);
      for (const ManifestState::Family& family : manifest_state_.families) {
        if (family.dropped) dropped.push_back(family.id);
      }
      if (dropped.empty()) {
        purge_waits_.store(false, std::memory_order_relaxed);
        return false;
      }
    }
    for (const uint32_t id : dropped) {
      Family* const family = FindFamily(id);
      ready[id] = family == nullptr || HasLeft(family);
      any |= ready[id];
    }
    if (!any || resume_merge_.load(std::memory_order_acquire)) return false;
    // All segments, or none if there is no memory: entries of a segment that is left out would belong to the next family. [CC-49]
    std::vector<Segment*> segments;
    segments_->ForEachLog([&segments](Segment* segment) { segments.push_back(segment); });
    unpurged_ = std::move(segments);
    purged_families_ = std::move(ready);
  }
  const bool forgets = unpurged_.empty() || BRAIDDB_MUTANT("family-forgotten-early");
  const Status status = forgets ? ForgetPurged() : PurgeOneSegment();
  Settle(Work::kPurgeFamily, status);
  return status.ok();
} catch (const std::bad_alloc&) {
  return false;  // the next call tries again
}

bool DBImpl::HasLeft(Family* family) {
  // The records of its tombstones are deleted first, see SweepRanges.
  if (family->ranges.load(std::memory_order_acquire) != nullptr) return false;
  // acquire: pairs with the release in the destructor of the last handle.
  if (family->leaving.load(std::memory_order_acquire) == 0 && family->handles.load(std::memory_order_acquire) == 0) {
    {
      std::lock_guard lock(view_mutex_);
      auto view = std::make_shared<ReadView>(*current_view_);
      view->others[family->id] = nullptr;
      InstallView(view);
    }
    family->leaving.store(1, std::memory_order_relaxed);
    epochs_.RetirePinned([family] { family->leaving.store(2, std::memory_order_release); });
  }
  epochs_.Reclaim();
  if (family->leaving.load(std::memory_order_acquire) != 2) return false;
  std::shared_ptr<LastLevel> level;
  {
    std::lock_guard lock(view_mutex_);
    level.swap(family->last_level);
    by_id_[family->id].store(nullptr, std::memory_order_release);
  }
  // Entries in the log leave the lookup cache with their segments, see PurgeOneSegment. Copies are not in the log.
  if (lookup_cache_ != nullptr && family->kind->copies_entries) {
    const std::unique_ptr<EntryCursor> cursor = level->View()->NewCursor();
    for (cursor->SeekToFirst(); cursor->entry() != nullptr; cursor->Next())
      lookup_cache_->Forget(KeyHash(*cursor->entry()), regions_->Find(cursor->entry()));
  }
  const Status status = level->Discard();
  Settle(Work::kPurgeFamily, status);
  return status.ok();
}

Status DBImpl::PurgeOneSegment() {
  Segment* const segment = unpurged_.back();
  unpurged_.pop_back();
  std::optional<PinnedView> pinned;  // a log that is flushed by copies may be released concurrently
  if (IsFlushedByCopies(*segment)) {
    pinned.emplace(this);
    std::lock_guard lock(manifest_mutex_);
    const bool is_sealed = segment->state() == SegmentState::kSealed;
    if (is_sealed && segment->sealed_last_sequence() < manifest_state_.log_boundary) return Status::OK();
  }
  const SegmentState state = segment->state();
  if (state != SegmentState::kSealed && state != SegmentState::kOpen) return Status::OK();
  const uint64_t bytes =
      state == SegmentState::kSealed ? segment->sealed_bytes() : segment->used_bytes.load(std::memory_order_acquire);
  Persistence* const persistence = regions_->persistence();
  LogReader reader(*segment, bytes);
  bool flushed = false;
  while (const LogEntry* found = reader.NextTrusted()) {
    if (!purged_families_[found->family()]) continue;
    auto* const entry = const_cast<LogEntry*>(found);
    if (!entry->is_obsolete()) {
      StoreRelease(&entry->next[0], LoadRelaxed(&entry->next[0]) | LogEntry::kDeadBit);
      CountObsolete(segment, segment->ptr(reader.entry_offset()), *entry);
    }
    if (lookup_cache_ != nullptr) lookup_cache_->Forget(KeyHash(*entry), segment->ptr(reader.entry_offset()));
    // The mark may have been set before a crash, and may not be durable. [CC-46]
    // No canary test leaves out the fence below: the fence of the MANIFEST, made by this thread before it stores the selector,
    // would be enough. The fence below bounds the number of lines that wait, and reports a sync that fails.
    if (!BRAIDDB_MUTANT("purge-not-flushed")) persistence->Flush(&entry->next[0], sizeof(uint64_t));
    flushed = true;
  }
  return !flushed || persistence->Drain() ? Status::OK() : persistence->error();
}

Status DBImpl::ForgetPurged() {
  BRAIDDB_SYNC_POINT("DBImpl::ForgetPurged");
  // ORDER: sorted runs that wait for readers are freed before the id can be given to another family; see txn/primary_reader.h.
  if (Status status = segments_->FreeDeferred(true); !status.ok()) return status;
  {
    std::lock_guard lock(manifest_mutex_);
    ManifestState state = manifest_state_;
    std::erase_if(state.families, [this](const ManifestState::Family& family) { return purged_families_[family.id]; });
    if (Status status = manifest_.Commit(state); !status.ok()) return status;
    manifest_state_ = std::move(state);
  }
  families_forgotten_.fetch_add(1, std::memory_order_release);
  BRAIDDB_SYNC_POINT("DBImpl::ForgetPurged:Done");
  purged_families_.clear();
  unpurged_.clear();
  ReclaimSegments();
  return Status::OK();
}

}  // namespace braiddb
