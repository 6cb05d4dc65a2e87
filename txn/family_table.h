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

// The table has its own handles. While a transaction holds one of them, the family's id is not given to another family.
// Thread safety: all methods.
class FamilyTable {
 public:
  explicit FamilyTable(DB* base) : base_(base) {}
  FamilyTable(const FamilyTable&) = delete;
  FamilyTable& operator=(const FamilyTable&) = delete;

  // Adds an existing family, given a handle of the user.
  void Add(const ColumnFamilyHandle& handle);
  // Removes a family that was dropped.
  void Remove(const ColumnFamilyHandle& handle);
  // Call before the database is closed.
  void Clear();

  // Returns InvalidArgument if the handle is null or belongs to another database.
  Status Check(const ColumnFamilyHandle* handle) const;
  // Whether the handle's family was dropped. Takes no lock.
  static bool IsDropped(const ColumnFamilyHandle& handle);
  // Return null if no such family exists.
  std::shared_ptr<ColumnFamilyHandle> Find(uint32_t id) const;
  std::shared_ptr<ColumnFamilyHandle> Find(const std::string& name) const;

 private:
  DB* const base_;
  mutable std::mutex mutex_;
  std::map<uint32_t, std::shared_ptr<ColumnFamilyHandle>> handles_;  // all families except the default family
};

}  // namespace braiddb
