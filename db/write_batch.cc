#include "braiddb/write_batch.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "braiddb/column_family.h"

namespace braiddb {

namespace {

static_assert(std::endian::native == std::endian::little, "lengths are copied as they are in memory");

// The types with "At" are of updates at a timestamp.
enum class Type : uint8_t {
  kDelete = 0,
  kPut = 1,
  kMerge = 2,
  kDeleteRange = 3,
  kDeleteAt = 0x20,
  kPutAt = 0x21,
  kDeleteRangeAt = 0x23,
  kSingleDeleteAt = 0x24,
};
// This bit of the type says that the id of a family follows the header.
constexpr uint8_t kInFamily = 0x10;
// Types from here on: the length of a timestamp follows the header and the id, and the timestamp follows the key.
constexpr uint8_t kAtTimestamp = 0x20;

// LAYOUT of an update: type (1 byte), key length (4), value length (4), family if it is not the default one (4), length of the
// timestamp if there is one (4), key, value.
constexpr size_t kKeyLengthAt = 1;
constexpr size_t kValueLengthAt = kKeyLengthAt + sizeof(uint32_t);
constexpr size_t kHeaderSize = kValueLengthAt + sizeof(uint32_t);

struct Update {
  Type type;
  uint32_t family;
  Slice key;
  Slice value;
  Slice timestamp;  // of an update at a timestamp
};

uint32_t ReadLength(const char* at) {
  uint32_t length;
  std::memcpy(&length, at, sizeof length);
  return length;
}

void Append(std::string* rep, uint8_t type, uint32_t family, Slice key, Slice value) {
  const auto key_length = static_cast<uint32_t>(key.size());
  const auto value_length = static_cast<uint32_t>(value.size());
  char header[kHeaderSize + sizeof family];
  const size_t header_size = kHeaderSize + (family == 0 ? 0 : sizeof family);
  header[0] = static_cast<char>(type | (family == 0 ? 0 : kInFamily));
  std::memcpy(header + kHeaderSize, &family, sizeof family);
  std::memcpy(header + kKeyLengthAt, &key_length, sizeof key_length);
  std::memcpy(header + kValueLengthAt, &value_length, sizeof value_length);
  // If there is no memory, the batch is unchanged. Key and value may lie in the batch itself: the old bytes are kept until the
  // new ones are complete.
  const size_t size = rep->size() + header_size + key.size() + value.size();
  if (size <= rep->capacity()) {
    rep->append(header, header_size).append(key).append(value);
    return;
  }
  std::string grown;
  grown.reserve(std::max(size, 2 * rep->capacity()));
  grown.append(*rep).append(header, header_size).append(key).append(value);
  rep->swap(grown);
}

// The same for an update at a timestamp.
void AppendAt(std::string* rep, uint8_t type, uint32_t family, Slice key, Slice timestamp, Slice value) {
  const uint32_t numbers[] = {static_cast<uint32_t>(key.size() + timestamp.size()), static_cast<uint32_t>(value.size()), family,
                              static_cast<uint32_t>(timestamp.size())};
  std::string record(1, static_cast<char>(type | (family == 0 ? 0 : kInFamily)));
  const auto append = [&record](const uint32_t& number) { record.append(reinterpret_cast<const char*>(&number), sizeof number); };
  append(numbers[0]);
  append(numbers[1]);
  if (family != 0) append(numbers[2]);
  append(numbers[3]);
  record.append(key).append(timestamp).append(value);
  rep->append(record);
}

// Takes the first update at a timestamp off `rest`. As TakeUpdate.
[[gnu::noinline]] const char* TakeUpdateAt(Slice* rest, Update* update) {
  const auto first = static_cast<uint8_t>(rest->front());
  const bool in_family = (first & kInFamily) != 0;
  const size_t header_size = kHeaderSize + (in_family ? sizeof(uint32_t) : 0) + sizeof(uint32_t);
  if (rest->size() < header_size) return "write batch: an update is cut short";
  update->type = static_cast<Type>(first & ~kInFamily);
  update->family = in_family ? ReadLength(rest->data() + kHeaderSize) : 0;
  if (in_family && (update->family == 0 || update->family >= kMaxColumnFamilies))
    return "write batch: an impossible column family";
  const uint64_t key_length = ReadLength(rest->data() + kKeyLengthAt);
  const uint64_t value_length = ReadLength(rest->data() + kValueLengthAt);
  const uint64_t timestamp_length = ReadLength(rest->data() + header_size - sizeof(uint32_t));
  constexpr auto kMergeAt = static_cast<Type>(static_cast<uint8_t>(Type::kMerge) | kAtTimestamp);  // does not exist
  if (update->type > Type::kSingleDeleteAt || update->type == kMergeAt) return "write batch: unknown type of update";
  if (timestamp_length > key_length) return "write batch: a timestamp is longer than its key";
  if (rest->size() - header_size < key_length + value_length) return "write batch: a key or value is cut short";
  update->key = rest->substr(header_size, key_length - timestamp_length);
  update->timestamp = rest->substr(header_size + key_length - timestamp_length, timestamp_length);
  update->value = rest->substr(header_size + key_length, value_length);
  rest->remove_prefix(header_size + key_length + value_length);
  return nullptr;
}

// Takes the first update off `rest`. Null if the update is valid, else the description of the error.
const char* TakeUpdate(Slice* rest, Update* update) {
  if (rest->size() < kHeaderSize) return "write batch: an update is cut short";
  const auto first = static_cast<uint8_t>(rest->front());
  const bool in_family = (first & kInFamily) != 0;
  const size_t header_size = kHeaderSize + (in_family ? sizeof update->family : 0);
  if (rest->size() < header_size) return "write batch: an update is cut short";
  update->type = static_cast<Type>(first & ~kInFamily);
  update->family = in_family ? ReadLength(rest->data() + kHeaderSize) : 0;
  if (in_family && (update->family == 0 || update->family >= kMaxColumnFamilies))
    return "write batch: an impossible column family";
  const uint64_t key_length = ReadLength(rest->data() + kKeyLengthAt);
  const uint64_t value_length = ReadLength(rest->data() + kValueLengthAt);
  if (update->type > Type::kDeleteRange)
    return (first & kAtTimestamp) != 0 ? TakeUpdateAt(rest, update) : "write batch: unknown type of update";
  if (update->type == Type::kDelete && value_length != 0) return "write batch: a deletion has a value";
  if (rest->size() - header_size < key_length + value_length) return "write batch: a key or value is cut short";
  update->key = rest->substr(header_size, key_length);
  update->value = rest->substr(header_size + key_length, value_length);
  rest->remove_prefix(header_size + key_length + value_length);
  return nullptr;
}

}  // namespace

void WriteBatch::Put(Slice key, Slice value) { PutCF(0, key, value); }

void WriteBatch::Delete(Slice key) { DeleteCF(0, key); }

void WriteBatch::Merge(Slice key, Slice operand) { MergeCF(0, key, operand); }

void WriteBatch::DeleteRange(Slice begin, Slice end) { DeleteRangeCF(0, begin, end); }

void WriteBatch::Put(const ColumnFamilyHandle* family, Slice key, Slice value) {
  PutCF(family == nullptr ? 0 : family->GetID(), key, value);
}

void WriteBatch::Delete(const ColumnFamilyHandle* family, Slice key) { DeleteCF(family == nullptr ? 0 : family->GetID(), key); }

void WriteBatch::Merge(const ColumnFamilyHandle* family, Slice key, Slice operand) {
  MergeCF(family == nullptr ? 0 : family->GetID(), key, operand);
}

void WriteBatch::DeleteRange(const ColumnFamilyHandle* family, Slice begin, Slice end) {
  DeleteRangeCF(family == nullptr ? 0 : family->GetID(), begin, end);
}

void WriteBatch::PutAt(const ColumnFamilyHandle* family, Slice key, Slice timestamp, Slice value) {
  PutAtCF(family == nullptr ? 0 : family->GetID(), key, timestamp, value);
}

void WriteBatch::DeleteAt(const ColumnFamilyHandle* family, Slice key, Slice timestamp) {
  DeleteAtCF(family == nullptr ? 0 : family->GetID(), key, timestamp);
}

void WriteBatch::SingleDeleteAt(const ColumnFamilyHandle* family, Slice key, Slice timestamp) {
  SingleDeleteAtCF(family == nullptr ? 0 : family->GetID(), key, timestamp);
}

void WriteBatch::DeleteRangeAt(const ColumnFamilyHandle* family, Slice begin, Slice end, Slice timestamp) {
  DeleteRangeAtCF(family == nullptr ? 0 : family->GetID(), begin, end, timestamp);
}

void WriteBatch::PutAtCF(uint32_t family, Slice key, Slice timestamp, Slice value) {
  AddAt(static_cast<uint8_t>(Type::kPutAt), family, key, timestamp, value);
}

void WriteBatch::DeleteAtCF(uint32_t family, Slice key, Slice timestamp) {
  AddAt(static_cast<uint8_t>(Type::kDeleteAt), family, key, timestamp, {});
}

void WriteBatch::SingleDeleteAtCF(uint32_t family, Slice key, Slice timestamp) {
  AddAt(static_cast<uint8_t>(Type::kSingleDeleteAt), family, key, timestamp, {});
}

void WriteBatch::DeleteRangeAtCF(uint32_t family, Slice begin, Slice end, Slice timestamp) {
  AddAt(static_cast<uint8_t>(Type::kDeleteRangeAt), family, begin, timestamp, end);
}

void WriteBatch::PutCF(uint32_t family, Slice key, Slice value) { Add(static_cast<uint8_t>(Type::kPut), family, key, value); }

void WriteBatch::DeleteCF(uint32_t family, Slice key) { Add(static_cast<uint8_t>(Type::kDelete), family, key, {}); }

void WriteBatch::MergeCF(uint32_t family, Slice key, Slice operand) {
  Add(static_cast<uint8_t>(Type::kMerge), family, key, operand);
}

void WriteBatch::DeleteRangeCF(uint32_t family, Slice begin, Slice end) {
  Add(static_cast<uint8_t>(Type::kDeleteRange), family, begin, end);
}

bool WriteBatch::Fits(Slice key, Slice value) { return key.size() <= UINT32_MAX && value.size() <= UINT32_MAX; }

void WriteBatch::Add(uint8_t type, uint32_t family, Slice key, Slice value) {
  if (__builtin_expect(!Fits(key, value), 0)) {
    is_incomplete_ = true;
    return;
  }
  Append(&rep_, type, family, key, value);
  ++count_;
}

void WriteBatch::AddAt(uint8_t type, uint32_t family, Slice key, Slice timestamp, Slice value) {
  if (key.size() > UINT32_MAX / 2 || timestamp.size() > UINT32_MAX / 2 || value.size() > UINT32_MAX) {
    is_incomplete_ = true;
    return;
  }
  AppendAt(&rep_, type, family, key, timestamp, value);
  ++count_;
}

Status WriteBatch::CheckComplete() const {
  if (__builtin_expect(!is_incomplete_, 1)) return Status::OK();
  return Status::InvalidArgument("a key or a value of the batch has 4 GiB or more; write smaller ones");
}

bool WriteBatch::HasDeleteRange() const {
  Update update;
  for (Slice rest = rep_; !rest.empty() && TakeUpdate(&rest, &update) == nullptr;) {
    if (update.type == Type::kDeleteRange || update.type == Type::kDeleteRangeAt) return true;
  }
  return false;
}

namespace {

Status OtherFamily(uint32_t family) {
  return Status::NotSupported("the batch has updates of column family " + std::to_string(family) +
                              "; only the default column family is possible here");
}

}  // namespace

Status WriteBatch::Handler::PutCF(uint32_t family, Slice key, Slice value) {
  if (family != 0) return OtherFamily(family);
  Put(key, value);
  return Status::OK();
}

Status WriteBatch::Handler::DeleteCF(uint32_t family, Slice key) {
  if (family != 0) return OtherFamily(family);
  Delete(key);
  return Status::OK();
}

Status WriteBatch::Handler::MergeCF(uint32_t family, Slice key, Slice operand) {
  if (family != 0) return OtherFamily(family);
  Merge(key, operand);
  return Status::OK();
}

Status WriteBatch::Handler::DeleteRangeCF(uint32_t, Slice, Slice) {
  return Status::InvalidArgument("DeleteRangeCF not implemented");  // in RocksDB's words
}

namespace {

Status NoTimestamps(uint32_t family) {
  return Status::InvalidArgument("the batch has an update at a timestamp, and column family " + std::to_string(family) +
                                 " does not enable timestamp; use updates without timestamps");
}

}  // namespace

Status WriteBatch::Handler::PutAtCF(uint32_t family, Slice, Slice, Slice) { return NoTimestamps(family); }
Status WriteBatch::Handler::DeleteAtCF(uint32_t family, Slice, Slice) { return NoTimestamps(family); }
Status WriteBatch::Handler::SingleDeleteAtCF(uint32_t family, Slice, Slice) { return NoTimestamps(family); }
Status WriteBatch::Handler::DeleteRangeAtCF(uint32_t family, Slice, Slice, Slice) { return NoTimestamps(family); }

void WriteBatch::Clear() {
  rep_.clear();
  count_ = 0;
  is_incomplete_ = false;
  save_points_.clear();
}

void WriteBatch::SetSavePoint() { save_points_.push_back({rep_.size(), count_, is_incomplete_}); }

Status WriteBatch::RollbackToSavePoint() {
  if (save_points_.empty()) return Status::NotFound("no save point was set");
  rep_.resize(save_points_.back().size);
  count_ = save_points_.back().count;
  is_incomplete_ = save_points_.back().is_incomplete;
  save_points_.pop_back();
  return Status::OK();
}

Status WriteBatch::PopSavePoint() {
  if (save_points_.empty()) return Status::NotFound("no save point was set");
  save_points_.pop_back();
  return Status::OK();
}

Status WriteBatch::Iterate(Handler* handler) const {
  const Status status = CheckComplete();
  return status.ok() ? IterateData(rep_, handler) : status;
}

Status WriteBatch::IterateData(Slice data, Handler* handler) {
  Slice rest = data;
  Update update;
  while (!rest.empty()) {
    if (const char* error = TakeUpdate(&rest, &update)) return Status::Corruption(error);
    Status status;
    switch (update.type) {
      case Type::kPut:
        status = handler->PutCF(update.family, update.key, update.value);
        break;
      case Type::kDelete:
        status = handler->DeleteCF(update.family, update.key);
        break;
      case Type::kMerge:
        status = handler->MergeCF(update.family, update.key, update.value);
        break;
      case Type::kDeleteRange:
        status = handler->DeleteRangeCF(update.family, update.key, update.value);
        break;
      case Type::kPutAt:
        status = handler->PutAtCF(update.family, update.key, update.timestamp, update.value);
        break;
      case Type::kDeleteAt:
        status = handler->DeleteAtCF(update.family, update.key, update.timestamp);
        break;
      case Type::kSingleDeleteAt:
        status = handler->SingleDeleteAtCF(update.family, update.key, update.timestamp);
        break;
      case Type::kDeleteRangeAt:
        status = handler->DeleteRangeAtCF(update.family, update.key, update.value, update.timestamp);
        break;
    }
    if (!status.ok()) return status;
  }
  return Status::OK();
}

Status WriteBatch::FromData(Slice data, WriteBatch* batch) {
  uint32_t count = 0;
  Update update;
  for (Slice rest = data; !rest.empty(); ++count) {
    if (const char* error = TakeUpdate(&rest, &update)) return Status::Corruption(error);
  }
  batch->rep_.assign(data);
  batch->count_ = count;
  batch->is_incomplete_ = false;
  batch->save_points_.clear();
  return Status::OK();
}

}  // namespace braiddb
