// Events for the user's functions: listeners, and the receiver of the info log. Without listeners no event is recorded.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "db/db_impl.h"
#include "db/event_queue.h"

namespace braiddb {
namespace {

bool HasListeners(const std::unique_ptr<EventQueue>& events) { return events != nullptr && events->has_listeners(); }

}  // namespace

std::unique_ptr<Logger> DBImpl::MakeUsersLogger() {
  return std::make_unique<Logger>([this](std::string_view line) {
    if (events_ == nullptr) return options_.info_log(line);
    events_->Post([this, kept = std::string(line)]() -> EventQueue::Event {
      options_.info_log(kept);
      return {};
    });
  });
}

void DBImpl::PostMemTableSealed(uint64_t id) noexcept {
  if (!HasListeners(events_)) return;
  events_->Post([this, id]() -> EventQueue::Event {
    return [this, info = MemTableInfo{name_, id}](EventListener* listener) { listener->OnMemTableSealed(this, info); };
  });
  PostStallCondition();
}

void DBImpl::PostFlush(uint64_t memtable_id, const std::vector<FlushResult>* flushed) noexcept {
  if (!HasListeners(events_)) return;
  const bool completed = flushed != nullptr;
  uint64_t entries = 0;
  uint64_t dropped = 0;
  for (size_t i = 0; completed && i < flushed->size(); ++i) {
    entries += (*flushed)[i].table->entries;
    dropped += (*flushed)[i].dropped;
  }
  events_->Post([this, memtable_id, completed, entries, dropped]() -> EventQueue::Event {
    return [this, completed, info = FlushJobInfo{name_, memtable_id, entries, dropped}](EventListener* listener) {
      completed ? listener->OnFlushCompleted(this, info) : listener->OnFlushBegin(this, info);
    };
  });
  if (completed) PostStallCondition();
}

void DBImpl::TellOfCompaction(const Family& family, uint64_t job, size_t tables, const CompletedMerge* completed) noexcept {
  try {
    CompactionJobInfo info;
    info.db_name = name_;
    info.cf_name = family.name;
    info.job_id = job;
    info.num_input_tables = tables;
    if (completed != nullptr) {
      info.status = completed->status;
      info.num_merged_entries = completed->merged;
      info.num_dropped_entries = completed->dropped;
      info.elapsed_us = completed->elapsed_us;
    }
    events_->Post([this, info = std::move(info), ended = completed != nullptr]() -> EventQueue::Event {
      return [this, info, ended](EventListener* listener) {
        ended ? listener->OnCompactionCompleted(this, info) : listener->OnCompactionBegin(this, info);
      };
    });
  } catch (const std::bad_alloc&) {  // skipped: there is no memory for the event
  }
}

// Hidden families belong to the database, so users get no events of them.
void DBImpl::PostCompaction(const Family& family, uint64_t job, size_t tables, const CompletedMerge* completed) noexcept {
  if (!HasListeners(events_)) return;
  if (!family.is_hidden) TellOfCompaction(family, job, tables, completed);
  if (completed != nullptr) PostStallCondition();
}

void DBImpl::PostBackgroundError(const Status& status) noexcept {
  if (!HasListeners(events_)) return;
  try {
    events_->Post([this, status]() -> EventQueue::Event {
      return
          [this, info = BackgroundErrorInfo{name_, status}](EventListener* listener) { listener->OnBackgroundError(this, info); };
    });
  } catch (const std::bad_alloc&) {  // skipped: there is no memory for the event
  }
}

// The stall condition is evaluated when the event is delivered, by the limits that throttle writers (PaceWrites).
void DBImpl::PostStallCondition() noexcept {
  events_->Post([this]() -> EventQueue::Event {
    const uint32_t most_waiting = changing_.max_immutable_memtables.load(std::memory_order_relaxed);
    const bool flushes_are_behind = immutable_count_.load(std::memory_order_relaxed) > most_waiting;
    const bool merges_are_behind = changing_.MergesByItself() && l0_load_.most() > SlowdownTables();
    const auto now = flushes_are_behind || merges_are_behind ? WriteStallCondition::kDelayed : WriteStallCondition::kNormal;
    const auto before = std::exchange(told_condition_, now);
    if (before == now) return {};
    return [this, info = WriteStallInfo{name_, before, now}](EventListener* listener) {
      listener->OnStallConditionsChanged(this, info);
    };
  });
}

}  // namespace braiddb
