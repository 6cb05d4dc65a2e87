#include "capi/user_filter.h"

#include <algorithm>
#include <cstdlib>

#include "capi/result.h"

namespace braiddb::capi {

UserFilter::Filter* UserFilter::Find(const Filters& filters, Slice key) const {
  const auto after = std::upper_bound(filters.begin(), filters.end(), key, [this](Slice wanted, const auto& filter) {
    return comparator_->Compare(wanted, filter->first_key) < 0;
  });
  return after == filters.begin() ? nullptr : std::prev(after)->get();
}

void UserFilter::Touch(Slice key) {
  if (Filter* const filter = Find(filters_, key)) filter->stale.store(true, std::memory_order_release);
  if (!noting_) return;
  std::lock_guard lock(noted_mutex_);
  noted_.emplace_back(key);
}

bool UserFilter::MayContain(Slice key) {
  std::shared_lock lock(exchange_);
  const Filter* const filter = Find(filters_, key);
  // ACQUIRE: pairs with Touch, which every completed write of this key called before the write.
  if (filter == nullptr || filter->stale.load(std::memory_order_acquire)) return true;
  return policy_->key_may_match(policy_->state, key.data(), key.size(), filter->bytes.data(), filter->bytes.size()) != 0;
}

Status UserFilter::Build(DB* db) {
  std::lock_guard one(building_);
  const Snapshot* snapshot = nullptr;
  {
    // The snapshot has all writes that ended before it. Writes that begin later are noted.
    std::unique_lock lock(exchange_);
    const Status taken = Guarded([&] { return snapshot = db->GetSnapshot(), Status::OK(); });
    if (!taken.ok()) return taken;
    noting_ = true;
  }
  Filters filters;
  const Status status = Guarded([&] { return Walk(db, snapshot, &filters); });
  db->ReleaseSnapshot(snapshot);
  std::unique_lock lock(exchange_);
  noting_ = false;
  if (status.ok()) {
    for (const std::string& key : noted_) {
      if (Filter* const filter = Find(filters, key)) filter->stale.store(true, std::memory_order_relaxed);
    }
    filters_ = std::move(filters);
  }
  noted_.clear();
  return status;
}

Status UserFilter::Walk(DB* db, const Snapshot* snapshot, Filters* filters) const {
  ReadOptions options;
  options.snapshot = snapshot;
  const auto iterator = db->NewIterator(options);
  std::vector<std::string> keys;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    keys.emplace_back(iterator->key());
    if (keys.size() < kKeysPerFilter) continue;
    filters->push_back(Make(keys));
    keys.clear();
  }
  if (!keys.empty()) filters->push_back(Make(keys));
  return iterator->status();
}

std::unique_ptr<UserFilter::Filter> UserFilter::Make(const std::vector<std::string>& keys) const {
  auto filter = std::make_unique<Filter>();
  filter->first_key = keys.front();
  std::vector<const char*> pointers;
  std::vector<size_t> lengths;
  for (const std::string& key : keys) {
    pointers.push_back(key.data());
    lengths.push_back(key.size());
  }
  size_t length = 0;
  char* const bytes =
      policy_->create_filter(policy_->state, pointers.data(), lengths.data(), static_cast<int>(keys.size()), &length);
  if (bytes == nullptr) {
    filter->stale.store(true, std::memory_order_relaxed);
    return filter;
  }
  filter->bytes.assign(bytes, length);
  std::free(bytes);
  return filter;
}

}  // namespace braiddb::capi
