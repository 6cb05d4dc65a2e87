// EntryCursor: iterates over one ordered structure of log entries.
#pragma once

#include <cstddef>
#include <cstdint>

#include "index/key_order.h"
#include "index/ordered_item.h"
#include "util/prefetch.h"

namespace braiddb {

struct LogEntry;

// GUARANTEE    Returns every version of every key in entry order (key ascending, newest first). Never misses an entry that was
//              present when the read view of the structure was created and that a registered snapshot sees. May return an entry
//              twice, or an entry that a merge has just moved to the next level.
// CONCURRENCY  One thread at a time, concurrent with any change of the structure.
class EntryCursor {
 public:
  // `knows_prefixes`: the cursor sets prefix_ whenever it sets entry_, without a read of the entry. `fetch_bytes`: number of
  // bytes of an entry that the cursor prefetches.
  explicit EntryCursor(bool knows_prefixes = false, uint64_t fetch_bytes = 0)
      : knows_prefixes_(knows_prefixes), fetch_bytes_(fetch_bytes) {}
  virtual ~EntryCursor() = default;
  // Sets the prefetch distance in entries, at least one, if the cursor can prefetch. A caller that alternates between several
  // cursors sets a smaller one.
  static constexpr size_t kUsualReadAhead = 12;
  virtual void SetReadAhead(size_t) {}
  // Number of entries; 0: unknown.
  virtual uint64_t entries() const { return 0; }
  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;
  // Starts a seek without waiting for memory, for callers that seek several cursors. The cursor proceeds until it would wait for
  // memory, and prefetches that memory. Returns true if FetchForSeek can continue after the prefetch. The next other call must be
  // Seek or SeekBefore for the same target; it may come at any time.
  bool BeginFetchForSeek(const SearchKey& target) {
    ForgetFetched();
    return FetchForSeek(target);
  }
  virtual bool FetchForSeek(const SearchKey&) { return false; }
  // Moves to the first entry at or after the target.
  virtual void Seek(const SearchKey& target) = 0;
  // Moves to the last entry before the target.
  virtual void SeekBefore(const SearchKey& target) = 0;
  // REQUIRES: entry() != nullptr.
  virtual void Next() = 0;
  virtual void Prev() = 0;
  // Like Next, but may skip older versions of the current key. Never skips an entry of another key.
  virtual void NextKey() { Next(); }
  // True if TakeItems is implemented, for callers that merge several cursors and prefetch entries themselves.
  virtual bool gives_items() const { return false; }
  // Returns up to `count` items from the position on, without reading the entries, and moves behind them. Going forward, fills
  // the start of `items`; going backward, the end, from items[count - 1] down. Returns the number of items, which is less than
  // `count` only at the end. `forward`: the direction of the last seek. entry() is undefined until the next seek. Does not throw.
  // REQUIRES: gives_items().
  virtual size_t TakeItems(OrderedItem* /*items*/, size_t /*count*/, bool /*forward*/) { return 0; }
  // The current entry; null at both ends.
  const LogEntry* entry() const { return entry_; }
  // KeyOrder::Prefix of the entry's key. REQUIRES: knows_prefixes(), and entry() != nullptr.
  uint64_t prefix() const { return prefix_; }
  bool knows_prefixes() const { return knows_prefixes_; }
  // Number of bytes of an entry that the cursor prefetches.
  uint64_t fetch_bytes() const { return fetch_bytes_; }

 protected:
  // Discards the progress of FetchForSeek. Needed if the seek did not follow, for example because memory ran out.
  virtual void ForgetFetched() {}

  const LogEntry* entry_ = nullptr;  // the current entry
  uint64_t prefix_ = 0;
  void Fetch(const LogEntry* entry) const { PrefetchAll(entry, fetch_bytes_); }
  // Prefetches several entries: the first lines of all, then the second lines, and so on.
  void FetchAll(const LogEntry* const* entries, size_t count) const {
    constexpr uint64_t kLine = 64;
    for (uint64_t at = 0; at + 1 < fetch_bytes_; at += kLine)
      for (size_t i = 0; i < count; ++i) Prefetch(reinterpret_cast<const char*>(entries[i]) + at);
    for (size_t i = 0; i < count && fetch_bytes_ > 0; ++i) Prefetch(reinterpret_cast<const char*>(entries[i]) + fetch_bytes_ - 1);
  }

 private:
  const bool knows_prefixes_;
  const uint64_t fetch_bytes_;
};

}  // namespace braiddb
