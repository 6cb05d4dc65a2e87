// The user's compaction filter: asked by merges and sweeps, and what comes of its answers.
#include "braiddb/compaction_filter.h"

#include <atomic>
#include <exception>
#include <utility>

#include "db/db_impl.h"
#include "index/key_hash.h"
#include "util/format.h"

namespace braiddb {

// GOAL    What the filter removes is gone, and what it changes has the new value; nothing older comes back, and no write of now
//         is lost.
// REMOVE  In place, where nothing older stays and the filter ignores snapshots: the merge drops the entry as it drops a tombstone
//         that hides nothing. Otherwise by a deletion, as below. [CC-48]
// CHANGE  By a write with a new number, made only if the version that the filter was shown is the key's newest as of that
//         number (DBImpl::WriteIfNewest): merges do not copy, and snapshots keep what they see. It is as durable as any write.
// CRASH   Before the write: as if the filter had not been asked. After it: it is one write more.
// WHAT A READER SEES  Of a removal in place: the mark, one store. Levels are read with a look at it, and so are hits of the
//         lookup cache, which is told after the mark (LookupCache::Forget) and before a segment is released.
class CompactionFilterJob final : public EntryFilterSource {
 public:
  // `asks`: the user's filter; without it is told of what goes.
  CompactionFilterJob(DBImpl* db, const Family& family, const CompactionFilter::Context& context, bool is_sweep, bool asks)
      : db_(*db), family_(family), ranges_(db->RangesOf(family)), context_(context), is_sweep_(is_sweep), asks_(asks) {}

  ~CompactionFilterJob() override {
    if (removed_ + deleted_ + changed_ + overtaken_ + failed_ + thrown_ == 0) return;
    try {
      db_.Log(
          Format("compaction filter: %llu keys removed, %llu deleted, %llu values changed, %llu overtaken by writes; "
                 "%llu kept since the filter threw, %llu since the write failed%s",
                 Number(removed_), Number(deleted_), Number(changed_), Number(overtaken_), Number(thrown_), Number(failed_),
                 first_failure_.empty() ? "" : (": " + first_failure_).c_str()));
    } catch (const std::bad_alloc&) {
    }
  }

  std::unique_ptr<EntryFilter> NewFilter() override {
    const ColumnFamilyOptions& options = family_.options;
    if (!asks_) return std::make_unique<Filter>(this, nullptr, nullptr);
    if (options.compaction_filter != nullptr) return std::make_unique<Filter>(this, options.compaction_filter, nullptr);
    std::unique_ptr<CompactionFilter> own = Make(options.compaction_filter_factory.get());
    if (own == nullptr && ranges_ == nullptr) return nullptr;
    const CompactionFilter* const filter = own.get();
    return std::make_unique<Filter>(this, filter, std::move(own));
  }

 private:
  static unsigned long long Number(const std::atomic<uint64_t>& count) { return count.load(std::memory_order_relaxed); }
  static void Count(std::atomic<uint64_t>* count) { count->fetch_add(1, std::memory_order_relaxed); }

  // Of one thread.
  class Filter final : public EntryFilter {
   public:
    Filter(CompactionFilterJob* job, const CompactionFilter* filter, std::unique_ptr<CompactionFilter> own)
        : job_(*job), filter_(filter), own_(std::move(own)) {}

    bool Drops(const LogEntry& entry, bool from_table, bool alone) override {
      if (filter_ == nullptr || (entry.is_by_filter() && !job_.is_sweep_)) return false;
      if (job_.ranges_ != nullptr && job_.ranges_->Hides(entry.key(), entry.sequence(), kMaxSequence)) return false;
      bool ignores_snapshots = false;
      switch (Ask(entry, from_table ? 0 : 1, &ignores_snapshots)) {
        case CompactionFilter::Decision::kKeep:
          return false;
        case CompactionFilter::Decision::kRemove:
          if (!alone || !ignores_snapshots) return job_.Write(entry, EntryType::kDelete, Slice(), &job_.deleted_);
          Count(&job_.removed_);
          return true;
        case CompactionFilter::Decision::kChangeValue:
          return Slice(new_value_) != entry.value() && job_.Write(entry, kPutByFilter, new_value_, &job_.changed_);
      }
      return false;
    }

