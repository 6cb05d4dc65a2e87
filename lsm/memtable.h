// Memtable: a DRAM index over log entries; the newest level.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "index/cursor.h"
#include "index/key_order.h"
#include "log/log_entry.h"
#include "lsm/ordered_array.h"
#include "pmem/pm_ptr.h"
#include "pmem/segment_allocator.h"
#include "util/arena.h"

namespace braiddb {

// An extent of a segment with entries of one memtable, and later of its table. end 0: a writer still appends.
struct LogExtent {
  Segment* segment = nullptr;
  uint64_t begin = 0;
  std::atomic<uint64_t> end{0};
};

// Ordered by (key ascending, sequence number descending). The bytes of entries stay in the log; only their order is in DRAM.
//
// FAMILIES        Each memtable holds entries of one column family. The default family's memtable owns the memtables of other
//                 families, which are created at the first write to their family. All of them are rotated and flushed together.
//                 The default family's memtable keeps the rotation state, the charges and the extents of all of them.
// SEQUENCE RANGE  A memtable holds exactly the writes with sequence numbers in (first, boundary). Rotation publishes the
//                 successor, then draws the boundary from the counter that writers draw from. A writer loads the active memtable,
//                 draws its sequence number, and goes forward to the memtable of that number (MemtableFor). A newer level
//                 therefore never holds an older version of a key.
// CONCURRENCY     Every method may be called concurrently by many writers and readers unless its comment says otherwise.
class Memtable {
 public:
  explicit Memtable(uint64_t id) : id_(id) {}
  virtual ~Memtable();
  Memtable(const Memtable&) = delete;
  Memtable& operator=(const Memtable&) = delete;

  // The arena block from which the calling thread cuts nodes. One per thread; reset when it belongs to another memtable.
  struct NodeBlock {
    uint64_t owner = 0;  // memtable id
    uint32_t cursor = 0;
    uint32_t end = 0;
  };
  // The insertion point of one entry. It is taken when the entry is durable, or claimed before.
  struct Insertion {
    const LogEntry* entry = nullptr;  // readable until the entry is published: on media, or in a copy
    PmPtr pointer;
    uint32_t node = 0;
    uint32_t shard = 0;
    uint64_t key_hash = 0;         // KeyHash; the caller sets it
    Memtable* memtable = nullptr;  // … and this too
    bool is_claimed = false;       // Claim took the insertion point
    uint32_t before[kMaxHeight];   // predecessor per layer, before the new node
    uint32_t after[kMaxHeight];    // successor per layer
  };

  // Prefetches the line that a lookup or publication with this hash reads first, if the memtable knows it.
  virtual void Prefetch(uint64_t hash) const = 0;

  // Takes memory for a node. False if there is none. Nothing else changes.
  virtual bool Allocate(NodeBlock* block, uint32_t height, Insertion* insertion) = 0;
  // Takes the insertion point for a key and sequence number before the entry exists, if this kind of memtable can. Publish is
  // then a plain store, and the CPU continues with the next write. Readers see no new entry before Publish. Other writes to the
  // key wait for Publish or Abandon. Between Claim and Publish the caller must therefore wait for nothing but its fence, and
  // claim one insertion point at a time.
  virtual void Claim(Slice key, uint64_t sequence, Insertion* insertion) = 0;
  // Gives up a claimed insertion point. The point is not reused.
  virtual void Abandon(Insertion* insertion) = 0;
  // Finds the insertion point of the entry, unless it was claimed. The entry's bytes must be readable (see Insertion::entry).
  // Nothing becomes visible.
  virtual void Prepare(const LogEntry* entry, PmPtr pointer, Insertion* insertion) = 0;
  // Makes the entry visible. REQUIRES: it is durable.
  virtual void Publish(Insertion* insertion) = 0;

  // False: no entry has a key with this KeyHash. Cheaper than Find for memtables that implement it; the default is true.
  virtual bool MayContain(uint64_t) const noexcept { return true; }
  // The newest entry of target.key with a sequence number <= target.sequence; null if there is none. `hash`: KeyHash of the key.
  virtual const LogEntry* Find(const SearchKey& target, uint64_t hash) const = 0;
  // Adds the entry that Find returns and the older versions to which it applies as an operand: in any order, all operands with a
  // sequence number <= target.sequence, down to the first version that is no operand. May add more versions.
  virtual void FindOperands(const SearchKey& target, uint64_t hash, std::vector<const LogEntry*>* versions) const = 0;
  // Cursors, and arrays for a MergingCursor, that together contain every entry. Cursors must not outlive the memtable.
  virtual void AddCursors(std::vector<std::unique_ptr<EntryCursor>>* cursors, std::vector<OrderedArray>* arrays) const = 0;

  // Walks all entries in entry order, for the flush. REQUIRES: no more writers.
  class Walker {
   public:
    virtual ~Walker() = default;
    // Fills at most `capacity` pointers, returns how many; 0 at the end.
    virtual size_t Next(PmPtr* pointers, size_t capacity) = 0;
  };
  virtual std::unique_ptr<Walker> NewWalker() const = 0;

