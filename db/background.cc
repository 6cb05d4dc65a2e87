// Shared by the background threads: installation of a read view, the outcome of errors, the log of the database.
#include <algorithm>
#include <utility>

#include "db/db_impl.h"

namespace braiddb {

void DBImpl::InstallView(std::shared_ptr<ReadView> view) {
  const std::shared_ptr<const ReadView> old = std::exchange(current_view_, std::move(view));
  L0Load::Tables tables;
  current_view_->ForEach([&](uint32_t id, const FamilyView& levels) {
    if (FindFamily(id)->is_gone.load(std::memory_order_relaxed)) return;  // the family was dropped: no merge takes its tables
    if (levels.l0.empty()) return;
    const auto count = static_cast<uint32_t>(levels.l0.size());
    for (const auto& table : levels.l0) tables.entries += table->entries;
    tables.most = std::max(tables.most, count);
    tables.sum += count;
    ++tables.families;
    tables.oldest_id = std::min(tables.oldest_id, levels.l0.back()->id());
  });
  l0_load_.Set(tables);
  // release: pairs with the acquire of readers; the view's tables and their links are complete.
  view_.store(current_view_.get(), std::memory_order_release);
  PublishView();
  try {
    epochs_.RetireShared([kept = old]() mutable { kept.reset(); });
  } catch (const std::bad_alloc&) {  // no memory for the retirement: wait until no reader is in a guard, then free the view
    live_readers_.ExpireAll();
    epochs_.Synchronize();
  }
}

void DBImpl::NotifyWork() {
  std::lock_guard lock(work_mutex_);
  work_changed_.notify_all();
}

void DBImpl::Log(const std::string& line) const {
  if (logger_) logger_->Log(line);
}

Outcome DBImpl::OutcomeOf(Work work, const Status& status) const noexcept {
  if (status.ok()) return Outcome::kNone;
  return braiddb::OutcomeOf(work, CauseOf(status, regions_->persistence()->failed()));
}

Outcome DBImpl::Settle(Work work, const Status& status) noexcept {
  const Outcome outcome = OutcomeOf(work, status);
  if (outcome != Outcome::kEndsWriting) return outcome;
  {
    std::lock_guard lock(work_mutex_);
    if (background_error_.ok()) {
      try {
        background_error_ = Status::ReadOnly("the database takes no more writes after an error: " + status.ToString() +
                                             "; close it, remove the cause, and open it again");
      } catch (const std::bad_alloc&) {
        background_error_ = std::move(out_of_memory_);
      }
    }
  }
  if (!write_failed_.exchange(true, std::memory_order_acq_rel)) PostBackgroundError(status);
  try {
    Log("error: " + status.ToString());
  } catch (const std::bad_alloc&) {
  }
  NotifyWork();
  return outcome;
}

Status DBImpl::InChild() const {
  return Status::IOError("the database in " + path_ + " was opened by the parent of this process, which alone may use it; " +
                         "open it here when the parent has closed it");
}

Status DBImpl::BackgroundError() const {
  if (fork_mark_.is_in_child()) return InChild();
  std::lock_guard lock(work_mutex_);
  return background_error_;
}

}  // namespace braiddb
