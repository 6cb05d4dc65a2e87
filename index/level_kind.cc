#include "index/level_kind.h"

#include <array>
#include <atomic>

#include "util/check.h"

namespace braiddb {
namespace {

// One slot for each value of L1Kind. A slot is set once.
class Registry {
 public:
  static Registry& Global() {
    static Registry registry;
    return registry;
  }

  void Add(const LevelKind* kind) {
    BRAIDDB_CHECK(FindByName(kind->name) == nullptr);
    const LevelKind* none = nullptr;
    // release: a thread that finds the slot sees the description (Find).
    const bool is_new = slots_[static_cast<uint8_t>(kind->id)].compare_exchange_strong(none, kind, std::memory_order_release,
                                                                                       std::memory_order_relaxed);
    BRAIDDB_CHECK(is_new);
  }
  const LevelKind* Find(uint8_t id) const { return slots_[id].load(std::memory_order_acquire); }
  std::vector<const LevelKind*> All() const {
    std::vector<const LevelKind*> all;
    for (const auto& slot : slots_) {
      if (const LevelKind* const kind = slot.load(std::memory_order_acquire); kind != nullptr) all.push_back(kind);
    }
    return all;
  }
  const LevelKind* FindByName(std::string_view name) const {
    for (const auto& slot : slots_) {
      const LevelKind* const kind = slot.load(std::memory_order_acquire);
      if (kind != nullptr && kind->name == name) return kind;
    }
    return nullptr;
  }

 private:
  Registry() {
    for (const LevelKind* const kind : BuiltInLevelKinds()) Add(kind);
  }

  std::array<std::atomic<const LevelKind*>, 256> slots_{};
};

}  // namespace

const LevelKind* FindLevelKind(L1Kind id) { return Registry::Global().Find(static_cast<uint8_t>(id)); }

const LevelKind* FindLevelKind(std::string_view name) { return Registry::Global().FindByName(name); }

std::vector<const LevelKind*> LevelKinds() { return Registry::Global().All(); }

std::string LevelKindNames(std::string_view separator, std::string_view prefix) {
  std::string names;
  for (const LevelKind* const kind : LevelKinds())
    names.append(names.empty() ? std::string_view() : separator).append(prefix).append(kind->name);
  return names;
}

std::string NameOfL1(uint8_t kind) {
  if (const LevelKind* const known = FindLevelKind(kind); known != nullptr) return std::string(known->constant);
  return "number " + std::to_string(kind) + ", which this version does not have";
}

std::vector<L1KindName> L1KindNames() {
  std::vector<L1KindName> names;
  for (const LevelKind* const kind : LevelKinds()) names.push_back({kind->id, kind->name});
  return names;
}

void RegisterLevelKind(const LevelKind* kind) { Registry::Global().Add(kind); }

}  // namespace braiddb
