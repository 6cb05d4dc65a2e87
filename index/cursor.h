// EntryCursor: walks one ordered structure of log entries, whatever it is made of.
#pragma once

#include <cstddef>
#include <cstdint>

#include "index/key_order.h"
#include "index/ordered_item.h"
#include "util/prefetch.h"

namespace braiddb {

struct LogEntry;

// Every version of every key, in entry order (key ascending, newest first). May visit an entry again, or one that has just
// been merged into the level below; never misses an entry that was there when the read view was made which the structure is a
// part of, and that a registered snapshot sees. Thread safety: one thread at a time, concurrent with any change of the structure.
class EntryCursor {
 public:
  // `knows_prefixes`: sets prefix_ whenever it sets entry_, without a look at the entry, which may be far.
  // `fetch_bytes`: so much is fetched of an entry before it is wanted.
  explicit EntryCursor(bool knows_prefixes = false, uint64_t fetch_bytes = 0)
      : knows_prefixes_(knows_prefixes), fetch_bytes_(fetch_bytes) {}
  virtual ~EntryCursor() = default;
  // How many entries to fetch before Next comes to them, if the cursor knows where they are; at least one: for who has several
  // cursors and takes them in turns.
  static constexpr size_t kUsualReadAhead = 12;
  virtual void SetReadAhead(size_t) {}
  // How many entries there are; 0: not known.
  virtual uint64_t entries() const { return 0; }
  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;
  // For who seeks with several cursors, one after the other: goes as far as it can without a wait, and fetches what it would
  // wait for. Whether there is more to do, when that is there, by FetchForSeek; the next other call is the seek then, Seek or
  // SeekBefore, at any time.
  bool BeginFetchForSeek(const SearchKey& target) {
    ForgetFetched();
    return FetchForSeek(target);
  }
  virtual bool FetchForSeek(const SearchKey&) { return false; }
  // To the first entry at or after target.
  virtual void Seek(const SearchKey& target) = 0;
  // To the last entry before target.
  virtual void SeekBefore(const SearchKey& target) = 0;
  // REQUIRES: entry() != nullptr.
  virtual void Next() = 0;
  virtual void Prev() = 0;
  // As Next, or further, but not past an entry of another key.
  virtual void NextKey() { Next(); }
  // Whether TakeItems does what it says: for who merges several cursors, and fetches their entries itself.
  virtual bool gives_items() const { return false; }
  // What it knows of so many entries, from where it stands on, without a look at them; it moves on behind them. The first ones
  // of `items` are set, going backward the last ones, down from items[count - 1]. How many: fewer than `count` at its end.
  // `forward`: as the last seek went. Behind this entry() is not to be asked before the next seek. Does not throw. REQUIRES:
  // gives_items().
  virtual size_t TakeItems(OrderedItem* /*items*/, size_t /*count*/, bool /*forward*/) { return 0; }
  // Null at the ends.
  const LogEntry* entry() const { return entry_; }
  // KeyOrder::Prefix of the entry's key. REQUIRES: knows_prefixes(), and entry() != nullptr.
  uint64_t prefix() const { return prefix_; }
  bool knows_prefixes() const { return knows_prefixes_; }
  // So much is fetched of an entry.
  uint64_t fetch_bytes() const { return fetch_bytes_; }

 protected:
  // What was found for a seek that was not made: memory may have run out before it.
  virtual void ForgetFetched() {}

  const LogEntry* entry_ = nullptr;  // where it stands
  uint64_t prefix_ = 0;
  void Fetch(const LogEntry* entry) const { PrefetchAll(entry, fetch_bytes_); }
  // Several: the first lines of all, the second ones, and so on.
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
