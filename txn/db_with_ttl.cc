// DBWithTTL: a database that stores the write time with each value. Reads return values without the time.
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "braiddb/ttl.h"
#include "db/no_memory.h"
#include "db/timestamped_entry.h"
#include "txn/stacked_db.h"
#include "txn/ttl_filter.h"
#include "txn/ttl_value.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

class TtlIterator final : public Iterator {
 public:
  explicit TtlIterator(std::unique_ptr<Iterator> base) : base_(std::move(base)) {}

  bool Valid() const override { return status_.ok() && base_->Valid(); }
  void SeekToFirst() override {
    base_->SeekToFirst();
    Look();
  }
  void SeekToLast() override {
    base_->SeekToLast();
    Look();
  }
  void Seek(Slice target) override {
    base_->Seek(target);
    Look();
  }
  void SeekForPrev(Slice target) override {
    base_->SeekForPrev(target);
    Look();
  }
  void Next() override {
    base_->Next();
    Look();
  }
  void Prev() override {
    base_->Prev();
    Look();
  }
  Slice key() const override { return base_->key(); }
  Slice value() const override { return WithoutTime(base_->value()); }
  Status status() const override { return status_.ok() ? base_->status() : status_; }

 private:
  void Look() { status_ = base_->Valid() && !HasTime(base_->value()) ? NoTime() : Status::OK(); }

  const std::unique_ptr<Iterator> base_;
  Status status_;  // status of the current entry's value
};

// Removes the time from a value that was read. Returns NoTime if the value has none.
Status Strip(Status status, std::string* value) {
  if (!status.ok()) return status;
  if (!HasTime(*value)) return NoTime();
  value->resize(value->size() - kTimeBytes);
  return status;
}

// The clock of each family's filter, by family id. The default family always has a clock.
using Clocks = std::map<uint32_t, std::shared_ptr<TtlClock>>;

class DBWithTTLImpl final : public StackedDB<DBWithTTL> {
 public:
  // `options`: used for families that are created later.
  DBWithTTLImpl(DB* base, const std::vector<std::unique_ptr<ColumnFamilyHandle>>& handles, TtlOptions options, Clocks clocks)
      : StackedDB(base, handles), options_(std::move(options)), clock_(clocks.at(0)), clocks_(std::move(clocks)) {}

  void SetTtl(int32_t ttl_seconds) override {
    const std::lock_guard lock(mutex_);
    options_.ttl_seconds = ttl_seconds;
    for (const auto& [id, clock] : clocks_) clock->SetTtl(ttl_seconds);
  }
  // Ignores a null handle and a handle of another database.
  void SetTtl(ColumnFamilyHandle* family, int32_t ttl_seconds) override {
    if (!families()->Check(family).ok()) return;
    const std::lock_guard lock(mutex_);
    const auto clock = clocks_.find(family->GetID());
    if (clock != clocks_.end()) clock->second->SetTtl(ttl_seconds);
  }

  using StackedDB::Delete;
  Status Put(const WriteOptions& options, Slice key, Slice value) override {
    return Put(options, base()->DefaultColumnFamily(), key, value);
  }
  Status Put(const WriteOptions& options, ColumnFamilyHandle* family, Slice key, Slice value) override try {
    std::string stored;
    AddTime(value, clock_->Now(), &stored);
    return base()->Put(options, family, key, stored);
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }

  // Merge is not supported: an operand would need its own time, and the merge operator would have to know times.
  Status Merge(const WriteOptions&, Slice, Slice) override { return NoMerge(); }
  Status Merge(const WriteOptions&, ColumnFamilyHandle*, Slice, Slice) override { return NoMerge(); }

  Status Write(const WriteOptions& options, const WriteBatch& batch) override try {
    struct Stamp : WriteBatch::Handler {
      void Put(Slice, Slice) override {}  // the batch calls only the family variants below
      void Delete(Slice) override {}
      void Merge(Slice, Slice) override {}
      Status PutCF(uint32_t family, Slice key, Slice value) override {
        AddTime(value, now, &stored);
        return stamped.PutCF(family, key, stored), Status::OK();
      }
      Status DeleteCF(uint32_t family, Slice key) override { return stamped.DeleteCF(family, key), Status::OK(); }
      Status MergeCF(uint32_t, Slice, Slice) override { return NoMerge(); }
      Status DeleteRangeCF(uint32_t family, Slice begin, Slice end) override {
        return stamped.DeleteRangeCF(family, begin, end), Status::OK();
      }
      int64_t now;
      std::string stored;
      WriteBatch stamped;
    } stamp;
    stamp.now = clock_->Now();
    Status status = batch.Iterate(&stamp);
    return status.ok() ? base()->Write(options, stamp.stamped) : status;
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }

