// Visibility: when other threads see a write, and which thread waits for which. docs/ARCHITECTURE.md, "What is visible when"
//
// RULE     A barrier is an operation on several keys: a write of several updates, a deletion of a range, or the choice of the
//          number of a snapshot. Its position is its first sequence number, or the number of the snapshot.
//          R1  A write of one update becomes visible only when all barriers with smaller positions are complete.
//          R2  A write of several updates is acknowledged, and a read returns one of its updates, only when the whole write is
//              visible and all barriers with smaller positions are complete. A deletion of a range begins to be visible only
//              then.
//          R3  A snapshot is complete when all writes up to its number are visible.
//          Writes of one update do not wait for each other.
// ARGUMENT Reads and writes of one key or of several are linearizable. Let c(b) be the time at which barrier b and all barriers
//          with smaller positions are complete: c grows with the position. A barrier takes effect at c(b). A write of one update
//          takes effect when it becomes visible, or just before the next newer write of its key takes effect, if that is earlier.
//          - By R1 a write takes effect no earlier than c(b) of any barrier b with a smaller position. By R3 it takes effect
//            before the c of each snapshot that sees the write. So a snapshot shows exactly the writes that took effect before
//            it.
//          - Versions of one key take effect in the order of their numbers.
//          - A read returns the version with the largest number that is visible when the read looks. No newer version has taken
//            effect by then. By R1 and R2 the returned version has taken effect when the read returns. So there is an instant
//            during the read at which that version is the newest that has taken effect.
//          - By R1 to R3 a write takes effect between its call and its acknowledgement.
//          Writes of one update to different keys may take effect in another order than that of their numbers. No reader can
//          observe the difference: an operation that sees several keys at one time is a snapshot.
// SNAPSHOTS WITHOUT A BARRIER
//          A snapshot first tries to be no barrier, so that it does not wait for a writer that has lost its CPU, and no writer
//          waits for it. It takes as its number S the predecessor of the first number that is under way (SnapshotChoice), and
//          registers S. Let t be the time at which no write up to S is under way any more. After t it looks for updates with
//          numbers above S that may be visible. A thread stores last_visible before it makes an update visible, and never lowers
//          it. So if there are none, exactly the writes up to S were visible at t, and the snapshot takes effect at t:
//          - A write up to S has taken effect by t. A batch among them was acknowledged, so R2 held for it.
//          - A write above S becomes visible after t. So it takes effect after t, and so does a newer write of its key.
//          - S is registered before t. So if a copy of the list of snapshots does not have S, each write that was visible at the
//            time of the copy has a number up to S.
//          After some failures the snapshot becomes a barrier: with many writers some update above S is nearly always visible.
// PROGRESS A wait is for smaller positions or numbers only. Before a thread waits, it replaces its announced number, which may be
//          too small, by its real number. While it waits it holds no bucket of the lookup cache, no slot of a memtable and no
//          mutex that a write takes. So of all waiting operations, the one with the smallest number proceeds.
// COST     A write of one update loads barriers_, which is in the cache line of the counter that the write has just drawn from. A
//          read has costs only if it returns an update of a batch.
#include <algorithm>

#include "db/db_impl.h"
#include "db/snapshot_choice.h"
#include "util/sync_point.h"
#include "util/taken_thread_indexes.h"

