#include "txn/family_table.h"

#include <utility>

#include "db/db_impl.h"
#include "db/family.h"

namespace braiddb {

// The default family lives as long as the database, so it needs no handle.
void FamilyTable::Add(const ColumnFamilyHandle& handle) {
  if (handle.GetID() == 0) return;
  const auto& known = static_cast<const FamilyHandle&>(handle);
  auto own = std::make_shared<FamilyHandle>(known.db(), std::shared_ptr<Family>(std::shared_ptr<void>(), known.family()));
  const std::lock_guard lock(mutex_);
  handles_.insert_or_assign(handle.GetID(), std::move(own));
}

void FamilyTable::Remove(const ColumnFamilyHandle& handle) {
  const std::lock_guard lock(mutex_);
  handles_.erase(handle.GetID());
}

void FamilyTable::Clear() {
  const std::lock_guard lock(mutex_);
  handles_.clear();
}

Status FamilyTable::Check(const ColumnFamilyHandle* handle) const {
  if (handle == nullptr) return Status::InvalidArgument("the column family handle is null");
  if (static_cast<const FamilyHandle*>(handle)->db() == static_cast<const DBImpl*>(base_)) return Status::OK();
  return Status::InvalidArgument("the column family handle is of another database");
}

bool FamilyTable::IsDropped(const ColumnFamilyHandle& handle) {
  return static_cast<const FamilyHandle&>(handle).family()->is_gone.load(std::memory_order_acquire);
}

std::shared_ptr<ColumnFamilyHandle> FamilyTable::Find(uint32_t id) const {
  if (id == 0) return {std::shared_ptr<void>(), base_->DefaultColumnFamily()};
  const std::lock_guard lock(mutex_);
  const auto place = handles_.find(id);
  return place == handles_.end() ? nullptr : place->second;
}

std::shared_ptr<ColumnFamilyHandle> FamilyTable::Find(const std::string& name) const {
  if (name == kDefaultColumnFamilyName) return Find(0);
  const std::lock_guard lock(mutex_);
  for (const auto& [id, handle] : handles_) {
    if (handle->GetName() == name) return handle;
  }
  return nullptr;
}

}  // namespace braiddb
