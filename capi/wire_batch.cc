#include "capi/wire_batch.h"

#include <bit>
#include <cstring>

#include "braiddb/column_family.h"
#include "capi/batch.h"

namespace braiddb::capi {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are in memory");

constexpr size_t kCountAt = sizeof(uint64_t);
constexpr size_t kHeaderSize = kCountAt + sizeof(uint32_t);

// As RocksDB numbers its types of values; those that are left out are not in batches of programs, or need what is not here.
enum Tag : uint8_t {
  kDeletion = 0x0,
  kValue = 0x1,
  kMerge = 0x2,
  kLogData = 0x3,
  kFamilyDeletion = 0x4,
  kFamilyValue = 0x5,
  kFamilyMerge = 0x6,
  kSingleDeletion = 0x7,
  kFamilySingleDeletion = 0x8,
  kNoop = 0xd,
  kFamilyRangeDeletion = 0xe,
  kRangeDeletion = 0xf,
};

void AppendVarint(std::string* out, uint32_t number) {
  for (; number >= 0x80; number >>= 7) out->push_back(static_cast<char>(number | 0x80));
  out->push_back(static_cast<char>(number));
}

void AppendString(std::string* out, Slice bytes) {
  AppendVarint(out, static_cast<uint32_t>(bytes.size()));
  out->append(bytes);
}

bool TakeVarint(Slice* rest, uint32_t* number) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift <= 28; shift += 7) {
    if (rest->empty()) return false;
    const auto byte = static_cast<uint8_t>(rest->front());
    rest->remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte >= 0x80) continue;
    *number = static_cast<uint32_t>(value);
    return true;
  }
  return false;
}

bool TakeString(Slice* rest, Slice* bytes) {
  uint32_t length = 0;
  if (!TakeVarint(rest, &length) || rest->size() < length) return false;
  *bytes = rest->substr(0, length);
  rest->remove_prefix(length);
  return true;
}

class Encoder final : public WriteBatch::Handler {
 public:
  Encoder(const WireNotes& notes, std::string* out) : notes_(notes), out_(out) {}

  void Put(Slice, Slice) override {}
  void Delete(Slice) override {}
  void Merge(Slice, Slice) override {}
  Status PutCF(uint32_t family, Slice key, Slice value) override {
    Begin(family, kValue, kFamilyValue);
    AppendString(out_, key);
    AppendString(out_, value);
    return Status::OK();
  }
  Status DeleteCF(uint32_t family, Slice key) override {
    if (const bool is_single = AppendNotes(); is_single) {
      AppendTag(family, kSingleDeletion, kFamilySingleDeletion);
    } else {
      AppendTag(family, kDeletion, kFamilyDeletion);
    }
    AppendString(out_, key);
    return Status::OK();
  }
  Status MergeCF(uint32_t family, Slice key, Slice operand) override {
    Begin(family, kMerge, kFamilyMerge);
    AppendString(out_, key);
    AppendString(out_, operand);
    return Status::OK();
  }
  Status DeleteRangeCF(uint32_t family, Slice start, Slice limit) override {
    Begin(family, kRangeDeletion, kFamilyRangeDeletion);
    AppendString(out_, start);
    AppendString(out_, limit);
    return Status::OK();
  }
  // What comes before the next update. True: that is a single deletion.
  bool AppendNotes() {
    bool is_single = false;
    for (; next_note_ < notes_.notes.size() && notes_.notes[next_note_].before <= updates_; ++next_note_) {
      const WireNotes::Note& note = notes_.notes[next_note_];
      if (note.kind == WireNotes::Kind::kSingleDelete) is_single = true;
      if (note.kind == WireNotes::Kind::kNoop) out_->push_back(static_cast<char>(kNoop));
      if (note.kind != WireNotes::Kind::kLogData) continue;
      out_->push_back(static_cast<char>(kLogData));
      AppendString(out_, note.data);
    }
    ++updates_;
    return is_single;
  }

 private:
  void Begin(uint32_t family, Tag of_default, Tag of_family) {
    AppendNotes();
    AppendTag(family, of_default, of_family);
  }
  void AppendTag(uint32_t family, Tag of_default, Tag of_family) {
    out_->push_back(static_cast<char>(family == 0 ? of_default : of_family));
    if (family != 0) AppendVarint(out_, family);
  }

  const WireNotes& notes_;
  std::string* const out_;
  size_t next_note_ = 0;
  uint32_t updates_ = 0;
};

struct Record {
  Tag tag;
  uint32_t family;
  Slice first;
  Slice second;
};

