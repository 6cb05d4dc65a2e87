// The user's compaction filter: merges and sweeps call it, and this file carries out its decisions.
#include "braiddb/compaction_filter.h"

#include <atomic>
#include <exception>
#include <utility>

#include "db/db_impl.h"
#include "index/key_hash.h"
#include "util/format.h"

namespace braiddb {

// GOAL    A key that the filter removes is gone. A value that the filter changes is the new one. No older version of the key
//         becomes visible, and no concurrent write is lost.
// REMOVE  In place, if no older version of the key stays and the filter ignores snapshots: the merge drops the entry, as it drops
//         a tombstone that hides no version. Otherwise by a deletion, which is written as CHANGE says. [CC-48]
// CHANGE  By a write with a new sequence number. The write is made only if the version that the filter was shown is the key's
//         newest version as of that number (DBImpl::WriteIfNewest). Merges copy no entries for it, and snapshots keep the version
//         that they see. The write is as durable as any other.
// CRASH   Before the write: the filter's decision has no effect, and a later merge calls the filter again. After it: the log has
//         one more write.
// WHAT A READER SEES  A removal in place is one store, the dead mark. Readers of a level check the mark. So do readers that hit
//         the lookup cache. The cache is told after the mark is set (LookupCache::Forget) and before the entry's segment is
//         released.
class CompactionFilterJob final : public EntryFilterSource {
 public:
  // `asks`: whether the user's filter is called. If false, the job only forgets dropped entries in the lookup cache.
  CompactionFilterJob(DBImpl* db, const Family& family, const CompactionFilter::Context& context, bool is_sweep, bool asks)
      : db_(*db), family_(family), ranges_(db->RangesOf(family)), context_(context), is_sweep_(is_sweep), asks_(asks) {}

  ~CompactionFilterJob() override {
    if (removed_ + deleted_ + changed_ + overtaken_ + failed_ + thrown_ == 0) return;
    try {
      db_.Log(
          Format("compaction filter: %llu keys removed, %llu deleted, %llu values changed, %llu overtaken by writes; "
                 "%llu kept because the filter threw, %llu because the write failed%s",
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

  // The filter of one thread of the merge.
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
      } catch (...) {  // a user's filter may throw any type
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
    } catch (...) {  // a user's factory may throw any type
      Count(&thrown_);
      return nullptr;
    }
  }

  // Writes a newer version of the entry's key, if the entry is still the newest version. Counts the result in *count, overtaken_
  // or failed_. Always returns false: the merge keeps the entry, which is older than the new version.
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

// If a sweep of the whole level follows, the sweep calls the filter, so that the filter is called once for each key.
bool DBImpl::FiltersMerges(const Family& family) const {
  const bool sweep_follows = manual_compaction_ == ManualCompaction::kBeforeSweep && manual_family_ == &family;
  return family.has_filter && !sweep_follows;
}

// A resumed merge calls the filter only if the MANIFEST announced the merge with a filter: tools that check the files must know
// that the merge may drop puts. [CC-48]
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
