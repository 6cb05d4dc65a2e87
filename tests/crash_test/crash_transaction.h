// Prepared transactions in a campaign. An undecided one is, to the oracle, one more key of its lane, whose value says what it
// would write: so a prepare is a put of that key, and a commit the updates together with its deletion.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "braiddb/transaction.h"
#include "tests/crash_test/crash_database.h"
#include "tests/crash_test/crash_operation.h"

namespace braiddb::test {

inline std::string NameOfPrepared(size_t lane) { return "the undecided transaction of lane " + std::to_string(lane); }

// Different for different operations.
inline std::string TextOf(const CrashOperation& operation) {
  std::string text = "updates:";
  for (const auto& [key, value, is_operand, range_end, is_in_range] : operation) {
    text += (is_operand ? " operand " : value ? " put " : " delete ") + std::to_string(key.size()) + " ";
    text += std::to_string(value ? value->size() : 0) + " " + key + value.value_or("");
  }
  return text;
}

// What a transaction would write.
inline CrashOperation UpdatesOf(const Transaction& transaction) {
  struct Collector : WriteBatch::Handler {
    void Put(Slice, Slice) override {}
    void Delete(Slice) override {}
    void Merge(Slice, Slice) override {}
    Status PutCF(uint32_t, Slice key, Slice value) override { return Add({std::string(key), std::string(value), false}); }
    Status DeleteCF(uint32_t, Slice key) override { return Add({std::string(key), std::nullopt, false}); }
    Status MergeCF(uint32_t, Slice key, Slice value) override { return Add({std::string(key), std::string(value), true}); }
    Status Add(CrashUpdate update) { return operation.push_back(std::move(update)), Status::OK(); }
    CrashOperation operation;
  } collector;
  const Status ignored = transaction.GetWriteBatch().GetWriteBatch().Iterate(&collector);
  (void)ignored;
  return collector.operation;
}

// Prepares it; the transaction goes on without its handle.
inline Status PrepareOperation(CrashDatabase* db, size_t lane, const CrashOperation& operation) {
  const auto transaction = db->Begin();
  Status status = transaction->SetName(NameOfPrepared(lane));
  for (const auto& [key, value, is_operand, range_end, is_in_range] : operation) {
    ColumnFamilyHandle* const family = db->FamilyOf(key);
    if (!status.ok()) break;
    if (is_operand) {
      status = transaction->Merge(family, key, *value);
    } else {
      status = value ? transaction->Put(family, key, *value) : transaction->Delete(family, key);
    }
  }
  return status.ok() ? transaction->Prepare() : status;
}

}  // namespace braiddb::test
