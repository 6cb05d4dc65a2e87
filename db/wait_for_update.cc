// DB::WaitForUpdate: sleeps until there is a newer write.
//
// SLEEP  On LiveBoard::wakes, by a futex. A sleeper loads that number first. Then it stores update_is_awaited_; a reader in
//        another process sends kLiveAwait, and the service thread stores it. Then it looks whether a write has drawn a number.
// WAKE   The next write that ends clears update_is_awaited_, increases the number, and wakes all.
// ORDER  The sleeper, or the service thread for it, stores update_is_awaited_, then loads next_sequence. A write draws its
//        number, then loads update_is_awaited_. All four accesses are sequentially consistent. So the write sees the word, or
//        the sleeper sees the number. The word may be cleared by a write whose number the sleeper knows already. That write has
//        increased the number of wakes, so the sleeper looks again.
// COST   A write without sleepers loads one word that nobody changes.
#include <algorithm>
#include <chrono>
#include <thread>

#include "db/db_impl.h"
#include "db/no_memory.h"
#include "util/futex.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

using Clock = std::chrono::steady_clock;

// A reader looks at such intervals whether it has expired.
constexpr std::chrono::seconds kReadersSleep{1};
// Longer waits end after this time, which is for ever.
constexpr std::chrono::hours kLongestWait{24 * 365 * 100};

}  // namespace

Status DB::WaitForUpdate(uint64_t, std::chrono::microseconds, uint64_t*) {
  return Status::NotSupported("nothing changes in this database while it is open so; a secondary changes when it catches up");
}

void DBImpl::WakeAwaiting() {
  BRAIDDB_SYNC_POINT("DBImpl::WakeAwaiting");
  if (!update_is_awaited_.exchange(false, std::memory_order_seq_cst)) return;
  board_->wakes.fetch_add(1, std::memory_order_seq_cst);
  FutexWakeAll(board_->wakes);
}

// For a reader that has seen `next` as the next number.
void DBImpl::AwaitForReader(uint64_t next) {
  update_is_awaited_.store(true, std::memory_order_seq_cst);
  if (next_sequence_->load(std::memory_order_seq_cst) != next) WakeAwaiting();
}

// Sleeps while the next number is `next`, at most for `timeout`. May return early.
Status DBImpl::SleepUntilDrawn(uint64_t next, std::chrono::nanoseconds timeout) {
  const std::atomic<uint64_t>& wakes = live_reader_ == nullptr ? board_->wakes : live_reader_->board().wakes;
  const uint64_t before = wakes.load(std::memory_order_seq_cst);
  if (live_reader_ == nullptr) {
    update_is_awaited_.store(true, std::memory_order_seq_cst);
  } else {
    timeout = std::min<std::chrono::nanoseconds>(timeout, kReadersSleep);
    if (Status status = live_reader_->Await(next); !status.ok()) return status;
  }
  if (next_sequence_->load(std::memory_order_seq_cst) != next) return Status::OK();
  BRAIDDB_SYNC_POINT("DBImpl::SleepUntilDrawn:Looked");
  FutexWait(wakes, before, timeout);
  return Status::OK();
}

// True if a state with a larger number is visible: *latest. A snapshot has the number of such a state.
bool DBImpl::IsVisibleBehind(uint64_t sequence, uint64_t* latest) {
  const uint64_t number = RegisterSnapshot();
  const SnapshotRegistration registration(&snapshots_, number);
  if (number > sequence) *latest = number;
  return number > sequence;
}

Status DBImpl::WaitForUpdate(uint64_t sequence, std::chrono::microseconds timeout, uint64_t* latest) try {
  if (fork_mark_.is_in_child()) return InChild();
  if (is_read_only() && live_reader_ == nullptr) return DB::WaitForUpdate(sequence, timeout, latest);
  const auto end = Clock::now() + std::clamp<std::chrono::microseconds>(timeout, std::chrono::microseconds(0), kLongestWait);
  constexpr std::chrono::microseconds kFirstPause{1}, kLongestPause{1000};
  for (std::chrono::nanoseconds pause = kFirstPause;;) {
    bool is_under_way = false;
    const uint64_t next = next_sequence_->load(std::memory_order_seq_cst);
    if (next - 1 > sequence) {
      if (IsVisibleBehind(sequence, latest)) return Status::OK();
      // The writes with these numbers are under way. They may end before update_is_awaited_ is stored, and so wake nobody.
      BRAIDDB_SYNC_POINT("DBImpl::WaitForUpdate:UnderWay");
      is_under_way = true;
    }
    if (live_reader_ != nullptr) {
      if (Status status = CheckLive(); !status.ok()) return status;
      if (live_reader_->IsDisconnected()) return LiveReader::Ended();
    }
    const auto now = Clock::now();
    if (now >= end) return Status::TimedOut("no write came");
    if (is_under_way) {
      std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause, end - now));
      pause = std::min<std::chrono::nanoseconds>(2 * pause, kLongestPause);
      continue;
    }
    if (Status status = SleepUntilDrawn(next, end - now); !status.ok()) return status;
  }
} catch (const LiveFailure& failure) {
  return failure.status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

}  // namespace braiddb
