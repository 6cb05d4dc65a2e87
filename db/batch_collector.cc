#include "db/batch_collector.h"

#include <string>

#include "db/write_limits.h"
#include "log/log_writer.h"

namespace braiddb {
namespace {

Status NoSuchFamily(uint32_t family) {
  return Status::InvalidArgument("the batch writes to column family " + std::to_string(family) +
                                 ", which does not exist; create the family, or take its updates out of the batch");
}

Status ReservedFamily(uint32_t family) {
  return Status::InvalidArgument("the batch writes to column family " + std::to_string(family) +
                                 ", which holds the database's own records; take these updates out of the batch");
}

}  // namespace

Status BatchCollector::PutCF(uint32_t family, Slice key, Slice value) { return AddUsers(EntryType::kPut, family, key, value); }

Status BatchCollector::DeleteCF(uint32_t family, Slice key) { return AddUsers(EntryType::kDelete, family, key, Slice()); }

Status BatchCollector::MergeCF(uint32_t family, Slice key, Slice operand) {
  return AddUsers(EntryType::kMerge, family, key, operand);
}

Status BatchCollector::DeleteRangeCF(uint32_t family, Slice begin, Slice end) {
  if (Skips(family)) return Status::OK();
  if (ranges_ == nullptr) ranges_ = std::make_unique<RangeUpdate>(db_);
  std::string_view record[2];
  bool is_empty = false;
  Status status = ranges_->Add(family, begin, end, thread_.updates.size(), record, &is_empty);
  if (!status.ok() || is_empty) return status;
  return Take(EntryType::kPut, ranges_->family(), record[0], record[1]);
}

bool BatchCollector::Skips(uint32_t family) {
  if (__builtin_expect(!ignores_missing_, 1) || family == 0) return false;
  const Family* const known = families_.Find(family);
  const bool is_missing =
      known == nullptr || known->dropped.load(std::memory_order_seq_cst) || (!families_.takes_hidden && known->is_hidden);
  skipped_ += is_missing ? 1 : 0;
  return is_missing;
}

Status BatchCollector::AddUsers(EntryType type, uint32_t family, Slice key, Slice value) {
  if (Skips(family)) return Status::OK();
  const Family* const records = families_.of_ranges->load(std::memory_order_acquire);
  if (records != nullptr && family == records->id) {
    return Status::InvalidArgument("the batch writes to column family " + std::to_string(family) +
                                   ", in which the database keeps deleted ranges; use DeleteRange");
  }
  return Add(type, family, key, value);
}

// The family is loaded once: a concurrent drop may remove it from the table at any time. The object exists until the close.
Status BatchCollector::Add(EntryType type, uint32_t family, Slice key, Slice value) {
  const Family* const known = families_.Find(family);
  if (known == nullptr) return NoSuchFamily(family);
  if (known->is_hidden) return families_.takes_hidden ? Take(type, family, key, value) : ReservedFamily(family);
  if (!families_.takes_hidden && type == EntryType::kMerge && known->options.merge_operator == nullptr)
    return Status::InvalidArgument("Merge requires `ColumnFamilyOptions::merge_operator != nullptr`");  // RocksDB's text
  if (Status status = Take(type, family, key, value); !status.ok()) return status;
  shown_ = thread_.updates.size();
  return Status::OK();
}

Status BatchCollector::Take(EntryType type, uint32_t family, Slice key, Slice value) {
  if (!AreSizesValid(key, value)) return CheckSizes(key, value);
  thread_.updates.push_back({type, key, value, RandomHeight(thread_.random->Next()), family});
  return Status::OK();
}

}  // namespace braiddb