  Status Get(const ReadOptions& options, Slice key, std::string* value) override {
    return Strip(base()->Get(options, key, value), value);
  }
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value) override {
    return Strip(base()->Get(options, family, key, value), value);
  }
  Status Get(const ReadOptions& options, Slice key, PinnableSlice* value) override {
    return Get(options, base()->DefaultColumnFamily(), key, value);
  }
  Status Get(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, PinnableSlice* value) override {
    Status status = base()->Get(options, family, key, value);
    if (!status.ok()) return status;
    if (!HasTime(value->slice())) {
      value->Reset();
      return NoTime();
    }
    value->RemoveSuffix(kTimeBytes);
    return status;
  }

  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<Slice>& keys,
                               std::vector<std::string>* values) override {
    return StripAll(base()->MultiGet(options, keys, values), values);
  }
  std::vector<Status> MultiGet(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                               const std::vector<Slice>& keys, std::vector<std::string>* values) override {
    return StripAll(base()->MultiGet(options, families, keys, values), values);
  }

  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options) override {
    return std::make_unique<TtlIterator>(base()->NewIterator(options));
  }
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) override {
    return std::make_unique<TtlIterator>(base()->NewIterator(options, family));
  }

  Status CreateColumnFamily(const ColumnFamilyOptions& options, const std::string& name,
                            std::unique_ptr<ColumnFamilyHandle>* handle) override {
    return Create(options, name, std::nullopt, handle);
  }
  Status CreateColumnFamilyWithTtl(const ColumnFamilyOptions& options, const std::string& name, int32_t ttl_seconds,
                                   std::unique_ptr<ColumnFamilyHandle>* handle) override {
    return Create(options, name, ttl_seconds, handle);
  }

  static ColumnFamilyOptions WithTtlFilter(ColumnFamilyOptions options, const std::shared_ptr<TtlClock>& clock) {
    options.compaction_filter_factory =
        MakeTtlFilterFactory(clock, options.compaction_filter, std::move(options.compaction_filter_factory));
    options.compaction_filter = nullptr;
    return options;
  }

 private:
  // `ttl_seconds`: the family's own time. Without it, the family takes the database's time after its creation. So it also gets a
  // time that another thread sets meanwhile.
  Status Create(const ColumnFamilyOptions& options, const std::string& name, std::optional<int32_t> ttl_seconds,
                std::unique_ptr<ColumnFamilyHandle>* handle) try {
    const auto clock = std::make_shared<TtlClock>(options_, ttl_seconds.value_or(0));
    Status status = StackedDB::CreateColumnFamily(WithTtlFilter(options, clock), name, handle);
    if (!status.ok()) return status;
    BRAIDDB_SYNC_POINT("DBWithTTL::Create:Created");
    const std::lock_guard lock(mutex_);
    if (!ttl_seconds.has_value()) clock->SetTtl(options_.ttl_seconds);
    clocks_.insert_or_assign((*handle)->GetID(), clock);
    return status;
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }

  static Status NoMerge() { return Status::NotSupported("merges in a database whose keys expire"); }
  static std::vector<Status> StripAll(std::vector<Status> statuses, std::vector<std::string>* values) {
    for (size_t i = 0; i < statuses.size(); ++i) statuses[i] = Strip(std::move(statuses[i]), &(*values)[i]);
    return statuses;
  }

  TtlOptions options_;                     // ttl_seconds is guarded by mutex_
  const std::shared_ptr<TtlClock> clock_;  // clock of the default family; gives the current time
  std::mutex mutex_;
  Clocks clocks_;
};

}  // namespace

Status DBWithTTL::Open(const Options& options, const TtlOptions& ttl_options, const std::string& path,
                       std::unique_ptr<DBWithTTL>* db) {
  std::vector<std::unique_ptr<ColumnFamilyHandle>> none;
  return Open(options, ttl_options, path, {}, &none, db);
}

Status DBWithTTL::Open(const Options& options, const TtlOptions& ttl_options, const std::string& path,
                       const std::vector<ColumnFamilyDescriptor>& families,
                       std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles, std::unique_ptr<DBWithTTL>* db) try {
  db->reset();
  if (Status status = RefuseTimestamps(options, families, "a DBWithTTL"); !status.ok()) return status;
  const std::vector<int32_t>& ttls = ttl_options.family_ttl_seconds;
  if (!ttls.empty() && ttls.size() != families.size())
    return Status::InvalidArgument("as many times to live as column families have to be given");
  auto clock = std::make_shared<TtlClock>(ttl_options, ttl_options.ttl_seconds);
  std::vector<ColumnFamilyDescriptor> with_filters = families;
  std::vector<std::shared_ptr<TtlClock>> own;
  for (size_t i = 0; i < families.size(); ++i) {
    own.push_back(std::make_shared<TtlClock>(ttl_options, ttls.empty() ? ttl_options.ttl_seconds : ttls[i]));
    if (families[i].name == kDefaultColumnFamilyName) clock = own.back();
    with_filters[i].options = DBWithTTLImpl::WithTtlFilter(families[i].options, own.back());
  }
  const ColumnFamilyOptions of_default = DBWithTTLImpl::WithTtlFilter(ColumnFamilyOptions(options), clock);
  Options with_filter = options;
  with_filter.compaction_filter = nullptr;
  with_filter.compaction_filter_factory = of_default.compaction_filter_factory;
  std::unique_ptr<DB> base;
  Status status = DB::Open(with_filter, path, with_filters, handles, &base);
  if (!status.ok()) return status;
  Clocks clocks{{0, clock}};
  for (size_t i = 0; i < families.size(); ++i) clocks.insert_or_assign((*handles)[i]->GetID(), own[i]);
  auto opened = std::make_unique<DBWithTTLImpl>(base.get(), *handles, ttl_options, std::move(clocks));
  opened->Own(std::move(base));
  *db = std::move(opened);
  return status;
} catch (const std::bad_alloc&) {
  handles->clear();
  return NoMemory();
}

}  // namespace braiddb