namespace braiddb {

void DBImpl::FenceAnnouncements() const {
  if (asymmetric_fences_) AsymmetricFenceHeavy();
}

// Visits the states of living threads. A thread that has ended has nothing announced, and a process may have had thousands of
// threads.
template <class Visit>
void DBImpl::ForEachLiving(const Visit& visit) const {
  ForEachTakenThreadIndex([&](uint32_t index) {
    BRAIDDB_SYNC_POINT("DBImpl::ForEachLiving");
    if (const ThreadState* const thread = threads_.Find(index)) visit(*thread);
  });
}

void DBImpl::WaitWriters(uint64_t sequence) const {
  // Pairs with the announcement in AppendAndPublish.
  ForEachLiving([&](const ThreadState& thread) { thread.announced->in_flight.WaitAbove(sequence, asymmetric_fences_); });
}

void DBImpl::NotePublished(uint64_t sequence) const {
  uint64_t known = published_below_.load(std::memory_order_relaxed);
  while (known <= sequence && !published_below_.compare_exchange_weak(known, sequence + 1, std::memory_order_acq_rel)) {
  }
}

void DBImpl::WaitPublished(uint64_t sequence) const {
  BRAIDDB_DCHECK(sequence < next_sequence_->load());
  if (sequence < published_below_.load(std::memory_order_acquire)) return;
  WaitWriters(sequence);
  NotePublished(sequence);
}

// ---- Barriers

// The announced number is not larger than the position: a snapshot's number is the predecessor of the next drawn number.
// ORDER: the announcement, the count, then the draw of a number. seq_cst: a thread that draws a larger number sees the count.
void DBImpl::BeginBarrier(AnnouncedNumber* barrier) {
  barrier->Begin(next_sequence_->load(std::memory_order_seq_cst) - 1, asymmetric_fences_);
  barriers_->fetch_add(1, std::memory_order_seq_cst);
}

void DBImpl::EndBarrier(AnnouncedNumber* barrier) {
  barrier->End(asymmetric_fences_);
  barriers_->fetch_sub(1, std::memory_order_release);
}

void DBImpl::WaitBarriers(uint64_t sequence) const {
  bool is_left_out = false;
  BRAIDDB_SYNC_POINT_ARG("DBImpl::WaitBarriers", &is_left_out);
  if (is_left_out) return;
  ForEachLiving([&](const ThreadState& thread) { thread.announced->barrier.WaitAbove(sequence, asymmetric_fences_); });
  board_->spare_barrier.WaitAbove(sequence, asymmetric_fences_);
}

void DBImpl::WaitForTurn(ThreadState* thread, uint64_t first) const {
  thread->announced->in_flight.Set(first, asymmetric_fences_);
  WaitBarriers(first - 1);
}

void DBImpl::WaitWholeLonger(uint64_t sequence) const {
  if (live_reader_ != nullptr) return live_reader_->WaitBarriers(sequence);
  if (sequence < published_below_.load(std::memory_order_acquire)) return;
  // A damaged entry may have any sequence number.
  WaitBarriers(std::min(sequence, next_sequence_->load(std::memory_order_seq_cst) - 1));
}

// ---- The newest update

// The numbers of rotations, and of writes that the database makes for itself, belong to no update.
uint64_t DBImpl::GetLatestSequenceNumber() const { return LastUpdate(live_reader_ != nullptr ? live_reader_->board() : *board_); }

// ---- Snapshots

// A snapshot that is a barrier. All numbers of a batch are at or below the result, or all above it, because
// they are drawn at once.
template <class Choose>
uint64_t DBImpl::ChooseState(const Choose& choose) {
  ThreadState* const thread = threads_.Get();
  std::unique_lock<std::mutex> spare(spare_barrier_mutex_, std::defer_lock);
  if (thread == nullptr) spare.lock();
  AnnouncedNumber* const barrier = thread == nullptr ? &board_->spare_barrier : &thread->announced->barrier;
  BeginBarrier(barrier);
  uint64_t sequence = 0;
  try {
    sequence = choose();
  } catch (...) {
    EndBarrier(barrier);
    throw;
  }
  barrier->Set(sequence, asymmetric_fences_);
  WaitPublished(sequence);
  EndBarrier(barrier);
  return sequence;
}

uint64_t DBImpl::RegisterSnapshot() {
  if (live_reader_ != nullptr) return RegisterLiveSnapshot();
  const auto last = [this](uint64_t) { return next_sequence_->load(std::memory_order_seq_cst) - 1; };
  // If no number was drawn since a thread found all writes visible, that state is the newest one, and was so before the number is
  // chosen.
  const uint64_t known = published_below_.load(std::memory_order_acquire);
  if (known == next_sequence_->load(std::memory_order_seq_cst)) {
    const uint64_t sequence = snapshots_.Register(last);
    if (sequence < known) return sequence;
    snapshots_.Unregister(sequence);
  }
  int tries = 4;
  BRAIDDB_SYNC_POINT_ARG("DBImpl::RegisterSnapshot", &tries);
  SnapshotChoice choice(*board_);
  for (int i = 0; i < tries; ++i) {
    const uint64_t candidate = choice.Candidate();
    const uint64_t sequence = snapshots_.Register([candidate](uint64_t least) { return std::max(candidate, least); });
    WaitWriters(sequence);
    if (choice.IsState(sequence)) {
      NotePublished(sequence);
      return sequence;
    }
    snapshots_.Unregister(sequence);
  }
  return ChooseState([&] { return snapshots_.Register(last); });
}

uint64_t DBImpl::ChooseLogBound() {
  return ChooseState([this] { return next_sequence_->load(std::memory_order_seq_cst) - 1; });
}

}  // namespace braiddb
