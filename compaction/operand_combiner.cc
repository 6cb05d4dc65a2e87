#include "compaction/operand_combiner.h"

#include <utility>

#include "log/operands.h"
#include "util/check.h"

namespace braiddb {

std::span<const Slice> OperandCombiner::Combine(Slice key, std::span<const LogEntry* const> operands) {
  results_.clear();
  combined_.clear();
  combined_bytes_ = 0;
  while (!operands.empty()) {
    const size_t size = GroupSize(operands);
    AddGroup(key, operands.first(size));
    operands = operands.subspan(size);
  }
  return results_;
}

size_t OperandCombiner::GroupSize(std::span<const LogEntry* const> operands) const {
  size_t size = 1;
  size_t bytes = operands[0]->value().size();
  for (; size < operands.size() && size < kMaxOperands; ++size) {
    const LogEntry& older = *operands[size - 1];
    const LogEntry& newer = *operands[size];
    BRAIDDB_DCHECK(older.sequence() < newer.sequence());
    bytes += newer.value().size();
    if (bytes > kMaxGroupBytes || snapshots_.Visible(older.sequence(), newer.sequence())) break;
  }
  return size;
}

void OperandCombiner::AddGroup(Slice key, std::span<const LogEntry* const> group) {
  const size_t before = results_.size();
  for (const LogEntry* const operand : group) results_.push_back(operand->value());
  if (group.size() < 2 || combined_bytes_ >= kMaxResultBytes) return;
  std::string combined;
  const bool is_combined = PartialMerge(merge_, key, std::span<const Slice>(results_).subspan(before), &combined);
  if (!is_combined || combined.size() > kMaxGroupBytes) return;
  combined_bytes_ += combined.size();
  results_.resize(before);
  results_.emplace_back(combined_.emplace_back(std::move(combined)));
}

}  // namespace braiddb
