// StoreTracer: knows of every store to the pools of one open database, and of every flush and fence, and records what a power cut
// at any instant would leave.
//
// MODEL  A line that is flushed is staged, with all stores made to it so far, for the thread that flushed it, and these stores
//        are guaranteed to be on media when that thread's next fence has passed. Another thread's fence guarantees nothing of
//        it. Of the stores to a line that are not guaranteed, any prefix may be on media; in the strict model any of its words.
//        With eADR (caches are inside the persistence domain) it is a prefix of all stores.
// SOURCES  Stores of instrumented code (tsan_hooks.cc), memcpy and its like included. libpmemobj is not instrumented: what it
//        copies through libpmem comes here as it does it, and its plain stores are found, as stores in no order, when it flushes
//        them, at the latest when the tracer looks at the whole page (pmdk_hooks.cc).
// SELF-CHECK  At every fence the pages stored to since the last one, at one fence in 16 all that were ever stored to, and at the
//        end the whole pools must hold what the traced stores explain. A byte of BraidDB's own that does not is a violation.
// CONCURRENCY  One thread runs at a time (scheduler.h), and none gets the turn while another is in here, so there are no locks.
//              A plain store is announced before it is made; its value is taken at the next call of any kind, before which no
//              other thread gets the turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pmem/persistence.h"
#include "pmem/region_set.h"
#include "tests/crash_test/crash_point.h"

namespace braiddb::test {

class StoreTracer final : public PersistObserver {
 public:
  struct Options {
    uint64_t seed = 1;
    bool eadr = false;
    uint32_t one_in_fences = 1;    // fences with a crash point before and after them, beside the first of each place
    uint32_t one_in_stores = 200;  // stores with a crash point
  };

  StoreTracer(std::string database, const Options& options, const CrashOracle* oracle);
  ~StoreTracer() override;

  // The one that gets the stores; null for none.
  static StoreTracer* Current() { return current_; }

  // Before Attach: what a process that was killed left in the caches. BraidDB's words of these lines are in the pools, and not
  // durable; `guaranteed` has what is on media.
  void Inherit(const std::vector<DirtyLine>& dirty, std::vector<MediaLine> guaranteed);
  // To be called from the pools-mapped hook: what is in the pools now counts as durable, but for what was inherited.
  void Attach(RegionSet* regions);
  // Takes a last point and checks everything. Before the pools are unmapped; nothing is traced afterwards.
  void Detach();

  void OnFlush(const void* address, size_t bytes) override { Flush(address, bytes); }
  void OnDrain() override {
    drain_return_ = CurrentSite()[0];
    Fence();
  }
  // The zeros of a hole are on media at once. What a cut before that leaves is looked at when the segment has become free.
  void OnHole(const void* address, size_t bytes) override;

  // ---- From the hooks. Addresses outside the pools are ignored.

  bool Owns(const void* address) const {
    const auto at = reinterpret_cast<uintptr_t>(address);
    for (const Region& region : regions_) {
      if (at - region.base < region.bytes) return true;
    }
    return false;
  }
  // A plain store comes next in this thread.
  void Announce(void* address, size_t bytes) {
    Resolve();
    if (Owns(address)) pending_address_ = static_cast<uint8_t*>(address), pending_bytes_ = bytes;
  }
  void Resolve() {
    if (pending_bytes_ != 0) TakePending();
  }
  // Stores that have just been made, in no particular order.
  void Stored(const void* address, size_t bytes);
  void Flush(const void* address, size_t bytes);
  void Fence();
  // Whether or not something of it has changed, the next fence looks at the whole page: something behind it may have.
  void LookAt(const void* address);
  // A file was renamed or removed, or is about to be.
  static void NoteFiles() {
    ++file_changes_;
    if (current_ != nullptr) current_->files_.reset();
  }
  static uint64_t file_changes() { return file_changes_; }
  // A region is getting a part.
  static void NoteGrowth() { ++growths_; }
  static uint64_t growths() { return growths_; }
  // The oracle has changed.
  void NoteOperation(bool acknowledged);

  // ---- What was found

  CrashRecord TakeRecord() { return std::move(record_); }
  // How often each fence was passed.
  const std::map<FenceSite, uint64_t>& fences() const { return fences_; }
  // An address to which Persistence's fence function returned; 0: none.
  uintptr_t drain_return() const { return drain_return_; }
  uint64_t stores() const { return order_; }
  uint64_t pmdk_stores() const { return pmdk_stores_; }
  uint64_t checked_pages() const { return checked_pages_; }
  const std::string& violation() const { return violation_; }

 private:
  struct Region {
    uintptr_t base;
    uint64_t bytes;                     // of address space
    uint8_t* explained = nullptr;       // what the pool holds as far as the traced stores go
    uint8_t* media = nullptr;           // what is guaranteed
    std::vector<uint64_t> fresh_pages;  // stored to since the last fence
    std::vector<uint8_t> page_state;    // bit 0: is in used_pages, bit 1: in fresh_pages
    std::vector<uint64_t> used_pages;
  };
  struct Staged {
    uint64_t line;  // key in lines_
    uint64_t order;
  };

  static uint64_t KeyOf(uint32_t region, uint64_t offset) { return uint64_t{region} << 40 | offset / kLine; }
  bool Find(const void* address, uint32_t* region, uint64_t* offset) const;
  uint64_t NextRandom();
  void TakePending();
  void TakeInherited();
  void StoreWord(uint32_t region, uint64_t offset, uint64_t value, uint64_t group);
  static void NoteFresh(Region* region, uint64_t page);
  void Guarantee(uint64_t key, uint64_t order);
  void GuaranteeAll();
  void NoteFreeBlocks(uint32_t index);
  void CheckPage(uint32_t index, uint64_t page);
  void CheckPages(bool all);
  void Capture(PointKind kind, const FenceSite& site);
  void NoteSamePoint(PointKind kind, const FenceSite& site);
  void ListFiles();
  static FenceSite CurrentSite();

  static inline StoreTracer* current_ = nullptr;
  static inline uint64_t file_changes_ = 0;
  static inline uint64_t growths_ = 0;

  const std::string database_;
  const Options options_;
  const CrashOracle* const oracle_;
  std::vector<DirtyLine> inherited_;
  std::vector<MediaLine> inherited_media_;  // of the same lines
  RegionSet* set_ = nullptr;
  std::vector<Region> regions_;
  uint8_t* pending_address_ = nullptr;
  size_t pending_bytes_ = 0;
  bool inside_ = false;
  uintptr_t drain_return_ = 0;
  uint64_t order_ = 0;
  uint64_t group_ = 0;
  uint64_t fence_count_ = 0;
  uint64_t until_point_ = 0;
  uint64_t random_ = 0;
  uint64_t pmdk_stores_ = 0;
  uint64_t checked_pages_ = 0;
  std::map<uint64_t, std::vector<TracedStore>> lines_;  // dirty ones
  std::map<uint32_t, std::vector<Staged>> staged_;      // by thread
  std::map<FenceSite, uint64_t> fences_;
  std::shared_ptr<const CrashFiles> files_;
  std::shared_ptr<const CrashOracle::Allowed> allowed_;
  uint64_t captured_state_ = UINT64_MAX;
  uint64_t operations_ = 0;
  CrashRecord record_;
  std::string violation_;
};

// The addresses from which the running functions of instrumented code were called, innermost last; kept by tsan_hooks.cc.
struct CallStack {
  static constexpr uint32_t kDepth = 256;
  uint32_t depth = 0;
  const void* callers[kDepth];
};
extern thread_local CallStack call_stack;

}  // namespace braiddb::test
