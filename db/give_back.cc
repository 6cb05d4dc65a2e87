// Space goes back to the system: blocks of free segments that were not used for a while (docs/design/0021-space-goes-back.md).
//
// WHO    The flush thread gives back, between flushes and while the database is idle. It gives memory to spare segments too, so a
//        segment never gets memory while it loses its blocks. A flush that waits ends a round.
// WHEN   Once in kGiveBackRound, as long as there are superfluous segments. Who releases a segment wakes the thread.
#include "db/db_impl.h"
#include "util/mutant.h"
#include "util/sync_point.h"

namespace braiddb {
namespace {

constexpr std::chrono::milliseconds kGiveBackRound{kCrashTest ? 0 : 1000};

}  // namespace

void DBImpl::NoteSuperfluous() {
  if (space_is_superfluous_.load(std::memory_order_acquire) || !segments_->HasSuperfluous(options_.kept_free_space)) return;
  // release: pairs with the acquire in WaitIdle; the segments are free.
  space_is_superfluous_.store(true, std::memory_order_release);
  NotifyWork();
}

std::chrono::steady_clock::time_point DBImpl::NextGiveBack() const {
  std::chrono::milliseconds round = kGiveBackRound;
  BRAIDDB_SYNC_POINT_ARG("DBImpl::NextGiveBack:Round", &round);
  return gave_back_at_ + round;
}

void DBImpl::GiveBackSpace() {
  const auto now = std::chrono::steady_clock::now();
  if (now < NextGiveBack()) return;
  gave_back_at_ = now;
  // Before the call: whoever releases a segment meanwhile sets it again.
  space_is_superfluous_.store(false, std::memory_order_release);
  segments_->GiveBackFree(options_.kept_free_space, [this] {
    return stopping_.load(std::memory_order_acquire) || immutable_count_.load(std::memory_order_acquire) > 0;
  });
  if (segments_->HasSuperfluous(options_.kept_free_space)) space_is_superfluous_.store(true, std::memory_order_release);
}

}  // namespace braiddb
