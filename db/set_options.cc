// Options that can be changed while the database is open.
#include <algorithm>

#include "db/db_impl.h"
#include "db/no_memory.h"
#include "db/options_file.h"

namespace braiddb {

Status DB::SetOptions(ColumnFamilyHandle*, const ChangedOptions&) {
  return Status::NotSupported("SetOptions is not supported here");
}

void DBImpl::Changing::Begin(const Options& options) {
  memtable_size = options.memtable_size;
  max_immutable_memtables = options.max_immutable_memtables;
  l0_compaction_trigger = options.l0_compaction_trigger;
  l0_slowdown_writes_trigger = options.l0_slowdown_writes_trigger;
  disable_auto_compaction = options.disable_auto_compaction;
}

Status DBImpl::SetOptions(ColumnFamilyHandle* family, const ChangedOptions& changed) try {
  if (fork_mark_.is_in_child()) return InChild();
  Status status;
  const Family* const known = FamilyOf(family, &status);
  if (known == nullptr) return status;
  if (changed.memtable_size && *changed.memtable_size < kLeastMemtableSize)
    return Status::InvalidArgument("Options::memtable_size must be at least 16 KiB");
  if (status = CheckForeignOptions(changed.foreign_family_options); !status.ok()) return status;
  // With a DRAM budget the values at the open are upper limits, because the budget was divided for them.
  const auto limited = [this](uint32_t value, uint32_t at_open) {
    return std::max(1u, dram_.is_set() ? std::min(value, at_open) : value);
  };
  const std::lock_guard lock(families_mutex_);
  if (known->dropped.load(std::memory_order_acquire)) return Status::InvalidArgument("the column family was dropped");
  for (const auto& [name, value] : changed.foreign_family_options) changed_foreign_[known->id][name] = value;
  if (changed.memtable_size) given_.memtable_size = *changed.memtable_size;
  if (changed.max_immutable_memtables) {
    given_.max_immutable_memtables = *changed.max_immutable_memtables;
    changing_.max_immutable_memtables = limited(*changed.max_immutable_memtables, options_.max_immutable_memtables);
  }
  if (changed.l0_compaction_trigger) {
    given_.l0_compaction_trigger = *changed.l0_compaction_trigger;
    changing_.l0_compaction_trigger = limited(*changed.l0_compaction_trigger, options_.l0_compaction_trigger);
  }
  if (changed.l0_slowdown_writes_trigger) {
    given_.l0_slowdown_writes_trigger = *changed.l0_slowdown_writes_trigger;
    const uint32_t trigger = *changed.l0_slowdown_writes_trigger;
    const uint32_t at_open = options_.l0_slowdown_writes_trigger;
    changing_.l0_slowdown_writes_trigger = trigger != 0 ? limited(trigger, at_open) : dram_.is_set() ? at_open : 0;
  }
  if (changed.disable_auto_compaction)
    changing_.disable_auto_compaction = given_.disable_auto_compaction = *changed.disable_auto_compaction;
  changing_.memtable_size = MemtableSize(given_.memtable_size);
  if (!is_read_only()) NoteOptions();
  NotifyWork();  // a merge may be needed with the new triggers
  if (events_ != nullptr) PostStallCondition();
  return Status::OK();
} catch (const std::bad_alloc&) {
  return NoMemory();
}

}  // namespace braiddb
