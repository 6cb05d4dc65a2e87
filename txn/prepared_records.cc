#include "txn/prepared_records.h"

#include <algorithm>
#include <utility>

#include "db/db_impl.h"
#include "db/hidden_family.h"
#include "log/log_entry.h"
#include "util/mutant.h"

namespace braiddb {
namespace {

constexpr uint32_t kFormat = 1;
// Small enough to be relocated like any value. Large enough that the overhead per entry is negligible.
constexpr size_t kPartBytes = kCrashTest ? 512 : 64 << 10;
constexpr size_t kNumberBytes = sizeof(uint32_t);

void AppendNumber(uint32_t number, std::string* to) {
  for (int shift = 0; shift < 32; shift += 8) to->push_back(static_cast<char>(number >> shift));
}

bool TakeNumber(Slice* from, uint32_t* number) {
  if (from->size() < kNumberBytes) return false;
  *number = 0;
  for (size_t i = 0; i < kNumberBytes; ++i) *number |= static_cast<uint32_t>(static_cast<uint8_t>((*from)[i])) << (8 * i);
  from->remove_prefix(kNumberBytes);
  return true;
}

std::string KeyOf(const std::string& name, uint32_t part) {
  std::string key;
  key.push_back(static_cast<char>(name.size() >> 8));
  key.push_back(static_cast<char>(name.size()));
  key += name;
  for (int shift = 24; shift >= 0; shift -= 8) key.push_back(static_cast<char>(part >> shift));
  return key;
}

bool FromKey(Slice key, std::string* name, uint32_t* part) {
  if (key.size() < 2 + kNumberBytes) return false;
  const size_t bytes = static_cast<size_t>(static_cast<uint8_t>(key[0])) << 8 | static_cast<uint8_t>(key[1]);
  if (key.size() != 2 + bytes + kNumberBytes) return false;
  name->assign(key.substr(2, bytes));
  *part = 0;
  for (const char byte : key.substr(2 + bytes)) *part = *part << 8 | static_cast<uint8_t>(byte);
  return true;
}

std::string HeaderOf(const PreparedRecord::Families& families, uint32_t parts) {
  std::string header;
  AppendNumber(kFormat, &header);
  AppendNumber(parts, &header);
  AppendNumber(static_cast<uint32_t>(families.size()), &header);
  for (const auto& [id, name] : families) {
    AppendNumber(id, &header);
    AppendNumber(static_cast<uint32_t>(name.size()), &header);
    header += name;
  }
  return header;
}

// Parses the header and removes it from `from`.
bool TakeHeader(Slice* from, uint32_t* format, PreparedRecord* record) {
  uint32_t families = 0;
  if (!TakeNumber(from, format) || !TakeNumber(from, &record->parts) || !TakeNumber(from, &families)) return false;
  for (uint32_t i = 0; i < families; ++i) {
    uint32_t id = 0;
    uint32_t bytes = 0;
    if (!TakeNumber(from, &id) || !TakeNumber(from, &bytes) || from->size() < bytes) return false;
    record->families[id] = from->substr(0, bytes);
    from->remove_prefix(bytes);
  }
  return true;
}

// Upper bound for the log space of a batch. The exact size is unknown, because heights are drawn when the batch is written.
uint64_t LogBytesAtMost(const WriteBatch& batch) {
  struct Adder : WriteBatch::Handler {
    void Put(Slice, Slice) override {}
    void Delete(Slice) override {}
    void Merge(Slice, Slice) override {}
    Status PutCF(uint32_t, Slice key, Slice value) override { return Add(key, value); }
    Status DeleteCF(uint32_t, Slice key) override { return Add(key, {}); }
    Status MergeCF(uint32_t, Slice key, Slice operand) override { return Add(key, operand); }
    Status Add(Slice key, Slice value) {
      bytes += LogEntrySize(kMaxHeight, key.size(), value.size()) + kCacheLine;
      return Status::OK();
    }
    uint64_t bytes = 0;
  } adder;
  const Status ignored = batch.Iterate(&adder);
  (void)ignored;  // the transaction's own batch is well-formed
  return adder.bytes;
}

// Assembles the parts of a record in ascending order.
class Assembler {
 public:
  void Begin(std::string name) {
    record_ = {};
    record_.name = std::move(name);
    data_.clear();
    next_ = 0;
  }
  bool IsOf(const std::string& name) const { return next_ != 0 && record_.name == name; }
  void Add(uint32_t part, Slice value) {
    is_whole_ = (next_ == 0 || is_whole_) && part == next_;
    data_ += value;
    next_ = part + 1;
  }
  // Returns the record. If parts are missing, the record has `damage` set and has no updates that could be committed.
  const PreparedRecord& Finish() {
    Slice rest = data_;
    uint32_t format = 0;
    const bool has_header = is_whole_ && TakeHeader(&rest, &format, &record_);
    const bool is_known = has_header && format == kFormat;
    if (has_header && !is_known) {
      record_.damage = Status::NotSupported("prepared transaction '" + record_.name + "' is of a newer version of BraidDB");
    } else if (!is_known || record_.parts != next_ || !WriteBatch::FromData(rest, &record_.updates).ok()) {
      record_.damage = Status::Corruption("a part of the record of prepared transaction '" + record_.name +
                                          "' is missing; it can only be rolled back");
    }
    record_.parts = next_;
    return record_;
  }
  bool empty() const { return next_ == 0; }

