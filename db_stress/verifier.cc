#include "db_stress/verifier.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "db/db_impl.h"
#include "db_stress/bank.h"
#include "db_stress/store.h"

namespace braiddb::stress {

namespace {

// Time limit for the background release of dropped families.
constexpr auto kPurge = std::chrono::seconds(30);

// Whether the database has that generation of the key.
bool Holds(const Oracle& oracle, DB* db, ColumnFamilyHandle* family, const ReadOptions& read, uint32_t key, uint32_t generation) {
  PinnableSlice value;
  const Status status = db->Get(read, family, oracle.keys->key(key), &value);
  if (status.IsNotFound()) return oracle.content->IsDeleted(key, generation);
  return status.ok() && oracle.content->Matches(key, generation, value.slice());
}

std::string Text(const Status& status, const char* what) { return std::string(what) + ": " + status.ToString(); }

// Checks all keys of a family, by both scans and by Get.
Violation VerifyFamily(const Oracle& oracle, DB* db, ColumnFamilyHandle* family, uint32_t number, const ReadOptions& read) {
  std::vector<uint32_t> all;
  for (uint32_t at = oracle.keys->begin(number); at < oracle.keys->end(number); ++at) all.push_back(oracle.keys->id_at(at));
  ViewCheck check(oracle, std::move(all), std::nullopt);
  check.ViewMade();
  Violation wrong;
  for (const bool forward : {true, false}) {
    const auto iterator = db->NewIterator(read, family);
    CheckedIterator walk(oracle, iterator.get(), &check, true);
    wrong = forward ? walk.Forward() : walk.Backward();
    if (wrong) return (forward ? "forward scan: " : "backward scan: ") + *wrong;
  }
  PinnableSlice value;
  for (size_t slot = 0; slot < check.size() && !wrong; ++slot) {
    const Status status = db->Get(read, family, oracle.keys->key(check.id(slot)), &value);
    wrong = check.SawGet(slot, status, value.slice());
  }
  oracle.expected->counters().verified_keys.fetch_add(check.size(), std::memory_order_relaxed);
  return wrong;
}

// Deletes all keys and the temporary families.
Status Empty(const Oracle& oracle, Store* store) {
  Status status;
  for (uint32_t key = 0; key < oracle.keys->size() && status.ok(); ++key) {
    status = store->db()->Delete({}, store->families()[oracle.keys->family_of(key)], oracle.keys->key(key));
  }
  if (!status.ok() || !store->has_accounts()) return status;
  status = Bank(store, oracle.expected).Close();
  for (uint32_t i = 0; i < Store::kTemporaryFamilies && status.ok(); ++i) {
    status = store->db()->DropColumnFamily(store->temporary(i)->get());
    store->temporary(i)->reset();
  }
  return status;
}

// Compacts all families, also the hidden family of prepared transactions.
Status CompactAll(Store* store) {
  std::vector<std::unique_ptr<ColumnFamilyHandle>> all;
  Status status = static_cast<DBImpl*>(store->db()->GetRootDB())->GetAllFamilies(&all);
  for (const auto& family : all) {
    if (status.ok()) status = store->db()->GetRootDB()->CompactRange({}, family.get(), nullptr, nullptr);
  }
  return status;
}

// REQUIRES: the database is empty.
Violation JudgeSpace(Store* store, const DatabasePlan& database, const Options& options) {
  // Per region, one open segment for each class of entries may remain.
  const uint64_t regions = store->db()->GetOptions().regions;
  const uint64_t trees =
      store->families().size() +
      (store->has_accounts() ? store->accounts().size() + Store::kTemporaryFamilies + 1 + database.idle_families : 0);
  uint64_t all = 0, of_leaves = 0;
  if (!store->db()->GetIntProperty("braiddb.pm-bytes-in-segments", &all) ||
      !store->db()->GetIntProperty("braiddb.l1-pm-bytes", &of_leaves) || all - of_leaves > 4 * options.segment_size * regions) {
    return "the emptied database keeps " + std::to_string(all) + " bytes of segments, " + std::to_string(of_leaves) +
           " for its leaves";
  }
  // Segments of leaves stay with the tree. They have the segment size of the life that allocated them.
  if (of_leaves > 4 * Options().segment_size * regions * trees) {
    return "the leaves of the emptied database keep " + std::to_string(of_leaves) + " bytes";
  }
  return std::nullopt;
}

}  // namespace

Violation VerifyDatabase(const Oracle& oracle, DB* db, const std::vector<ColumnFamilyHandle*>& families,
                         const ReadOptions& read) {
  for (uint32_t lane = 0; lane < KeyTable::kLanes; ++lane) {
    const auto holds = [&](uint32_t key, uint32_t generation) {
      return Holds(oracle, db, families[oracle.keys->family_of(key)], read, key, generation);
    };
    if (auto wrong = oracle.expected->Settle(lane, holds)) return wrong;
  }
  for (uint32_t number = 0; number < families.size(); ++number) {
    if (auto wrong = VerifyFamily(oracle, db, families[number], number, read)) {
      return "family " + std::to_string(number) + ": " + *wrong;
    }
  }
  return std::nullopt;
}

Violation VerifySpace(const Oracle& oracle, const DatabasePlan& database, const LifePlan& life, const std::string& path) {
  Store store;
  Status status = store.Open(database, life, path);
  if (!status.ok()) return Text(status, "open");
  status = Empty(oracle, &store);
  if (!status.ok()) return Text(status, "emptying the database");
  status = CompactAll(&store);
  if (status.ok()) status = store.Close();
  if (!status.ok()) return Text(status, "CompactRange or Close of the emptied database");
  status = store.Open(database, life, path);
  if (status.ok()) status = CompactAll(&store);
  if (!status.ok()) return Text(status, "open or CompactRange of the emptied database");
  for (ColumnFamilyHandle* family : store.families()) {
    const auto iterator = store.db()->NewIterator({}, family);
    iterator->SeekToFirst();
    if (iterator->Valid()) return "the emptied database has the key " + Printable(iterator->key());
  }
  Violation wrong;
  const auto end = std::chrono::steady_clock::now() + kPurge;
  while ((wrong = JudgeSpace(&store, database, life.options)) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    status = CompactAll(&store);
    if (!status.ok()) return Text(status, "CompactRange of the emptied database");
  }
  return wrong;
}

}  // namespace braiddb::stress
