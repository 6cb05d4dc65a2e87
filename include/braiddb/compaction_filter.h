// CompactionFilter: user code that decides, during compaction, which keys are removed and which values change.
#pragma once

#include <memory>
#include <string>

#include "braiddb/slice.h"

#pragma GCC visibility push(default)
namespace braiddb {

// CALLED        For the newest version of a key, if that is a put: when a merge moves it from L0 to the last level, and when
//               DB::CompactRange sweeps its key range. A full CompactRange asks once about each key. A key that was not compacted
//               was not asked about, and a key may be compacted several times, so do not count calls. Deletions are not shown.
// REMOVE        Has the effect of a deletion: no older version reappears, also after a crash. The key is readable until a merge
//               reaches it.
// CHANGE VALUE  Has the effect of a Put, if the key was not written in the meantime. It counts as a write for transactions and in
//               statistics. Later merges do not ask about this value; only a sweep does.
// CRASH         Decisions that were not yet durable are made again.
// SNAPSHOTS     See IgnoreSnapshots.
// ERRORS        If Filter throws, the key stays; the info log has the number of such calls.
// SPEED         A slow filter slows merges down, and writers when L0 grows; it does not slow readers.
//
// Filter may read the database, but must not call it otherwise.
// Thread safety: any number of threads may call Filter of Options::compaction_filter at once. An object of a factory is used by
// one thread at a time.
class CompactionFilter {
 public:
  enum class Decision { kKeep, kRemove, kChangeValue };

  // The compaction for which a factory creates a filter.
  struct Context {
    bool is_full_compaction;    // it sweeps the entire last level
    bool is_manual_compaction;  // CompactRange started it
  };

  virtual ~CompactionFilter() = default;
  // `level`: 0 if a merge moves the key from L0, 1 if the key is in the last level. *new_value is empty at the call; with
  // kChangeValue it becomes the value. At most kMaxValueSize bytes.
  virtual Decision Filter(int level, Slice key, Slice value, std::string* new_value) const = 0;
  // For the info log.
  virtual const char* Name() const = 0;

  // true (as in RocksDB)   A removed key disappears at once, also from snapshots and iterators that see this version; iterators
  //                        over sorted runs keep it. The merge releases its space. If a snapshot sees an older version, that
  //                        stays, and the removal is a Delete.
  // false (not in RocksDB) Snapshots and iterators never change. A removal is written as a Delete, if the key was not written in
  //                        the meantime, and the next merge drops both.
  virtual bool IgnoreSnapshots() const { return true; }
};

// Creates a filter for each thread of each merge and sweep.
// Thread safety: any number of threads may call it at once.
class CompactionFilterFactory {
 public:
  virtual ~CompactionFilterFactory() = default;
  // Null: this compaction keeps all keys.
  virtual std::unique_ptr<CompactionFilter> CreateCompactionFilter(const CompactionFilter::Context& context) = 0;
  virtual const char* Name() const = 0;
};

}  // namespace braiddb
#pragma GCC visibility pop