 private:
  PreparedRecord record_;
  std::string data_;
  uint32_t next_ = 0;
  bool is_whole_ = true;
};

}  // namespace

Status PreparedRecords::FindFamily(bool make) {
  const std::lock_guard lock(mutex_);
  if (family_ != nullptr) return Status::OK();
  auto* const root = static_cast<DBImpl*>(base_);
  std::vector<std::unique_ptr<ColumnFamilyHandle>> all;
  Status status = root->GetAllFamilies(&all);
  if (!status.ok()) return status;
  for (auto& handle : all) {
    if (handle->GetName() == kPreparedFamilyName) family_ = std::move(handle);
  }
  if (family_ == nullptr && !make) return Status::NotFound();
  ColumnFamilyOptions options;
  options.l1 = base_->GetOptions().l1;
  if (family_ == nullptr) status = root->CreateAnyFamily(options, kPreparedFamilyName, &family_);
  if (status.ok()) family_id_.store(family_->GetID(), std::memory_order_release);
  return status;
}

void PreparedRecords::Close() {
  const std::lock_guard lock(mutex_);
  family_.reset();
}

Status PreparedRecords::Compact(const CompactRangeOptions& options) {
  ColumnFamilyHandle* family = nullptr;
  {
    const std::lock_guard lock(mutex_);
    family = family_.get();
  }
  return family == nullptr ? Status::OK() : base_->CompactRange(options, family, nullptr, nullptr);
}

Status PreparedRecords::Load(const std::function<Status(const PreparedRecord& record)>& found) {
  Status status = FindFamily(false);
  if (!status.ok()) return status.IsNotFound() ? Status::OK() : status;
  ReadOptions options;
  options.verify_checksums = true;
  const auto iterator = base_->NewIterator(options, family_.get());
  Assembler assembler;
  for (iterator->SeekToFirst(); iterator->Valid() && status.ok(); iterator->Next()) {
    std::string name;
    uint32_t part = 0;
    if (!FromKey(iterator->key(), &name, &part))
      return Status::Corruption("the column family of prepared transactions has a key that is none of theirs");
    if (!assembler.IsOf(name)) {
      if (!assembler.empty()) status = found(assembler.Finish());
      assembler.Begin(std::move(name));
    }
    assembler.Add(part, iterator->value());
  }
  if (status.ok()) status = iterator->status();
  return status.ok() && !assembler.empty() ? found(assembler.Finish()) : status;
}

// ORDER: all parts in one batch. [CC-51]
Status PreparedRecords::Write(const std::string& name, const PreparedRecord::Families& families, const WriteBatch& updates,
                              uint32_t* parts) {
  const Slice data = updates.Data();
  const auto count = static_cast<uint32_t>(std::max<uint64_t>(1, (data.size() + kPartBytes - 1) / kPartBytes));
  const std::string header = HeaderOf(families, count);
  const uint64_t removal = count * (LogEntrySize(kMaxHeight, KeyOf(name, 0).size(), 0) + kCacheLine);
  if (std::max(LogBytesAtMost(updates) + removal, removal + header.size() + data.size()) > kMaxBatchSize)
    return Status::InvalidArgument("the transaction's updates may take more than 4 GiB of log; prepare smaller ones");
  if (family_id() == 0) {
    if (Status status = FindFamily(true); !status.ok()) return status;
  }
  const uint32_t family = family_id();
  WriteBatch batch;
  for (uint32_t part = 0; part < count; ++part) {
    const Slice own = data.substr(part * kPartBytes, kPartBytes);
    batch.PutCF(family, KeyOf(name, part), part == 0 ? Slice(header + std::string(own)) : own);
    if (BRAIDDB_MUTANT("prepared-in-parts")) {
      if (Status status = static_cast<DBImpl*>(base_)->WriteToAnyFamily(Synced(), batch); !status.ok()) return status;
      batch.Clear();
    }
  }
  *parts = count;
  return static_cast<DBImpl*>(base_)->WriteToAnyFamily(Synced(), batch);
}

void PreparedRecords::AddRemoval(const std::string& name, uint32_t parts, WriteBatch* batch) const {
  for (uint32_t part = 0; part < parts; ++part) batch->DeleteCF(family_id(), KeyOf(name, part));
}

}  // namespace braiddb
