// A database that stores the time with each value, and shows values without it.
#include <new>
#include <utility>

#include "braiddb/ttl.h"
#include "db/no_memory.h"
#include "txn/stacked_db.h"
#include "txn/ttl_filter.h"
#include "txn/ttl_value.h"

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
  void Look() {
    if (base_->Valid() && !HasTime(base_->value())) status_ = NoTime();
  }

  const std::unique_ptr<Iterator> base_;
  Status status_;
};

class DBWithTTLImpl final : public StackedDB<DBWithTTL> {
 public:
  DBWithTTLImpl(std::unique_ptr<DB> base, std::shared_ptr<TtlClock> clock)
      : StackedDB(std::move(base)), clock_(std::move(clock)) {}

  void SetTtl(int32_t ttl_seconds) override { clock_->SetTtl(ttl_seconds); }

  Status Put(const WriteOptions& options, Slice key, Slice value) override try {
    std::string stored;
    AddTime(value, clock_->Now(), &stored);
    return base()->Put(options, key, stored);
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }

  Status Write(const WriteOptions& options, const WriteBatch& batch) override try {
    struct Stamp : WriteBatch::Handler {
      void Put(Slice key, Slice value) override {
        AddTime(value, now, &stored);
        stamped.Put(key, stored);
      }
      void Delete(Slice key) override { stamped.Delete(key); }
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
    Status status = base()->Get(options, key, value);
    if (!status.ok()) return status;
    if (!HasTime(*value)) return NoTime();
    value->resize(value->size() - kTimeBytes);
    return status;
  }

  Status Get(const ReadOptions& options, Slice key, PinnableSlice* value) override {
    Status status = base()->Get(options, key, value);
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
    std::vector<Status> statuses = base()->MultiGet(options, keys, values);
    for (size_t i = 0; i < statuses.size(); ++i) {
      if (!statuses[i].ok()) continue;
      std::string& value = (*values)[i];
      if (HasTime(value)) {
        value.resize(value.size() - kTimeBytes);
      } else {
        statuses[i] = NoTime();
      }
    }
    return statuses;
  }

  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options) override {
    return std::make_unique<TtlIterator>(base()->NewIterator(options));
  }

 private:
  const std::shared_ptr<TtlClock> clock_;
};

}  // namespace

Status DBWithTTL::Open(const Options& options, const TtlOptions& ttl_options, const std::string& path,
                       std::unique_ptr<DBWithTTL>* db) try {
  db->reset();
  auto clock = std::make_shared<TtlClock>(ttl_options);
  Options with_filter = options;
  with_filter.compaction_filter = nullptr;
  with_filter.compaction_filter_factory =
      MakeTtlFilterFactory(clock, options.compaction_filter, options.compaction_filter_factory);
  std::unique_ptr<DB> base;
  Status status = DB::Open(with_filter, path, &base);
  if (status.ok()) *db = std::make_unique<DBWithTTLImpl>(std::move(base), std::move(clock));
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

}  // namespace braiddb
