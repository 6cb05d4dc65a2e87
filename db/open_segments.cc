// Open segments of the log: each belongs to one thread, until another thread takes it.
//
// GOAL    The part of a region that can be written does not depend on the number of threads that have ever written. A thread that
//         finds no space continues in the open segment of a thread that has ended or is idle. A compaction seals such segments,
//         so that it can relocate their live entries.
// STEPS   of the thread that takes a segment:  1 disown the owner, by one store  2 fence  3 wait for the owner's write that was
//         announced before, if there is one: until it is no longer announced, or the owner has opened another segment  4 in
//         PersistMode::kPage, make the whole segment durable  5 append after used_bytes, or seal the segment.
// CONCURRENCY  A write announces itself, and then checks LogWriter::Owns. Steps 1 to 3 do the same in reverse, with the fence of
//         FenceAnnouncements in between. So either the write sees that the segment was taken, and reserves again, or step 3 sees
//         the write. If several threads disown one owner, one of them wins. A segment has one owner at a time, so its sequence
//         numbers ascend: the next owner draws its numbers after 3.
// CRASH   Media do not record the owner of a segment. Before 5 nothing is stored. The entries before used_bytes are durable
//         before the next one is written: each write drains before it commits, except in kPage, where step 4 makes them durable.
//         So the valid entries are a prefix, and no acknowledged entry follows a lost one. [CC-65]
// PROGRESS  The thread that waits in 3 has announced nothing, so no thread waits for it. It holds no lock that a write takes. A
//         segment that was just taken is not taken again before two checks have found its owner idle, except as the last resort.
#include <string>
#include <thread>

#include "db/db_impl.h"
#include "util/sync_point.h"
#include "util/taken_thread_indexes.h"

namespace braiddb {
namespace {

constexpr int kMaxSearches = 1000;

Status NoIdleSegment(uint64_t bytes) {
  return Status::NoSpace("no idle thread has a segment with room for " + std::to_string(bytes) + " bytes");
}

}  // namespace

// Takes the owner's open segment, if `is_wanted` accepts it. *segment is null if the owner has no such segment, or lost it to
// another thread. After an error the segment has no owner, and the caller ends writing.
Status DBImpl::TakeOpenSegment(ThreadState* owner, const std::function<bool(const Segment&)>& is_wanted, Segment** segment) {
  Segment* const open = owner->writer.segment();
  *segment = nullptr;
  if (open == nullptr || !is_wanted(*open)) return Status::OK();
  taken_segments_.fetch_add(1, std::memory_order_seq_cst);
  if (!owner->writer.Disown(open)) {
    adopted_segments_.fetch_add(1, std::memory_order_seq_cst);
    return Status::OK();
  }
  *segment = open;
  FenceAnnouncements();
  BRAIDDB_SYNC_POINT("DBImpl::TakeOpenSegment:Disowned");
  // The announced write may replace its number by a larger one. If the owner continues, it opens another segment only after that
  // write.
  const LogSlot none;
  for (uint64_t number = owner->announced->in_flight.value(); number != AnnouncedNumber::kNone && owner->writer.Owns(none);
       number = owner->announced->in_flight.value()) {
    owner->announced->in_flight.WaitAbove(number, asymmetric_fences_);
  }
  Persistence* const persistence = regions_->persistence();
  if (persistence->mode() != PersistMode::kPage) return Status::OK();
  // ORDER: entries that the owner wrote without WriteOptions::sync are durable before later entries of the segment are written.
  // [CC-65]
  return persistence->Persist(open->data(), open->used_bytes.load(std::memory_order_acquire)) ? Status::OK()
                                                                                              : persistence->error();
}

bool DBImpl::IsIdle(uint32_t index, Idleness least, ThreadState* thread) const {
  if (!IsThreadIndexTaken(index) || least == Idleness::kAny) return true;
  const Segment* const segment = thread->writer.segment();
  if (least == Idleness::kEnded || segment == nullptr) return false;
  // The two words may be loaded at different times. If they do not match, the thread is writing, and is not idle.
  const uint64_t place = segment->ptr(segment->used_bytes.load(std::memory_order_relaxed)).raw();
  return thread->last_look.exchange(place, std::memory_order_relaxed) == place &&
         thread->announced->in_flight.value() == AnnouncedNumber::kNone;
}

void DBImpl::LookForIdle() const {
  ForEachTakenThreadIndex([this](uint32_t index) {
    if (ThreadState* const thread = threads_.Find(index)) (void)IsIdle(index, Idleness::kIdle, thread);
  });
}

// NoSpace if no segment of an idle thread has room. As the last resort (kAny) the search is repeated while other threads take
// segments: a segment that is moving from one thread to another belongs to neither.
Status DBImpl::ReserveInIdle(ThreadState* thread, uint64_t bytes, Idleness least, LogSlot* slot) {
  for (int search = 0; search < kMaxSearches; ++search) {
    const uint64_t taken_before = taken_segments_.load(std::memory_order_seq_cst);
    Status status = SearchIdle(thread, bytes, least, slot);
    const bool is_still = adopted_segments_.load(std::memory_order_seq_cst) == taken_before &&
                          taken_segments_.load(std::memory_order_seq_cst) == taken_before;
    if (!status.IsNoSpace() || least != Idleness::kAny || is_still) return status;
    std::this_thread::yield();
  }
  return NoIdleSegment(bytes);
}

Status DBImpl::SearchIdle(ThreadState* thread, uint64_t bytes, Idleness least, LogSlot* slot) {
  const auto has_room = [bytes](const Segment& segment) {
    const uint64_t used = segment.used_bytes.load(std::memory_order_acquire);
    return NextEntryOffset(used) + bytes <= segment.capacity();
  };
  const uint32_t first = next_look_for_idle_.fetch_add(1, std::memory_order_relaxed);
  for (uint32_t i = 0; i < kMaxThreads; ++i) {
    const uint32_t index = (first + i) % kMaxThreads;
    ThreadState* const owner = threads_.Find(index);
    if (owner == nullptr || owner == thread || !IsIdle(index, least, owner)) continue;
    Segment* segment = nullptr;
    if (Status status = TakeOpenSegment(owner, has_room, &segment); !status.ok()) return status;
    if (segment == nullptr) continue;
    next_look_for_idle_.store(index + 1, std::memory_order_relaxed);
    thread->last_look.store(0, std::memory_order_relaxed);
    const Status adopted = thread->writer.Adopt(segments_.get(), segment);
    adopted_segments_.fetch_add(1, std::memory_order_seq_cst);
    if (!adopted.ok()) return adopted;
    if (thread->writer.ReserveHere(bytes, slot)) return Status::OK();  // otherwise another thread took the segment at once
  }
  return NoIdleSegment(bytes);
}

Status DBImpl::SealIdle(Idleness least) {
  const auto is_any = [](const Segment&) { return true; };
  for (uint32_t index = 0; index < kMaxThreads; ++index) {
    ThreadState* const owner = threads_.Find(index);
    if (owner == nullptr || !IsIdle(index, least, owner)) continue;
    Segment* segment = nullptr;
    Status status = TakeOpenSegment(owner, is_any, &segment);
    if (!status.ok()) return status;
    if (segment == nullptr) continue;
    adopted_segments_.fetch_add(1, std::memory_order_seq_cst);
    const uint64_t used = segment->used_bytes.load(std::memory_order_acquire);
    status = used == 0 ? segments_->Release(segment)
                       : segments_->Seal(segment, used, segment->last_sequence.load(std::memory_order_relaxed));
    if (!status.ok()) return status;
  }
  return Status::OK();
}

}  // namespace braiddb
