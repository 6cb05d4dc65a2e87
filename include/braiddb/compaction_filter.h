// CompactionFilter: code of the user's own that decides, while data is compacted, which keys go and which values change.
#pragma once

#include <memory>
#include <string>

#include "braiddb/slice.h"

#pragma GCC visibility push(default)
namespace braiddb {

// Asked about the newest version of a key, if that is a put, when a merge brings it from L0 to the last level, and when
// DB::CompactRange sweeps the last level, then about every key in the range; once, if that is everything. What was not compacted
// yet was not asked about, and keys come to compactions again: a filter must not count on being called once. Deletions are not
// shown to it.
//
// REMOVE        As if the key were deleted: no older version comes back, whatever crashes. Until a merge comes to it the key is
//               there.
// CHANGE VALUE  The new value is written as by a Put, if no newer version of the key was written meanwhile. It counts as a write
//               for transactions and in statistics. Merges do not ask about it again; only a sweep does.
// CRASH         What was decided and not made durable is decided anew.
// SNAPSHOTS     see IgnoreSnapshots.
//
// A filter that throws keeps the key; how often is in the info log. A slow one makes merges slow, and when L0 becomes long
// for it, writers; readers do not wait. It must not call the database, but to read.
// Thread safety: with Options::compaction_filter any number of threads may call Filter at once. An object of a factory is used by
// one thread at a time.
class CompactionFilter {
 public:
  enum class Decision { kKeep, kRemove, kChangeValue };

  // What kind of compaction a factory makes a filter for.
  struct Context {
    bool is_full_compaction;    // all of the last level is swept
    bool is_manual_compaction;  // by CompactRange
  };

  virtual ~CompactionFilter() = default;
  // `level`: 0 if a merge brings the key from L0, 1 if it is in the last level. `new_value`: empty; taken with kChangeValue, up
  // to kMaxValueSize.
  virtual Decision Filter(int level, Slice key, Slice value, std::string* new_value) const = 0;
  // For the info log.
  virtual const char* Name() const = 0;

  // true, as in RocksDB: a key goes at once, also for snapshots and iterators that see the version; the space comes back with the
  // merge. Versions of before that only a snapshot sees stay for it, and then the removal is written as a Delete.
  // false: what a snapshot or an iterator sees never changes. A removal is written as a Delete, if no newer version of the key
  // was written meanwhile, and the next merge drops both. (RocksDB refuses false.)
  virtual bool IgnoreSnapshots() const { return true; }
};

// Makes a filter for each thread of each merge and sweep.
// Thread safety: any number of threads at once.
class CompactionFilterFactory {
 public:
  virtual ~CompactionFilterFactory() = default;
  // Null: nothing is filtered.
  virtual std::unique_ptr<CompactionFilter> CreateCompactionFilter(const CompactionFilter::Context& context) = 0;
  virtual const char* Name() const = 0;
};

}  // namespace braiddb
#pragma GCC visibility pop
