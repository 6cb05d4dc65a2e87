#include "compaction/collapse.h"

#include <algorithm>
#include <deque>

#include "braiddb/db.h"
#include "compaction/operand_combiner.h"
#include "log/log_reader.h"
#include "log/operands.h"

namespace braiddb {
namespace {

class Collapser {
 public:
  Collapser(const RelocationJob& job, uint32_t family, const MergeOperator& merge, const RangeTombstones* ranges,
            const VersionFilter& snapshots)
      : job_(job),
        order_(*job.families[family].order),
        merge_(merge),
        combiner_(merge, snapshots),
        ranges_(ranges),
        cursor_(job.families[family].last_level->NewCursor()) {}

  // Computes the put of one key. Returns the log space that the put will take. Returns 0 if the key stays unchanged.
  uint64_t Add(Slice key) {
    if (!Collect(key)) return 0;
    std::string value;
    std::reverse(operands_.begin(), operands_.end());
    const Slice existing = base_ == nullptr ? Slice() : base_->value();
    const std::span<const Slice> operands = combiner_.Combine(newest_->key(), operands_);
    if (!FullMerge(merge_, newest_->key(), base_ == nullptr ? nullptr : &existing, operands, &value).ok()) return 0;
    if (value.size() > kMaxValueSize) return 0;
    values_.push_back(std::move(value));
    puts_.push_back({newest_, EntryType::kPut, values_.back()});
    return LogEntrySize(newest_->height(), newest_->key_size(), values_.back().size());
  }

  // The puts in entry order. Keys were added in descending order.
  const std::vector<Copied>& puts() {
    std::reverse(puts_.begin(), puts_.end());
    return puts_;
  }

 private:
  // Collects the operands of a key, newest first, and the put below them. Returns false if the key's newest version is not an
  // operand, or if a version is damaged.
  bool Collect(Slice key) {
    operands_.clear();
    newest_ = nullptr;
    base_ = nullptr;
    uint64_t sequence = UINT64_MAX;
    uint64_t floor = 0;  // versions with a smaller sequence number are hidden by a range tombstone
    for (cursor_->Seek(SearchKey(order_, key, kMaxSequence)); cursor_->entry() != nullptr; cursor_->Next()) {
      const LogEntry* const entry = cursor_->entry();
      if (!IsSound(entry)) return false;
      if (!order_.Same(entry->key(), key)) break;
      if (entry->is_obsolete() || entry->sequence() >= sequence) return false;
      sequence = entry->sequence();
      if (newest_ == nullptr && ranges_ != nullptr) floor = ranges_->Newest(key, kMaxSequence);
      if (sequence < floor) break;
      if (!entry->is_operand()) {
        if (entry->type() == EntryType::kPut) base_ = entry;
        break;
      }
      if (newest_ == nullptr) newest_ = entry;
      operands_.push_back(entry);
    }
    return newest_ != nullptr && !job_.regions->damage_seen();
  }

  // The checksum of the entry is verified, because its value becomes part of a new entry.
  bool IsSound(const LogEntry* entry) const {
    const PmPtr place = job_.regions->Find(entry);
    const Segment* const segment = place ? job_.segments->Find(place) : nullptr;
    return segment != nullptr && LogReader(*segment, segment->capacity()).ValidAt(segment->OffsetOf(place));
  }

  const RelocationJob& job_;
  const KeyOrder& order_;
  const MergeOperator& merge_;
  OperandCombiner combiner_;
  const RangeTombstones* const ranges_;
  const std::unique_ptr<EntryCursor> cursor_;
  const LogEntry* newest_ = nullptr;  // of one key
  const LogEntry* base_ = nullptr;    // the put that the operands are applied to; null: none
  std::vector<const LogEntry*> operands_;
  std::deque<std::string> values_;
  std::vector<Copied> puts_;  // in descending key order until puts() is called
};

}  // namespace

Status CollapseKeys(const RelocationJob& job, uint32_t family, const MergeOperator& merge, const RangeTombstones* ranges,
                    const VersionFilter& snapshots, uint64_t most_bytes, std::vector<std::string>* keys, Relocation* result) try {
  Collapser collapser(job, family, merge, ranges, snapshots);
  for (uint64_t bytes = 0; !keys->empty() && bytes < most_bytes; keys->pop_back()) {
    if (job.stop != nullptr && job.stop->load(std::memory_order_acquire)) return Status::Aborted("stopped");
    bytes += collapser.Add(keys->back());
  }
  if (job.regions->damage_seen()) return RegionSet::DamagedList();
  return WriteCopies(job, family, collapser.puts(), result);
} catch (const std::bad_alloc&) {
  return Status::MemoryLimit("no DRAM to collapse operands");
}

}  // namespace braiddb