  virtual uint64_t DramBytes() const = 0;
  // Returns the arena for reuse by the next memtable. REQUIRES: no reader is inside; the memtable is then only destroyed.
  virtual std::unique_ptr<Arena> TakeArena() = 0;
  // Null after TakeArena.
  virtual const Arena* arena() const = 0;

  // The OwnersWord of the arena that names the memtables of other families.
  static constexpr uint32_t kSiblingsWord = Arena::kOwnersWords - 1;
  uint64_t id() const { return id_; }

  // The memtable of a family; null if the family has no write here. REQUIRES: this is the default family's memtable.
  Memtable* Of(uint32_t family) const {
    if (__builtin_expect(family == 0, 1)) return const_cast<Memtable*>(this);
    const Siblings* const siblings = siblings_.load(std::memory_order_acquire);
    Memtable* const sibling = siblings == nullptr ? nullptr : (*siblings)[family].load(std::memory_order_acquire);
    return __builtin_expect(sibling == nullptr && attach_ != nullptr, 0) ? FindShared(family) : sibling;
  }
  // Installs `sibling` for the family if there is none yet. Returns the installed memtable; null if there is no memory to share
  // it.
  Memtable* Adopt(uint32_t family, std::unique_ptr<Memtable> sibling);
  // For a memtable that is attached to another process' arena: `attach` makes the memtable of another family over its arena, or
  // returns null. REQUIRES: no other thread has this memtable yet.
  using Attach = std::function<std::unique_ptr<Memtable>(uint32_t family, uint64_t heap_offset, uint64_t first_bytes)>;
  void FollowSiblings(const SharedMemory* memory, Attach attach) {
    shared_memory_ = memory;
    attach_ = std::move(attach);
  }
  // Calls `visit(uint32_t family, Memtable*)` for each other family's memtable.
  template <class Visit>
  void ForEachSibling(const Visit& visit) const {
    const Siblings* const siblings = siblings_.load(std::memory_order_acquire);
    for (uint32_t family = 1; siblings != nullptr && family < kMaxFamilies; ++family) {
      if (Memtable* const sibling = (*siblings)[family].load(std::memory_order_acquire)) visit(family, sibling);
    }
  }

  // Log bytes charged so far; approximate, since writers charge in portions.
  std::atomic<uint64_t> charged_bytes{0};
  std::atomic<uint64_t> entry_count{0};  // charged likewise; in another family's memtable: only its entries

  // Rotation state, see SEQUENCE RANGE.
  std::atomic<Memtable*> successor{nullptr};
  std::atomic<uint64_t> boundary{0};  // 0: not drawn yet

  // Registers an extent that a writer begins to fill.
  std::shared_ptr<LogExtent> AddExtent(Segment* segment, uint64_t begin);
  std::vector<std::shared_ptr<LogExtent>> TakeExtents();

 protected:
  // A search in another process' memtable that makes more steps goes in a circle: the memory is no memtable any more.
  static constexpr uint32_t kMaxForeignSteps = 1 << 26;

 private:
  using Siblings = std::array<std::atomic<Memtable*>, kMaxFamilies>;
  // If the arena is in a SharedHeap: the arenas of other families' memtables, for other processes. The last OwnersWord of the
  // arena has the offset of the array.
  struct SharedSibling {
    std::atomic<uint64_t> heap_offset;  // 0: none
    std::atomic<uint64_t> first_bytes;
  };
  static constexpr uint64_t kSiblingsBytes = kMaxFamilies * sizeof(SharedSibling);

  // False: there is no memory.
  bool Share(uint32_t family, const Memtable& sibling);
  // The memtable of a family that the owner of the arena has shared; null if there is none.
  Memtable* FindShared(uint32_t family) const;

  const uint64_t id_;
  std::atomic<Siblings*> siblings_{nullptr};  // owned, with the memtables it points to
  SharedHeap* heap_ = nullptr;                // of the array of SharedSiblings; null: there is none
  uint64_t shared_siblings_ = 0;              // its offset
  const SharedMemory* shared_memory_ = nullptr;
  Attach attach_;  // empty: this process owns the arena
  std::mutex extents_mutex_;
  std::vector<std::shared_ptr<LogExtent>> extents_;
};

// The memtable that the write with this sequence number belongs to. REQUIRES: `active` was loaded before the number was drawn.
Memtable* MemtableBehind(Memtable* active, uint64_t sequence);
inline Memtable* MemtableFor(Memtable* active, uint64_t sequence) {
  // seq_cst: rotation stores the successor, then draws the boundary. A writer whose number was drawn after the boundary therefore
  // sees the successor.
  const bool is_last = active->successor.load(std::memory_order_seq_cst) == nullptr;
  return __builtin_expect(is_last, 1) ? active : MemtableBehind(active, sequence);
}

}  // namespace braiddb
