// A secondary: a database of its own that is made equal to what PrimaryReader has read, in one batch each time. A catch-up reads
// the new writes, or all if it cannot follow them.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "db/copied_database.h"
#include "db/db_impl.h"
#include "db/reader_hold.h"
#include "db/timestamped_entry.h"
#include "txn/primary_reader.h"
#include "txn/stacked_db.h"
#include "util/file.h"

namespace braiddb {
namespace {

// In a directory that nothing but a secondary has: it may be made anew.
constexpr const char* kMarker = "/SECONDARY";

Status NoWrites() { return Status::NotSupported("Not supported operation in secondary mode."); }

class SecondaryDB final : public StackedDB<DB> {
 public:
  SecondaryDB(DB* base, const std::vector<std::unique_ptr<ColumnFamilyHandle>>& handles, std::shared_ptr<PrimaryReader> primary)
      : StackedDB(base, handles), primary_(std::move(primary)) {}

  Status TryCatchUpWithPrimary() override try {
    std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
    Status status = base()->GetColumnFamilies(&handles);
    return status.ok() ? CatchUp(base(), handles) : status;
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
  Status Refresh() override { return TryCatchUpWithPrimary(); }
  uint64_t GetLatestSequenceNumber() const override { return last_sequence_.load(std::memory_order_acquire); }
  DB* GetRootDB() override { return this; }
  DB* database() const { return base(); }

  Status Put(const WriteOptions&, Slice, Slice) override { return NoWrites(); }
  Status Put(const WriteOptions&, ColumnFamilyHandle*, Slice, Slice) override { return NoWrites(); }
  Status Delete(const WriteOptions&, Slice) override { return NoWrites(); }
  Status Delete(const WriteOptions&, ColumnFamilyHandle*, Slice) override { return NoWrites(); }
  Status Merge(const WriteOptions&, Slice, Slice) override { return NoWrites(); }
  Status Merge(const WriteOptions&, ColumnFamilyHandle*, Slice, Slice) override { return NoWrites(); }
  Status DeleteRange(const WriteOptions&, ColumnFamilyHandle*, Slice, Slice) override { return NoWrites(); }
  Status Write(const WriteOptions&, const WriteBatch&) override { return NoWrites(); }
  Status Flush() override { return NoWrites(); }
  Status CompactRange(const CompactRangeOptions&, const Slice*, const Slice*) override { return NoWrites(); }
  Status CompactRange(const CompactRangeOptions&, ColumnFamilyHandle*, const Slice*, const Slice*) override { return NoWrites(); }
  Status CreateColumnFamily(const ColumnFamilyOptions&, const std::string&, std::unique_ptr<ColumnFamilyHandle>*) override {
    return NoWrites();
  }
  Status DropColumnFamily(ColumnFamilyHandle*) override { return NoWrites(); }
  // Numbers are of the database that it is in, and say nothing of the primary.
  Status GetUpdatesSince(uint64_t, std::unique_ptr<TransactionLogIterator>*) override { return NoWrites(); }
  Status WaitForUpdate(uint64_t sequence, std::chrono::microseconds timeout, uint64_t* latest) override {
    return DB::WaitForUpdate(sequence, timeout, latest);
  }
  Status GetLatestSequenceForKey(Slice, uint64_t*) override { return NoWrites(); }
  Status GetLatestSequenceForKey(ColumnFamilyHandle*, Slice, uint64_t*) override { return NoWrites(); }

 private:
  Status ReadPrimary();
  Status CatchUp(DB* own, const std::vector<std::unique_ptr<ColumnFamilyHandle>>& handles);

  std::mutex mutex_;  // one at a time catches up
  const std::shared_ptr<PrimaryReader> primary_;
  std::atomic<uint64_t> last_sequence_{0};
};

// What has to be written so that `db` has the content, and nothing else.
Status AddDifference(DB* db, ColumnFamilyHandle* handle, const PrimaryReader::Family& family, WriteBatch* batch) {
  const std::unique_ptr<Iterator> own = db->NewIterator({}, handle);
  own->SeekToFirst();
  auto wanted = family.content.begin();
  while (own->Valid() || wanted != family.content.end()) {
    int order = 0;
    if (!own->Valid()) {
      order = 1;
    } else if (wanted == family.content.end()) {
      order = -1;
    } else {
      order = family.options.comparator->Compare(own->key(), wanted->first);
    }
    if (order < 0) {
      batch->Delete(handle, own->key());
    } else if (order > 0 || own->key() != wanted->first || own->value() != wanted->second) {
      batch->Put(handle, wanted->first, wanted->second);
    }
    if (order <= 0) own->Next();
    if (order >= 0) ++wanted;
  }
  return own->status();
}

// Deletes the keys in the deleted ranges, each once, however many ranges have it.
Status AddDeletions(DB* db, ColumnFamilyHandle* handle, const PrimaryReader::Family& family, WriteBatch* batch) {
  if (family.deleted_ranges.empty()) return Status::OK();
  const Comparator& order = *family.options.comparator;
  std::vector<RangeTombstones::Tombstone> ranges = family.deleted_ranges;
  std::sort(ranges.begin(), ranges.end(),
            [&order](const auto& a, const auto& b) { return order.Compare(a->begin, b->begin) < 0; });
  const std::unique_ptr<Iterator> own = db->NewIterator({}, handle);
  Slice done;  // end of the ranges before
  for (const RangeTombstones::Tombstone& range : ranges) {
    const bool is_first = range == ranges.front();
    if (!is_first && order.Compare(range->end, done) <= 0) continue;
    const bool overlaps = !is_first && order.Compare(range->begin, done) < 0;
    for (own->Seek(overlaps ? done : Slice(range->begin)); own->Valid() && order.Compare(own->key(), range->end) < 0;
         own->Next()) {
      if (!family.changes.contains(std::string(own->key()))) batch->Delete(handle, own->key());
    }
    if (!own->status().ok()) return own->status();
    done = range->end;
  }
  return Status::OK();
}

// What has to be written so that `db` has the changes.
Status AddChanges(DB* db, ColumnFamilyHandle* handle, const PrimaryReader::Family& family, WriteBatch* batch) {
  if (Status status = AddDeletions(db, handle, family, batch); !status.ok()) return status;
  for (const auto& [key, value] : family.changes) {
    if (value.has_value()) {
      batch->Put(handle, key, *value);
    } else {
      batch->Delete(handle, key);
    }
  }
  return Status::OK();
}

// STEPS  1 some tries without a hold, which cost the primary nothing  2 tries under a hold, which the primary does not overtake;
//        a new hold after some of them, in case that the primary has waited long enough for this one.
Status SecondaryDB::ReadPrimary() {
  constexpr int kTries = 30;
  constexpr int kTriesWithoutHold = 2;
  constexpr int kTriesOfAHold = 4;
  ReaderHold hold;
  Status status;
  for (int i = 0; i < kTries; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(i));
    if (i >= kTriesWithoutHold && (i - kTriesWithoutHold) % kTriesOfAHold == 0) (void)hold.Take(primary_->path());
    status = primary_->Read();
    if (!status.IsAborted()) return status;
  }
  return Status::Busy("the primary frees log space faster than it can be read (" + std::string(status.message()) +
                      "); try again, with a user who may open its file LOCK, and when its regions are not full");
}

Status SecondaryDB::CatchUp(DB* own, const std::vector<std::unique_ptr<ColumnFamilyHandle>>& handles) {
  const std::lock_guard lock(mutex_);
  const auto find_handle = [&handles](const PrimaryReader::Family& family) {
    const auto found =
        std::find_if(handles.begin(), handles.end(), [&family](const auto& handle) { return handle->GetName() == family.name; });
    return found == handles.end() ? nullptr : found->get();
  };
  const auto find_base = [&](size_t family, Slice key, std::optional<std::string>* value) {
    ColumnFamilyHandle* const handle = find_handle(primary_->families()[family]);
    if (handle == nullptr) return Status::OK();
    std::string found;
    const Status status = own->Get({}, handle, key, &found);
    if (status.ok()) *value = std::move(found);
    return status.IsNotFound() ? Status::OK() : status;
  };
  Status status = primary_->ReadUpdates(find_base);
  const bool is_all = status.IsAborted();
  if (is_all) status = ReadPrimary();
  if (!status.ok()) return status;
  WriteBatch batch;
  for (const PrimaryReader::Family& family : primary_->families()) {
    ColumnFamilyHandle* const handle = find_handle(family);
    if (!family.is_listed || handle == nullptr || !status.ok()) continue;  // dropped: what was there stays
    status = is_all ? AddDifference(own, handle, family, &batch) : AddChanges(own, handle, family, &batch);
  }
  if (status.ok() && batch.Count() > 0) status = static_cast<DBImpl*>(own)->WriteToAnyFamily({}, batch);
  if (status.ok()) {
    primary_->Keep();
    last_sequence_.store(primary_->last_update(), std::memory_order_release);
  }
  for (PrimaryReader::Family& family : primary_->families()) {
    family.content.clear();
    family.changes.clear();
  }
  return status;
}

// A directory for a database of its own, with nothing in it but the marker.
Status MakePlace(const Options& options, const std::string& path) {
  std::error_code error;
  if (FileExists(path + kMarker)) {
    if (Status status = DB::Destroy(options, path); !status.ok()) return status;
  } else if (std::filesystem::exists(path, error) && !std::filesystem::is_empty(path, error)) {
    return Status::InvalidArgument(path + " is not empty, and what is there was not left by a secondary; name another directory");
  }
  if (Status status = CreateDir(path); !status.ok()) return status;
  return WriteSmallFile(path + kMarker, "this database is a copy, and will be made anew\n");
}

// Of the database that a secondary is in.
Options OwnOptions(const Options& options) {
  Options own = options;
  own.create_if_missing = true;
  own.error_if_exists = false;
  own.create_missing_column_families = true;
  own.regions = 1;
  own.region_paths.clear();
  own.region_nodes.clear();
  own.compaction_filter = nullptr;
  own.compaction_filter_factory = nullptr;
  own.verify_at_open = false;
  return own;
}

}  // namespace

DBImpl* CopiedDatabase(DB* db) {
  DB* const root = db->GetRootDB();
  const auto* const secondary = dynamic_cast<const SecondaryDB*>(root);
  return dynamic_cast<DBImpl*>(secondary == nullptr ? root : secondary->database());
}

Status DB::OpenAsSecondary(const Options& options, const std::string& path, const std::string& secondary_path,
                           std::unique_ptr<DB>* db) {
  std::vector<std::unique_ptr<ColumnFamilyHandle>> none;
  return OpenAsSecondary(options, path, secondary_path, {}, &none, db);
}

Status DB::OpenAsSecondary(const Options& given, const std::string& path, const std::string& secondary_path,
                           const std::vector<ColumnFamilyDescriptor>& families,
                           std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles, std::unique_ptr<DB>* db) try {
  db->reset();
  handles->clear();
  if (Status status = RefuseTimestamps(given, families, "a secondary"); !status.ok()) return status;
  Options options = given;
  std::vector<ColumnFamilyDescriptor> own_families = families;
  for (ColumnFamilyDescriptor& family : own_families) {
    family.options.compaction_filter = nullptr;
    family.options.compaction_filter_factory = nullptr;
    if (family.name != kDefaultColumnFamilyName) continue;
    options.comparator = family.options.comparator;
    options.merge_operator = family.options.merge_operator;
  }
  if (options.comparator == nullptr) return Status::InvalidArgument("Options::comparator is null; use BytewiseComparator()");
  auto primary = std::make_shared<PrimaryReader>(options, path, families);
  std::vector<std::string> names;
  if (Status status = ListColumnFamilies(options, path, &names); !status.ok()) return status;
  for (const ColumnFamilyDescriptor& family : families) {
    if (std::find(names.begin(), names.end(), family.name) == names.end())
      return Status::InvalidArgument("Column family not found: " + family.name);
  }
  const Options own = OwnOptions(options);
  Status status = MakePlace(own, secondary_path);
  std::unique_ptr<DB> base;
  if (status.ok()) status = DBImpl::Open(own, secondary_path, own_families, false, handles, &base);
  std::unique_ptr<DB> result;
  if (status.ok()) status = StackOn<SecondaryDB>(std::move(base), handles, &result, primary);
  if (status.ok()) status = result->TryCatchUpWithPrimary();
  if (!status.ok()) {
    handles->clear();
    return status;
  }
  *db = std::move(result);
  return status;
} catch (const std::bad_alloc&) {
  handles->clear();
  return NoMemory();
}

}  // namespace braiddb
