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

// RocksDB's numbers of value types. The missing types never occur in batches of programs, or need features that BraidDB lacks.
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

// Appends the records of the updates, and of the notes before `note_limit`.
class Encoder final : public WriteBatch::Handler {
 public:
  Encoder(const WireNotes& notes, uint32_t updates, size_t next_note, size_t note_limit, std::string* out)
      : notes_(notes), note_limit_(note_limit), out_(out), next_note_(next_note), updates_(updates) {}

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
    const bool is_single = AppendNotes();
    ++updates_;
    is_single ? AppendTag(family, kSingleDeletion, kFamilySingleDeletion) : AppendTag(family, kDeletion, kFamilyDeletion);
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
  // A timestamp is a part of the key. It follows the key in memory.
  static Slice Together(Slice key, Slice timestamp) { return {key.data(), key.size() + timestamp.size()}; }
  Status PutAtCF(uint32_t family, Slice key, Slice timestamp, Slice value) override {
    return PutCF(family, Together(key, timestamp), value);
  }
  Status DeleteAtCF(uint32_t family, Slice key, Slice timestamp) override {
    Begin(family, kDeletion, kFamilyDeletion);
    AppendString(out_, Together(key, timestamp));
    return Status::OK();
  }
  Status SingleDeleteAtCF(uint32_t family, Slice key, Slice timestamp) override {
    Begin(family, kSingleDeletion, kFamilySingleDeletion);
    AppendString(out_, Together(key, timestamp));
    return Status::OK();
  }
  Status DeleteRangeAtCF(uint32_t family, Slice start, Slice limit, Slice timestamp) override {
    return DeleteRangeCF(family, Together(start, timestamp), std::string(limit).append(timestamp));
  }
  // Appends the notes before the next update. Returns true if the next update is a single deletion.
  bool AppendNotes() {
    bool is_single = false;
    for (; next_note_ < note_limit_ && notes_.notes[next_note_].before <= updates_; ++next_note_) {
      const WireNotes::Note& note = notes_.notes[next_note_];
      if (note.kind == WireNotes::Kind::kSingleDelete) is_single = true;
      if (note.kind == WireNotes::Kind::kNoop) out_->push_back(static_cast<char>(kNoop));
      if (note.kind != WireNotes::Kind::kLogData) continue;
      out_->push_back(static_cast<char>(kLogData));
      AppendString(out_, note.data);
    }
    return is_single;
  }

 private:
  void Begin(uint32_t family, Tag of_default, Tag of_family) {
    AppendNotes();
    ++updates_;
    AppendTag(family, of_default, of_family);
  }
  void AppendTag(uint32_t family, Tag of_default, Tag of_family) {
    out_->push_back(static_cast<char>(family == 0 ? of_default : of_family));
    if (family != 0) AppendVarint(out_, family);
  }

  const WireNotes& notes_;
  const size_t note_limit_;
  std::string* const out_;
  size_t next_note_;
  uint32_t updates_;
};

struct Record {
  Tag tag;
  uint32_t family;
  Slice first;
  Slice second;
};

// Removes the first record from `rest`. Returns null, or RocksDB's text for the error.
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

Slice WireForm::Update(const WriteBatch& batch, const WireNotes& notes) {
  const std::lock_guard lock(mutex_);
  const Position end{batch.Data().size(), batch.Count(), notes.notes.size(), 0};
  if (end.batch_bytes < end_.batch_bytes || end.notes < end_.notes) {
    end_ = {};
    for (Position& point : save_points_) point.form_bytes = 0;
  }
  if (end_.form_bytes == 0) {
    form_.reserve(kHeaderSize + batch.ApproximateSize());
    form_.assign(kHeaderSize, '\0');
    end_ = {0, 0, 0, kHeaderSize};
  }
  // Save points are ordered: those already encoded come first.
  size_t next = save_points_.size();
  while (next > 0 && save_points_[next - 1].form_bytes == 0) --next;
  for (; next < save_points_.size(); ++next) {
    EncodeUpTo(batch, notes, save_points_[next]);
    save_points_[next].form_bytes = end_.form_bytes;
  }
  EncodeUpTo(batch, notes, end);
  char header[kHeaderSize];
  std::memcpy(header, &notes.sequence, sizeof notes.sequence);
  std::memcpy(header + kCountAt, &end.updates, sizeof end.updates);
  // Another thread may read an unchanged form, so unchanged bytes are not written.
  if (std::memcmp(form_.data(), header, sizeof header) != 0) std::memcpy(form_.data(), header, sizeof header);
  return Slice(form_.data(), end_.form_bytes);
}

void WireForm::EncodeUpTo(const WriteBatch& batch, const WireNotes& notes, const Position& end) {
  if (end.batch_bytes == end_.batch_bytes && end.notes == end_.notes) return;
  form_.resize(end_.form_bytes);  // drops bytes of an interrupted or reverted call
  Encoder encoder(notes, end_.updates, end_.notes, end.notes, &form_);
  const Slice added = Slice(batch.Data()).substr(end_.batch_bytes, end.batch_bytes - end_.batch_bytes);
  const Status ignored = WriteBatch::IterateData(added, &encoder);  // checked when the batch was made
  (void)ignored;
  encoder.AppendNotes();
  end_ = {end.batch_bytes, end.updates, end.notes, form_.size()};
}

void WireForm::SetSavePoint(const WriteBatch& batch, const WireNotes& notes) {
  save_points_.push_back({batch.Data().size(), batch.Count(), notes.notes.size(), 0});
}

void WireForm::RollbackToSavePoint() {
  const Position point = save_points_.back();
  save_points_.pop_back();
  if (point.form_bytes != 0) end_ = point;
}

void WireForm::Restart() noexcept {
  end_ = {};
  save_points_.clear();
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
