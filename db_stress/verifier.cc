#include "db_stress/verifier.h"

#include <memory>
#include <string>
#include <vector>

namespace braiddb::stress {

namespace {

// Does the database hold that generation of the key?
bool Holds(const Oracle& oracle, DB* db, const ReadOptions& read, uint32_t key, uint32_t generation) {
  PinnableSlice value;
  const Status status = db->Get(read, oracle.keys->key(key), &value);
  if (status.IsNotFound()) return oracle.content->IsDeleted(key, generation);
  return status.ok() && oracle.content->Matches(key, generation, value.slice());
}

std::string Text(const Status& status, const char* what) { return std::string(what) + ": " + status.ToString(); }

}  // namespace

Violation VerifyDatabase(const Oracle& oracle, DB* db, const ReadOptions& read) {
  for (uint32_t lane = 0; lane < KeyTable::kLanes; ++lane) {
    const auto holds = [&](uint32_t key, uint32_t generation) { return Holds(oracle, db, read, key, generation); };
    if (auto wrong = oracle.expected->Settle(lane, holds)) return wrong;
  }

  const uint32_t count = oracle.keys->size();
  std::vector<uint32_t> all(count);
  for (uint32_t position = 0; position < count; ++position) all[position] = oracle.keys->id_at(position);
  ViewCheck check(oracle, std::move(all), std::nullopt);
  check.ViewMade();
  Violation wrong;
  for (const bool forward : {true, false}) {
    const auto iterator = db->NewIterator(read);
    CheckedIterator walk(oracle, iterator.get(), &check, true);
    wrong = forward ? walk.Forward() : walk.Backward();
    if (wrong) return (forward ? "forward scan: " : "backward scan: ") + *wrong;
  }
  PinnableSlice value;
  for (uint32_t slot = 0; slot < count && !wrong; ++slot) {
    const Status status = db->Get(read, oracle.keys->key(check.id(slot)), &value);
    wrong = check.SawGet(slot, status, value.slice());
  }
  oracle.expected->counters().verified_keys.fetch_add(count, std::memory_order_relaxed);
  return wrong;
}

Violation VerifySpace(const Oracle& oracle, const Options& options, const std::string& path) {
  std::unique_ptr<DB> db;
  Status status = DB::Open(options, path, &db);
  if (!status.ok()) return Text(status, "open");
  for (uint32_t key = 0; key < oracle.keys->size(); ++key) {
    status = db->Delete({}, oracle.keys->key(key));
    if (!status.ok()) return Text(status, "Delete");
  }
  status = db->CompactRange({}, nullptr, nullptr);
  if (status.ok()) status = db->Close();
  if (!status.ok()) return Text(status, "CompactRange or Close of the emptied database");
  status = DB::Open(options, path, &db);
  if (status.ok()) status = db->CompactRange({}, nullptr, nullptr);
  if (!status.ok()) return Text(status, "open or CompactRange of the emptied database");
  const auto iterator = db->NewIterator({});
  iterator->SeekToFirst();
  if (iterator->Valid()) return "the emptied database has the key " + Printable(iterator->key());
  // A segment that is being written, of each region, may stay for each class of entries.
  const uint64_t regions = db->GetOptions().regions;
  uint64_t all = 0, of_leaves = 0;
  if (!db->GetIntProperty("braiddb.pm-bytes-in-segments", &all) || !db->GetIntProperty("braiddb.l1-pm-bytes", &of_leaves) ||
      all - of_leaves > 4 * options.segment_size * regions) {
    return "the emptied database keeps " + std::to_string(all) + " bytes of segments, " + std::to_string(of_leaves) +
           " for its leaves";
  }
  // Those that leaves took stay the tree's, as large as segments were in the life that took them.
  if (of_leaves > 4 * Options().segment_size * regions) {
    return "the leaves of the emptied database keep " + std::to_string(of_leaves) + " bytes";
  }
  return std::nullopt;
}

}  // namespace braiddb::stress
