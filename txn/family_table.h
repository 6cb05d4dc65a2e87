// FamilyTable: the column families of a database with transactions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "braiddb/db.h"

namespace braiddb {

// Handles of its own: a transaction that has one keeps the family's id from being given to another family before it is over.
// Thread safety: all methods.
class FamilyTable {
 public:
  explicit FamilyTable(DB* base) : base_(base) {}
  FamilyTable(const FamilyTable&) = delete;
  FamilyTable& operator=(const FamilyTable&) = delete;

  // A family that the database has now, by a handle of the user's.
  void Add(const ColumnFamilyHandle& handle);
  // It was dropped.
  void Remove(const ColumnFamilyHandle& handle);
  // Before the database is closed.
  void Clear();

  // InvalidArgument if it is null, or of another database.
  Status Check(const ColumnFamilyHandle* handle) const;
  // Null: there is no such family.
  std::shared_ptr<ColumnFamilyHandle> Find(uint32_t id) const;
  std::shared_ptr<ColumnFamilyHandle> Find(const std::string& name) const;

 private:
  DB* const base_;
  mutable std::mutex mutex_;
  std::map<uint32_t, std::shared_ptr<ColumnFamilyHandle>> handles_;  // all but the default one
};

}  // namespace braiddb