// Takes the first record off `rest`. Null if all is well, otherwise what is wrong, in RocksDB's words.
const char* TakeRecord(Slice* rest, Record* record) {
  const auto tag = static_cast<Tag>(static_cast<uint8_t>(rest->front()));
  rest->remove_prefix(1);
  *record = {tag, 0, {}, {}};
  const bool in_family = tag == kFamilyDeletion || tag == kFamilyValue || tag == kFamilyMerge || tag == kFamilySingleDeletion ||
                         tag == kFamilyRangeDeletion;
  const bool has_family = !in_family || TakeVarint(rest, &record->family);
  switch (tag) {
    case kValue:
    case kFamilyValue:
      return has_family && TakeString(rest, &record->first) && TakeString(rest, &record->second) ? nullptr : "bad WriteBatch Put";
    case kDeletion:
    case kFamilyDeletion:
    case kSingleDeletion:
    case kFamilySingleDeletion:
      return has_family && TakeString(rest, &record->first) ? nullptr : "bad WriteBatch Delete";
    case kMerge:
    case kFamilyMerge:
      return has_family && TakeString(rest, &record->first) && TakeString(rest, &record->second) ? nullptr
                                                                                                 : "bad WriteBatch Merge";
    case kRangeDeletion:
    case kFamilyRangeDeletion:
      return has_family && TakeString(rest, &record->first) && TakeString(rest, &record->second) ? nullptr
                                                                                                 : "bad WriteBatch DeleteRange";
    case kLogData:
      return TakeString(rest, &record->first) ? nullptr : "bad WriteBatch Blob";
    case kNoop:
      return nullptr;
  }
  return "unknown WriteBatch tag";
}

Status AddRecord(const Record& record, WriteBatch* batch, WireNotes* notes) {
  if (record.family >= kMaxColumnFamilies) return Status::InvalidArgument("Invalid column family specified in write batch");
  const bool is_range = record.tag == kRangeDeletion || record.tag == kFamilyRangeDeletion;
  Status status;
  if (is_range) status = BoundsFit(record.first, record.second);
  if (!is_range && record.tag != kLogData) status = Fits(record.first, record.second);
  if (!status.ok()) return status;
  switch (record.tag) {
    case kValue:
    case kFamilyValue:
      batch->PutCF(record.family, record.first, record.second);
      break;
    case kSingleDeletion:
    case kFamilySingleDeletion:
      notes->notes.push_back({batch->Count(), WireNotes::Kind::kSingleDelete, {}});
      [[fallthrough]];
    case kDeletion:
    case kFamilyDeletion:
      batch->DeleteCF(record.family, record.first);
      break;
    case kMerge:
    case kFamilyMerge:
      batch->MergeCF(record.family, record.first, record.second);
      notes->merges = true;
      break;
    case kRangeDeletion:
    case kFamilyRangeDeletion:
      batch->DeleteRangeCF(record.family, record.first, record.second);
      break;
    case kLogData:
      notes->notes.push_back({batch->Count(), WireNotes::Kind::kLogData, std::string(record.first)});
      break;
    case kNoop:
      notes->notes.push_back({batch->Count(), WireNotes::Kind::kNoop, {}});
      break;
  }
  return Status::OK();
}

}  // namespace

std::string EncodeBatch(const WriteBatch& batch, const WireNotes& notes) {
  std::string out;
  out.reserve(kHeaderSize + batch.ApproximateSize());
  const uint32_t count = batch.Count();
  out.append(reinterpret_cast<const char*>(&notes.sequence), sizeof notes.sequence);
  out.append(reinterpret_cast<const char*>(&count), sizeof count);
  Encoder encoder(notes, &out);
  const Status ignored = batch.Iterate(&encoder);  // it was checked when it was made
  (void)ignored;
  encoder.AppendNotes();
  return out;
}

Status DecodeBatch(Slice data, WriteBatch* batch, WireNotes* notes) {
  if (data.size() < kHeaderSize) return Status::Corruption("malformed WriteBatch (too small)");
  std::memcpy(&notes->sequence, data.data(), sizeof notes->sequence);
  Record record;
  for (Slice rest = data.substr(kHeaderSize); !rest.empty();) {
    if (const char* const error = TakeRecord(&rest, &record)) return Status::Corruption(error);
    if (Status status = AddRecord(record, batch, notes); !status.ok()) return status;
  }
  return batch->Count() == CountOf(data) ? Status::OK() : Status::Corruption("WriteBatch has wrong count");
}

uint32_t CountOf(Slice data) {
  uint32_t count = 0;
  if (data.size() >= kHeaderSize) std::memcpy(&count, data.data() + kCountAt, sizeof count);
  return count;
}

}  // namespace braiddb::capi
