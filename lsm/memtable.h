// Memtable: a DRAM index over log entries, the newest level.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "index/cursor.h"
#include "index/key_order.h"
#include "log/log_entry.h"
#include "lsm/ordered_array.h"
#include "pmem/pm_ptr.h"
#include "pmem/segment_allocator.h"
#include "util/arena.h"

namespace braiddb {

// A stretch of a segment that holds entries of one table; end 0: still being written.
struct LogExtent {
  Segment* segment = nullptr;
  uint64_t begin = 0;
  std::atomic<uint64_t> end{0};
};

// Orders by (key ascending, sequence number descending). The entries' bytes stay in the log; only their order lives here.
//
// FAMILIES        Each memtable has entries of one column family. That of the default family has those of the others, made when
//                 something is first written there: they are rotated and flushed together. What is said of a rotation below,
//                 of charges and of extents, is of all of them, and kept by the default family's.
// SEQUENCE RANGE  A memtable holds exactly the writes with sequence numbers in (first, boundary): rotation draws the boundary
//                 from the counter that writers draw from, after it has published the successor. A writer loads the active
//                 memtable, draws its number, and goes forward to the memtable that the number belongs to (MemtableFor), so a
//                 newer level never holds an older version of a key.
// Thread safety: every method may be called concurrently by many writers and readers unless it says otherwise.
class Memtable {
 public:
  explicit Memtable(uint64_t id) : id_(id) {}
  virtual ~Memtable();
  Memtable(const Memtable&) = delete;
  Memtable& operator=(const Memtable&) = delete;

  // Where the calling thread cuts its nodes from; one per thread, reset by the memtable when it belongs to another.
  struct NodeBlock {
    uint64_t owner = 0;  // memtable id
    uint32_t cursor = 0;
    uint32_t end = 0;
  };
  // A place for one entry: taken when the entry is durable, or claimed before.
  struct Insertion {
    const LogEntry* entry = nullptr;  // its bytes, there or in a copy that lives until it is published
    PmPtr pointer;
    uint32_t node = 0;
    uint32_t shard = 0;
    uint64_t key_hash = 0;         // KeyHash; the caller sets it
    Memtable* memtable = nullptr;  // … and this
    bool is_claimed = false;       // Claim took the place
    uint32_t before[kMaxHeight];   // node to link behind, per layer
    uint32_t after[kMaxHeight];
  };

  // Fetches what a lookup or a publication of a key with this hash looks at first, if that is known.
  virtual void Prefetch(uint64_t hash) const = 0;

  // Takes memory for a node, nothing else. False when there is none.
  virtual bool Allocate(NodeBlock* block, uint32_t height, Insertion* insertion) = 0;
  // Takes the place of an entry with this key and number, if the kind of memtable can do so before there is an entry; then
  // Publish is a plain store, across which the CPU goes on with the next write. Readers find nothing new there before Publish.
  // Other writes to the key wait for it, or for Abandon: the caller waits for nothing but its fence in between, and claims one
  // place at a time.
  virtual void Claim(Slice key, uint64_t sequence, Insertion* insertion) = 0;
  // Gives up a place that was claimed, for ever.
  virtual void Abandon(Insertion* insertion) = 0;
  // Finds the entry's place, unless it was claimed; the entry's bytes must be there (see Insertion::entry). Nothing becomes
  // visible.
  virtual void Prepare(const LogEntry* entry, PmPtr pointer, Insertion* insertion) = 0;
  // Makes the entry visible. REQUIRES: it is durable.
  virtual void Publish(Insertion* insertion) = 0;

  // False: it has no entry of a key with this KeyHash. Cheaper than Find, where it can tell at all.
  virtual bool MayContain(uint64_t) const noexcept { return true; }
  // The newest entry of target.key with a sequence number <= target.sequence; null if there is none. `hash`: KeyHash of the key.
  virtual const LogEntry* Find(const SearchKey& target, uint64_t hash) const = 0;
  // Adds what Find returns and the versions behind it that it is applied to: in no order, all operands with a sequence number <=
  // target.sequence down to a version that is none, and perhaps more.
  virtual void FindOperands(const SearchKey& target, uint64_t hash, std::vector<const LogEntry*>* versions) const = 0;
  // Cursors, and arrays for a MergingCursor, that together have every entry; cursors must not outlive the memtable.
  virtual void AddCursors(std::vector<std::unique_ptr<EntryCursor>>* cursors, std::vector<OrderedArray>* arrays) const = 0;

  // Walks all entries in order, for the flush. REQUIRES: no more writers.
  class Walker {
   public:
    virtual ~Walker() = default;
    // Fills at most `capacity` pointers, returns how many; 0 at the end.
    virtual size_t Next(PmPtr* pointers, size_t capacity) = 0;
  };
  virtual std::unique_ptr<Walker> NewWalker() const = 0;

  virtual uint64_t DramBytes() const = 0;
  // For reuse by the next memtable. REQUIRES: no reader inside; the memtable is only destroyed after this.
  virtual std::unique_ptr<Arena> TakeArena() = 0;

  uint64_t id() const { return id_; }

  // That of a family; null if nothing was written to it here. REQUIRES: this is the default family's.
  Memtable* Of(uint32_t family) const {
    if (__builtin_expect(family == 0, 1)) return const_cast<Memtable*>(this);
    const Siblings* const siblings = siblings_.load(std::memory_order_acquire);
    return siblings == nullptr ? nullptr : (*siblings)[family].load(std::memory_order_acquire);
  }
  // Takes a family's memtable, unless there is one by now; returns the one that is there.
  Memtable* Adopt(uint32_t family, std::unique_ptr<Memtable> sibling);
  // `visit(uint32_t family, Memtable*)` for each of the other families' that are here.
  template <class Visit>
  void ForEachSibling(const Visit& visit) const {
    const Siblings* const siblings = siblings_.load(std::memory_order_acquire);
    for (uint32_t family = 1; siblings != nullptr && family < kMaxFamilies; ++family) {
      if (Memtable* const sibling = (*siblings)[family].load(std::memory_order_acquire)) visit(family, sibling);
    }
  }

  // Log bytes charged so far, approximately (writers charge in portions).
  std::atomic<uint64_t> charged_bytes{0};
  std::atomic<uint64_t> entry_count{0};  // charged likewise; of another family's memtable: its entries

  // Rotation state, see SEQUENCE RANGE.
  std::atomic<Memtable*> successor{nullptr};
  std::atomic<uint64_t> boundary{0};  // 0: not drawn yet

  // Registers a stretch that a writer begins to fill.
  std::shared_ptr<LogExtent> AddExtent(Segment* segment, uint64_t begin);
  std::vector<std::shared_ptr<LogExtent>> TakeExtents();

 private:
  using Siblings = std::array<std::atomic<Memtable*>, kMaxFamilies>;

  const uint64_t id_;
  std::atomic<Siblings*> siblings_{nullptr};  // owned, with what they lead to
  std::mutex extents_mutex_;
  std::vector<std::shared_ptr<LogExtent>> extents_;
};

// The memtable that the write with this sequence number belongs to. REQUIRES: `active` was loaded before the number was drawn.
Memtable* MemtableBehind(Memtable* active, uint64_t sequence);
inline Memtable* MemtableFor(Memtable* active, uint64_t sequence) {
  // seq_cst: if this writer drew its number after the boundary was drawn, it sees the successor, which was stored before.
  const bool is_last = active->successor.load(std::memory_order_seq_cst) == nullptr;
  return __builtin_expect(is_last, 1) ? active : MemtableBehind(active, sequence);
}

}  // namespace braiddb
