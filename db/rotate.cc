// Memtables: their creation, the accounts of writers, and rotation, in which a new memtable becomes the active one.
#include <algorithm>
#include <utility>

#include "db/db_impl.h"
#include "db/no_memory.h"
#include "lsm/memtable_type.h"

namespace braiddb {
namespace {

// An arena of less than this does not use huge pages.
constexpr uint64_t kHugePageArenaBytes = 4ull << 20;
// A memtable begins with room for this number of entries, or for the number that its predecessor had, if that is larger.
constexpr uint64_t kInitialEntries = 1024;
// Bytes of a node, its share of a hash table or of a skiplist's tower, and the unused ends of blocks.
constexpr uint64_t kBytesPerEntry = 96;
constexpr uint64_t kMinArenaBytes = 256ull << 10;
// Creating a smaller arena takes less time than zeroing a kept one.
constexpr uint64_t kMinKeptArenaBytes = 1ull << 20;

uint64_t FirstArenaBytes(uint64_t entries) { return std::max(kMinArenaBytes, entries * kBytesPerEntry); }

}  // namespace

// Called after a write that succeeded. If there is no memory for another memtable, the present one grows further.
void DBImpl::TryRotateMemtable(const Memtable* full) try {
  const Status status = RotateMemtable(full);
  if (!status.ok()) Log("rotation: " + status.ToString());
} catch (const std::bad_alloc&) {
}

void DBImpl::BeginExtent(ThreadState* thread, Memtable* memtable, const LogSlot& slot) {
  if (thread->uncharged_owner.value() != memtable->id()) {  // what an older memtable was not charged with is not its successor's
    thread->uncharged_bytes = 0;
    thread->uncharged_entries.Set(0);
    thread->uncharged_owner.Set(memtable->id());
  }
  if (slot.dedicated) {
    memtable->AddExtent(slot.segment, slot.offset);  // its end is the used part of the segment
    return;
  }
  if (thread->extent != nullptr && thread->extent->segment == slot.segment) {
    thread->extent->end.store(slot.offset, std::memory_order_release);
  }
  thread->extent = memtable->AddExtent(slot.segment, slot.offset);
  thread->extent_owner = memtable->id();
}

bool DBImpl::Charge(ThreadState* thread, Memtable* memtable) {
  const uint64_t charged =
      memtable->charged_bytes.fetch_add(thread->uncharged_bytes, std::memory_order_relaxed) + thread->uncharged_bytes;
  const uint64_t entries = thread->uncharged_entries.value();
  const uint64_t counted = memtable->entry_count.fetch_add(entries, std::memory_order_relaxed) + entries;
  thread->unpaced_entries += entries;
  thread->uncharged_bytes = 0;
  thread->uncharged_entries.Set(0);
  return charged >= changing_.memtable_size.load(std::memory_order_relaxed) || counted >= options_.memtable_max_entries;
}

std::unique_ptr<Arena> DBImpl::CreateArena(uint64_t entries, SharedHeap* heap) {
  const uint64_t bytes = FirstArenaBytes(entries);
  return Arena::Create(bytes >= kHugePageArenaBytes, bytes, heap);
}

uint64_t DBImpl::ExpectedEntries(const Memtable* before) const {
  const uint64_t size = changing_.memtable_size.load(std::memory_order_relaxed);
  const uint64_t most = std::min(options_.memtable_max_entries, size / LogEntrySize(1, 0, 0));
  const uint64_t had = before == nullptr ? 0 : before->entry_count.load(std::memory_order_relaxed);
  return std::min(most, std::max(kInitialEntries, had));
}

std::shared_ptr<Memtable> DBImpl::NewMemtable(const Memtable* before) {
  const uint64_t entries = ExpectedEntries(before);
  SharedHeap* const heap = live_heap_.load(std::memory_order_acquire);
  std::unique_ptr<Arena> arena = arenas_.Take(FirstArenaBytes(entries));
  while (arena != nullptr && arena->heap() != heap) arena = arenas_.Take(FirstArenaBytes(entries));
  if (arena == nullptr) arena = CreateArena(entries, heap);
  if (arena == nullptr) return nullptr;
  std::unique_ptr<Memtable> memtable = MakeMemtable(next_memtable_id_, default_family_.order, std::move(arena), entries);
  if (memtable == nullptr) return nullptr;
  ++next_memtable_id_;
  return std::shared_ptr<Memtable>(memtable.release(), [this](Memtable* dying) {
    std::unique_ptr<Arena> back = dying->TakeArena();
    delete dying;
    if (back->first_bytes() < kMinKeptArenaBytes) return;
    if (back->heap() != nullptr && back->heap()->is_frozen()) return;  // readers of other processes use it
    back->Reset(KeptArenaBytes());
    arenas_.Keep(std::move(back), KeptArenas());
  });
}

// `entries`: an estimate of the number of entries.
std::unique_ptr<Memtable> DBImpl::MakeMemtable(uint64_t id, const KeyOrder& order, std::unique_ptr<Arena> arena,
                                               uint64_t entries) const {
  const uint32_t block = changing_.memtable_size.load(std::memory_order_relaxed) >= (1u << 20) ? 16384 : 1024;
  return CreateMemtable(options_.memtable, {id, regions_.get(), &order, std::move(arena), block, entries});
}

// Creates the family's memtable if it does not exist. The memtable begins small, because most families are written to seldom.
// ORDER: called while the write is announced. A thread that drops the family first marks the family as dropped, and then waits
// for announced writes. So after the wait the family gets no new entry.
Status DBImpl::ChooseMemtable(ThreadState* thread, Memtable* set, uint32_t family, Memtable** memtable,
                              Memtable::NodeBlock** nodes) try {
  const Family* const known = FindFamily(family);
  if (known == nullptr || known->dropped.load(std::memory_order_seq_cst))
    return Status::InvalidArgument("column family " + std::to_string(family) + " was dropped");
  if (family >= thread->family_nodes.size()) thread->family_nodes.resize(family + 1);
  *nodes = &thread->family_nodes[family];
  *memtable = set->Of(family);
  if (*memtable == nullptr) {
    std::unique_ptr<Arena> arena = CreateArena(kInitialEntries, set->arena()->heap());
    std::unique_ptr<Memtable> fresh;
    if (arena != nullptr) fresh = MakeMemtable(set->id(), known->order, std::move(arena), kInitialEntries);
    if (fresh == nullptr) return Status::MemoryLimit("no address space for a memtable");
    *memtable = set->Adopt(family, std::move(fresh));
    if (*memtable == nullptr) return Status::MemoryLimit("no address space for a memtable");
  }
  (*memtable)->entry_count.fetch_add(1, std::memory_order_relaxed);
  return Status::OK();
} catch (const std::bad_alloc&) {
  return NoMemory();
}

// STEPS   1 install the new view, in which readers find the successor  2 set the successor, which writers find  3 draw the
//         boundary from the writers' counter  4 set the new active memtable.
// WHY IT IS RIGHT  A writer that draws a number above the boundary sees the successor (2 before 3), and waits for the boundary if
//         it must (MemtableFor). A reader that starts after such a write was acknowledged sees the new view (1 before 2).
// `expected`: only compared, never dereferenced, because it may have been freed.
Status DBImpl::RotateMemtable(const Memtable* expected) {
  {
    perf::Timer waits(&PerfContext::db_mutex_lock_nanos, perf::TimesLocks());
    std::lock_guard lock(view_mutex_);
    waits.Stop();
    Memtable* old = active_.load(std::memory_order_relaxed);
    if (old != expected) return Status::OK();
    auto view = std::make_shared<ReadView>(*current_view_);
    std::shared_ptr<Memtable> fresh = NewMemtable(old);
    if (fresh == nullptr) return Status::MemoryLimit("no address space for a memtable");
    std::shared_ptr<Memtable> full = view->active;
    view->immutables.insert(view->immutables.begin(), full);
    view->active = fresh;
    pending_flushes_.reserve(pending_flushes_.size() + 1);
    InstallView(view);  // no step after this one fails
    old->successor.store(fresh.get(), std::memory_order_seq_cst);
    const uint64_t boundary = next_sequence_->fetch_add(1, std::memory_order_seq_cst);
    old->boundary.store(boundary, std::memory_order_release);
    active_.store(fresh.get(), std::memory_order_seq_cst);
    active_first_sequence_ = boundary + 1;
    // Writers that still use `old`, or may still dereference it on their way to the successor, have announced this number or a
    // smaller one.
    const uint64_t last_announced = next_sequence_->load(std::memory_order_seq_cst);
    last_rotated_id_ = full->id();
    pending_flushes_.push_back({std::move(full), last_announced});
    PostMemTableSealed(last_rotated_id_);  // before the flush can begin
    immutable_count_.fetch_add(1, std::memory_order_relaxed);
  }
  counters_.rotations.fetch_add(1, std::memory_order_relaxed);
  NotifyWork();
  return Status::OK();
}

}  // namespace braiddb
