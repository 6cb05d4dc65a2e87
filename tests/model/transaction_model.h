// The model of a database with column families and transactions: maps, and who may do what to which key.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace braiddb::test {

// Everything that is there, and the number of the newest write to each key, deletions included.
class ModelWorld {
 public:
  struct Version {
    std::optional<std::string> value;  // nothing: deleted
    uint64_t number = 0;
  };
  using Key = std::pair<uint32_t, std::string>;  // a family by a number that is never used again, and the key's bytes

  void Write(const Key& key, std::optional<std::string> value) { versions_[key] = {std::move(value), ++newest_}; }
  void Forget(uint32_t family) {
    std::erase_if(versions_, [family](const auto& entry) { return entry.first.first == family; });
  }
  Version At(const Key& key) const {
    const auto found = versions_.find(key);
    return found == versions_.end() ? Version() : found->second;
  }
  uint64_t newest() const { return newest_; }
  // What there is of a family, with the updates of a transaction put over it.
  using Updates = std::map<Key, std::optional<std::string>>;
  std::map<std::string, std::string> Family(uint32_t family, const Updates& updates = {}) const {
    std::map<std::string, std::string> content;
    for (const auto& [key, version] : versions_) {
      if (key.first == family && version.value) content[key.second] = *version.value;
    }
    for (const auto& [key, value] : updates) {
      if (key.first != family) continue;
      content.erase(key.second);
      if (value) content[key.second] = *value;
    }
    return content;
  }

 private:
  std::map<Key, Version> versions_;
  uint64_t newest_ = 0;
};

// What a call may answer. A deletion of what nobody saw may be forgotten at any time: then a conflict may be noticed or not.
enum class Verdict : uint8_t { kOk, kBusy, kBusyOrOk, kTimedOut };

inline Verdict Either(Verdict a, Verdict b) {
  if (a == Verdict::kBusy || b == Verdict::kBusy) return Verdict::kBusy;
  return a == Verdict::kBusyOrOk || b == Verdict::kBusyOrOk ? Verdict::kBusyOrOk : Verdict::kOk;
}

// Has the key been written since `before`, as far as a transaction can tell that holds what it saw then?
inline Verdict WrittenSince(const ModelWorld& before, const ModelWorld& now, const ModelWorld::Key& key) {
  const auto then = before.At(key), newest = now.At(key);
  if (then.number == newest.number) return Verdict::kOk;
  return then.value || newest.value ? Verdict::kBusy : Verdict::kBusyOrOk;
}

// A transaction of either kind.
struct ModelTransaction {
  using World = std::shared_ptr<const ModelWorld>;
  struct Protection {
    bool exclusive = true;
    World seen;                       // what there was when the key was protected first
    Verdict conflict = Verdict::kOk;  // with the snapshot of that time
  };
  struct SavePoint {
    ModelWorld::Updates updates;
    std::map<ModelWorld::Key, Protection> protections;
    World snapshot;
  };

  ModelWorld::Updates updates;
  std::map<ModelWorld::Key, Protection> protections;
  World snapshot;
  std::vector<SavePoint> save_points;

  // Would another one, which wants the key, have to wait?
  bool Excludes(const ModelWorld::Key& key, bool exclusive) const {
    const auto found = protections.find(key);
    return found != protections.end() && (exclusive || found->second.exclusive);
  }

  void Protect(const ModelWorld::Key& key, bool exclusive, World now, bool held) {
    const auto found = protections.find(key);
    if (found != protections.end()) {
      found->second.exclusive |= exclusive;
    } else if (held) {
      const Verdict conflict = snapshot == nullptr ? Verdict::kOk : WrittenSince(*snapshot, *now, key);
      protections[key] = {exclusive, std::move(now), conflict};
    }
  }

  // An optimistic commit. Of a key that was not there when it was protected, the deletion may be forgotten meanwhile.
  Verdict CompareWith(const ModelWorld& now) const {
    Verdict verdict = Verdict::kOk;
    for (const auto& [key, protection] : protections) {
      verdict = Either(verdict, protection.conflict);
      verdict = Either(verdict, WrittenSince(*protection.seen, now, key));
      const auto seen = protection.seen->At(key);
      if (!seen.value && seen.number != 0) verdict = Either(verdict, Verdict::kBusyOrOk);
    }
    return verdict;
  }

  void SetSavePoint() { save_points.push_back({updates, protections, snapshot}); }
  void RollbackToSavePoint() {
    SavePoint& point = save_points.back();
    updates = std::move(point.updates);
    std::erase_if(protections, [&](const auto& entry) { return !point.protections.contains(entry.first); });
    snapshot = std::move(point.snapshot);
    save_points.pop_back();
  }
  void Rollback() {
    updates.clear();
    protections.clear();
    save_points.clear();
  }
};

}  // namespace braiddb::test
