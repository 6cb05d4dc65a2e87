// Calls with timestamps on a database whose families have none.
#include "db/timestamped_entry.h"

namespace braiddb {
namespace {

Status Refused(const ColumnFamilyHandle* family) {
  if (family == nullptr) return Status::InvalidArgument("the column family handle is null");
  return TakesNoTimestamp(family->GetName());
}

}  // namespace

Status DB::PutAt(const WriteOptions&, ColumnFamilyHandle* family, Slice, Slice, Slice) { return Refused(family); }
Status DB::DeleteAt(const WriteOptions&, ColumnFamilyHandle* family, Slice, Slice) { return Refused(family); }
Status DB::SingleDeleteAt(const WriteOptions&, ColumnFamilyHandle* family, Slice, Slice) { return Refused(family); }
Status DB::DeleteRangeAt(const WriteOptions&, ColumnFamilyHandle* family, Slice, Slice, Slice) { return Refused(family); }

Status DB::GetAt(const ReadOptions& options, ColumnFamilyHandle* family, Slice key, std::string* value, std::string* timestamp) {
  if (timestamp != nullptr) timestamp->clear();
  return Get(options, family, key, value);
}

std::vector<Status> DB::MultiGetAt(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                                   const std::vector<Slice>& keys, std::vector<std::string>* values,
                                   std::vector<std::string>* timestamps) {
  if (timestamps != nullptr) timestamps->assign(keys.size(), std::string());
  return MultiGet(options, families, keys, values);
}

Status DB::IncreaseFullHistoryTsLow(ColumnFamilyHandle*, Slice) {
  return Status::InvalidArgument("Timestamp is not enabled in this column family");  // RocksDB's text
}

Status DB::GetFullHistoryTsLow(ColumnFamilyHandle*, std::string* ts_low) {
  ts_low->clear();
  return Status::InvalidArgument("Timestamp is not enabled in this column family");
}

}  // namespace braiddb
