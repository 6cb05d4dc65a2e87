// Opens a damaged database, reads all of it, and says what came of it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "tests/mutation/mutation.h"
#include "tests/mutation/mutation_database.h"

namespace braiddb::test {

// How much a reader asks for, and so what it is promised.
enum class Promise : uint8_t {
  kStrict,  // Options::verify_at_open and ReadOptions::verify_checksums: no damage shows as wrong data, none ends the process
  kPlain,   // the same, but for what is in lists: entries there are followed and returned as they are
  kMerge,   // a merge of everything after a plain open ends, well or with an error, whatever is damaged
};

class Judge {
 public:
  Judge(const MutationDatabase& database, Promise promise)
      : database_(database), promise_(promise), strict_(promise == Promise::kStrict) {
    read_.verify_checksums = strict_;
  }

  Result OpenAndRead(const std::string& path) const {
    Options options = database_.options();
    options.create_if_missing = false;
    options.verify_at_open = strict_;
    options.lookup_cache_size = 64 << 10;
    std::unique_ptr<DB> db;
    std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
    const Status status = DB::Open(options, path, database_.families(), &handles, &db);
    if (!status.ok()) return Error(Outcome::kRefused, status);
    if (promise_ == Promise::kMerge) {
      const Status merged = db->CompactRange({}, nullptr, nullptr);
      return merged.ok() ? Result{Outcome::kRight} : Error(Outcome::kReadError, merged);
    }
    for (size_t family = 0; family <= handles.size(); ++family) {
      ColumnFamilyHandle* const handle = family == 0 ? db->DefaultColumnFamily() : handles[family - 1].get();
      if (const Result result = ReadFamily(db.get(), handle, family); result.outcome != Outcome::kRight) return result;
    }
    handles.clear();
    const Status closed = db->Close();
    return closed.ok() ? Result{Outcome::kRight} : Error(Outcome::kReadError, closed);
  }

 private:
  // An error that does not say what is wrong is none that one can do something about.
  static Result Error(Outcome outcome, const Status& status) {
    return {status.message().empty() ? Outcome::kWrong : outcome, status.code()};
  }

  Result ReadFamily(DB* db, ColumnFamilyHandle* handle, size_t family) const {
    for (const bool forward : {true, false}) {
      if (const Result result = Scan(db, handle, family, forward); result.outcome != Outcome::kRight) return result;
    }
    // The second time from the lookup cache.
    for (int round = 0; round < 2; ++round) {
      if (const Result result = GetAll(db, handle, family); result.outcome != Outcome::kRight) return result;
    }
    return {Outcome::kRight};
  }

  Result Scan(DB* db, ColumnFamilyHandle* handle, size_t family, bool forward) const {
    const auto& expected = database_.expected(family);
    const auto& optional = database_.optional();
    std::map<std::string, std::string> found;
    const auto it = db->NewIterator(read_, handle);
    size_t steps = 0;
    for (forward ? it->SeekToFirst() : it->SeekToLast(); it->Valid(); forward ? it->Next() : it->Prev()) {
      if (++steps > expected.size() + optional.size()) return {Outcome::kWrong};
      const std::string key(it->key());
      if (!optional.contains(key)) found[key] = it->value();
    }
    if (!it->status().ok()) return Error(Outcome::kReadError, it->status());
    return {found == expected ? Outcome::kRight : Outcome::kWrong};
  }

  Result GetAll(DB* db, ColumnFamilyHandle* handle, size_t family) const {
    const auto& all = database_.expected(family);
    std::string value;
    for (uint64_t i = 0; i < MutationDatabase::kKeys; ++i) {
      const std::string key = NumberedKey(i);
      const auto expected = all.find(key);
      const Status status = db->Get(read_, handle, key, &value);
      if (!status.ok() && !status.IsNotFound()) return Error(Outcome::kReadError, status);
      if (status.ok() != (expected != all.end())) return {Outcome::kWrong};
      if (status.ok() && value != expected->second) return {Outcome::kWrong};
    }
    return {Outcome::kRight};
  }

  const MutationDatabase& database_;
  const Promise promise_;
  const bool strict_;
  ReadOptions read_;
};

}  // namespace braiddb::test