    void Forget(const LogEntry& entry) override {
      DBImpl& db = job_.db_;
      if (db.lookup_cache_ != nullptr) db.lookup_cache_->Forget(KeyHash(entry), db.LastDrawn());
    }

   private:
    CompactionFilter::Decision Ask(const LogEntry& entry, int level, bool* ignores_snapshots) {
      try {
        new_value_.clear();
        *ignores_snapshots = filter_->IgnoreSnapshots();
        return filter_->Filter(level, entry.key(), entry.value(), &new_value_);
      } catch (...) {  // whatever users throw
        Count(&job_.thrown_);
        return CompactionFilter::Decision::kKeep;
      }
    }

    CompactionFilterJob& job_;
    const CompactionFilter* const filter_;  // may be null
    const std::unique_ptr<CompactionFilter> own_;
    std::string new_value_;
  };

  std::unique_ptr<CompactionFilter> Make(CompactionFilterFactory* factory) {
    try {
      return factory->CreateCompactionFilter(context_);
    } catch (...) {  // whatever users throw
      Count(&thrown_);
      return nullptr;
    }
  }

  // Always false: the version stays, below the new one.
  bool Write(const LogEntry& entry, EntryType type, Slice value, std::atomic<uint64_t>* count) {
    Status status = db_.WriteIfNewest(family_, entry, type, value);
    if (status.IsAborted()) {
      Count(&overtaken_);
    } else {
      Count(status.ok() ? count : &failed_);
    }
    if (status.ok() || status.IsAborted()) return false;
    const std::lock_guard lock(mutex_);
    if (first_failure_.empty()) first_failure_ = status.ToString();
    return false;
  }

  DBImpl& db_;
  const Family& family_;
  const std::shared_ptr<const RangeTombstones> ranges_;  // may be null
  const CompactionFilter::Context context_;
  const bool is_sweep_;
  const bool asks_;
  std::atomic<uint64_t> removed_{0};
  std::atomic<uint64_t> deleted_{0};
  std::atomic<uint64_t> changed_{0};
  std::atomic<uint64_t> overtaken_{0};
  std::atomic<uint64_t> failed_{0};
  std::atomic<uint64_t> thrown_{0};
  std::mutex mutex_;
  std::string first_failure_;
};

// Where a sweep of everything follows, it asks, and each key is asked about once.
bool DBImpl::FiltersMerges(const Family& family) const {
  const bool sweep_follows = manual_compaction_ == ManualCompaction::kBeforeSweep && manual_family_ == &family;
  return family.has_filter && !sweep_follows;
}

// A merge that is resumed drops puts only if that was announced: who checks the files must know. [CC-48]
std::unique_ptr<EntryFilterSource> DBImpl::FilterMerge(const Family& family) {
  if (!FiltersMerges(family)) return nullptr;
  {
    const std::lock_guard lock(manifest_mutex_);
    if (!manifest_state_.merge_filters) return nullptr;
  }
  const CompactionFilter::Context context{false, manual_compaction_ != ManualCompaction::kNone};
  return std::make_unique<CompactionFilterJob>(this, family, context, false, true);
}

std::unique_ptr<EntryFilterSource> DBImpl::FilterSweep(const Family& family, bool everything, bool asks, bool has_ranges) {
  asks = asks && family.has_filter;
  if (!asks && !has_ranges) return nullptr;
  return std::make_unique<CompactionFilterJob>(this, family, CompactionFilter::Context{everything, true}, true, asks);
}

}  // namespace braiddb
