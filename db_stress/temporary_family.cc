#include "db_stress/temporary_family.h"

#include <memory>
#include <string>
#include <vector>

namespace braiddb::stress {

Violation TemporaryFamily::Verify(const ReadOptions& read) const {
  const auto iterator = store_->db()->NewIterator(read, store_->temporary(number_)->get());
  uint32_t count = 0;
  std::string first;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++count) {
    if (count == 0) first = iterator->value();
    if (iterator->value() != first) {
      return "shows a part of a batch: " + Printable(iterator->key()) + " has " + Printable(iterator->value()) +
             ", another key has " + Printable(first);
    }
  }
  if (!iterator->status().ok()) return Judge(iterator->status(), "iterator");
  if (count == 0 || count == kKeys) return std::nullopt;
  return std::to_string(count) + " keys of " + std::to_string(kKeys) + " are there";
}

Violation TemporaryFamily::Renew(const ReadOptions& read) {
  std::unique_ptr<ColumnFamilyHandle>& handle = *store_->temporary(number_);
  if (auto wrong = Judge(store_->db()->DropColumnFamily(handle.get()), "DropColumnFamily")) return wrong;
  if (auto wrong = Verify(read)) return "dropped: " + *wrong;
  const Status refused = store_->db()->Put({}, handle.get(), "key", "value");
  if (!refused.IsInvalidArgument()) return "a write to a family that was dropped: " + refused.ToString();
  const ColumnFamilyOptions options = handle->GetOptions();
  handle.reset();
  return Judge(store_->db()->CreateColumnFamily(options, Store::TemporaryName(number_), &handle), "CreateColumnFamily");
}

Violation TemporaryFamily::Use(const ReadOptions& read, const WriteOptions& write, Random* random, bool* renewed) {
  *renewed = false;
  if (auto wrong = Verify(read)) return wrong;
  ColumnFamilyHandle* const family = store_->temporary(number_)->get();
  switch (random->Uniform(8)) {
    case 0:
      *renewed = true;
      return Renew(read);
    case 1:
      return Judge(store_->db()->CompactRange({}, family, nullptr, nullptr), "CompactRange");
    default: {
      WriteBatch batch;
      const std::string value = std::to_string(random->Next()) + std::string(random->Uniform(300), 't');
      for (uint32_t i = 0; i < kKeys; ++i) batch.Put(family, "temporary" + std::to_string(i), value);
      return Judge(store_->db()->Write(write, batch), "Write");
    }
  }
}

}  // namespace braiddb::stress
