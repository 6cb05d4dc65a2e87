#include "db/merge_context.h"

#include <algorithm>

#include "util/perf.h"

namespace braiddb {

const OperandRun* MergeContext::RunOf(const LogEntry& version) const {
  for (const auto& run : runs_) {
    if (version.sequence() >= run->oldest && version.sequence() <= run->newest->sequence()) return run.get();
  }
  return nullptr;
}

bool MergeContext::Settle() {
  if (!runs_.empty()) {
    std::erase_if(versions_, [this](const LogEntry* entry) {
      const OperandRun* const run = RunOf(*entry);
      return run != nullptr && entry->sequence() != run->newest->sequence();
    });
  }
  // Versions with the same number have equal results. Of these, the version that is no operand comes first.
  std::sort(versions_.begin(), versions_.end(), [](const LogEntry* a, const LogEntry* b) {
    return a->sequence() != b->sequence() ? a->sequence() > b->sequence() : a->is_operand() < b->is_operand();
  });
  bool complete = !met_dead_;
  size_t count = 0;
  for (size_t i = 0; i < versions_.size(); ++i) {
    if (count > 0 && versions_[count - 1]->sequence() == versions_[i]->sequence()) {
      if (versions_[count - 1]->is_obsolete()) versions_[count - 1] = versions_[i];
      continue;
    }
    if (count > 0 && !versions_[count - 1]->is_operand()) break;
    versions_[count++] = versions_[i];
  }
  versions_.resize(count);
  for (const LogEntry* entry : versions_) complete = complete && !entry->is_obsolete();
  return complete;
}

Status MergeContext::Apply(const MergeOperator& merge, Slice key, std::string* value, size_t* applied) const {
  *applied = 0;
  if (versions_.empty()) return Status::NotFound();
  const LogEntry* const oldest = versions_.back();
  if (versions_.size() == 1 && !oldest->is_operand()) {
    if (oldest->type() == EntryType::kDelete) return Status::NotFound();
    value->assign(oldest->value());
    return Status::OK();
  }
  std::vector<Slice> operands;
  operands.reserve(versions_.size());
  for (auto version = versions_.rbegin(); version != versions_.rend(); ++version) {
    if (!(*version)->is_operand()) continue;
    const OperandRun* const run = RunOf(**version);
    operands.push_back(run == nullptr ? (*version)->value() : Slice(run->operand));
  }
  const Slice existing = oldest->value();
  *applied = operands.size();
  perf::Add(&PerfContext::internal_merge_count, operands.size());
  const perf::Timer timed(&PerfContext::merge_operator_time_nanos);
  return FullMerge(merge, key, oldest->type() == EntryType::kPut ? &existing : nullptr, operands, value);
}

}  // namespace braiddb
