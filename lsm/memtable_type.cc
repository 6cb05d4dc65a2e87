#include "lsm/memtable_type.h"

#include <algorithm>
#include <thread>

#include "lsm/hash_memtable.h"
#include "lsm/skiplist_memtable.h"

namespace braiddb {
namespace {

// The number of shards of a memtable. Every lookup searches all shards, so there are few.
constexpr uint32_t kMaxShards = 4;

std::unique_ptr<Memtable> CreateSkipList(MemtableParts parts) {
  const uint32_t shards = std::clamp(std::thread::hardware_concurrency(), 1u, kMaxShards);
  return std::make_unique<SkipListMemtable>(parts.id, parts.regions, parts.order, std::move(parts.arena), parts.block_bytes,
                                            shards);
}

std::unique_ptr<Memtable> CreateHash(MemtableParts parts) {
  return HashMemtable::Create(parts.id, parts.regions, parts.order, std::move(parts.arena), parts.block_bytes, parts.entries);
}

std::unique_ptr<Memtable> AttachSkipList(MemtableParts parts) {
  return SkipListMemtable::Attach(parts.id, parts.regions, parts.order, std::move(parts.arena));
}

std::unique_ptr<Memtable> AttachHash(MemtableParts parts) {
  return HashMemtable::Attach(parts.id, parts.regions, parts.order, std::move(parts.arena));
}

constexpr MemtableType kTypes[] = {{MemtableKind::kSkipList, "skiplist", false, CreateSkipList, AttachSkipList},
                                   {MemtableKind::kHash, "hash", true, CreateHash, AttachHash}};

// The kind, or the first one that can have keys of this order.
const MemtableType* FindFitting(MemtableKind kind, const KeyOrder& order) {
  const bool may_hash = order.equal_means_same();
  const auto fits = [may_hash](const MemtableType& type) { return may_hash || !type.hashes_keys; };
  const MemtableType* const type = FindMemtableType(kind);
  return fits(*type) ? type : std::find_if(std::begin(kTypes), std::end(kTypes), fits);
}

}  // namespace

std::span<const MemtableType> MemtableTypes() { return kTypes; }

const MemtableType* FindMemtableType(MemtableKind kind) {
  for (const MemtableType& type : kTypes) {
    if (type.kind == kind) return &type;
  }
  return nullptr;
}

const MemtableType* FindMemtableType(std::string_view name) {
  for (const MemtableType& type : kTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

std::unique_ptr<Memtable> CreateMemtable(MemtableKind kind, MemtableParts parts) {
  return FindFitting(kind, *parts.order)->create(std::move(parts));
}

std::unique_ptr<Memtable> AttachMemtable(MemtableKind kind, MemtableParts parts) {
  return FindFitting(kind, *parts.order)->attach(std::move(parts));
}

}  // namespace braiddb
