#include "db_stress/follower.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "db_stress/store.h"

namespace braiddb::stress {
namespace {

constexpr uint64_t kKeys = 200;
constexpr uint64_t kMostPause_us = 4000;

}  // namespace

Status Follower::Open() {
  std::vector<ColumnFamilyDescriptor> descriptors = Store::Describe(database_, life_);
  if (!descriptors.empty()) descriptors.resize(database_.families);
  return DB::OpenAsSecondary(life_.options, path_, SecondaryPath(path_), descriptors, &handles_, &db_);
}

std::vector<uint32_t> Follower::DrawKeys(bool is_group) {
  std::vector<uint32_t> ids;
  if (is_group) {
    const auto group = static_cast<uint32_t>(random_.Uniform(KeyTable::kGroups));
    for (uint32_t member = 0; member < KeyTable::kGroupSize; ++member) ids.push_back(KeyTable::GroupedKey(group, member));
    return ids;
  }
  // A run of neighbours, so that all keys of small databases are read often.
  const uint64_t keys = oracle_.keys->size() - KeyTable::kShared;
  const uint64_t first = random_.Uniform(keys);
  for (uint64_t i = 0; i < std::min(keys, kKeys); ++i) {
    ids.push_back(static_cast<uint32_t>(KeyTable::kShared + (first + i) % keys));
  }
  return ids;
}

Violation Follower::CatchUp(std::vector<uint32_t> ids, bool is_group) {
  ViewCheck check(oracle_, std::move(ids), std::nullopt);
  const Status status = db_->TryCatchUpWithPrimary();
  if (status.IsBusy()) return std::nullopt;
  if (!status.ok()) return "a catch-up: " + status.ToString();
  check.ViewMade();
  oracle_.expected->counters().catch_ups.fetch_add(1, std::memory_order_relaxed);
  std::string value;
  for (size_t slot = 0; slot < check.size(); ++slot) {
    const uint32_t family = oracle_.keys->family_of(check.id(slot));
    ColumnFamilyHandle* const handle = handles_.empty() ? db_->DefaultColumnFamily() : handles_[family].get();
    const Status got = db_->Get({}, handle, oracle_.keys->key(check.id(slot)), &value);
    if (auto wrong = check.SawGet(slot, got, value)) return "in a secondary: " + *wrong;
  }
  const Violation wrong = is_group ? check.OneGeneration() : Violation();
  return wrong ? "in a secondary: " + *wrong : Violation();
}

Violation Follower::Run(const std::atomic<bool>& stop) {
  Status status = Status::Busy("not open");
  while (status.IsBusy() && !stop.load(std::memory_order_relaxed)) status = Open();
  if (status.IsBusy()) return std::nullopt;
  if (!status.ok()) return "open of a secondary: " + status.ToString();
  Violation wrong;
  while (!wrong && !stop.load(std::memory_order_relaxed)) {
    const bool is_group = random_.OneIn(3);
    wrong = CatchUp(DrawKeys(is_group), is_group);
    if (random_.OneIn(2)) std::this_thread::sleep_for(std::chrono::microseconds(random_.Uniform(kMostPause_us)));
  }
  handles_.clear();
  db_.reset();
  return wrong;
}

}  // namespace braiddb::stress
