// CrashWorkload: random work on a database, noted in an oracle as it goes.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "tests/crash_test/crash_database.h"
#include "tests/crash_test/crash_filter.h"
#include "tests/crash_test/crash_oracle.h"
#include "tests/crash_test/crash_transaction.h"
#include "tests/crash_test/store_tracer.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {

class CrashWorkload {
 public:
  static constexpr size_t kLanes = 2;
  static constexpr size_t kKeysPerLane = 30;
  static constexpr uint64_t kSegmentSize = 256 << 10;

  // `growing`: with values that make pools grow; `filtered`: with a compaction filter, in half of the opens. Without one, half of
  // the databases have a merge operator: what a filter says of a value would depend on whether operands were applied to it.
  CrashWorkload(uint32_t regions, L1Kind l1, bool growing, bool filtered, Random* random)
      : regions_(regions),
        l1_(l1),
        growing_(growing),
        filtered_(filtered),
        merges_(random->OneIn(2) && !filtered),
        lane_keys_(kLanes) {
    const auto keys = MakeKeyUniverse(random, kLanes * kKeysPerLane, false);
    for (size_t i = 0; i < keys.size(); ++i) lane_keys_[i % kLanes].push_back(keys[i]);
  }

  const std::vector<std::vector<std::string>>& lane_keys() const { return lane_keys_; }

  // Everything as small as it gets; varied, since any open may choose other values.
  Options DatabaseOptions(Random* random) const {
    Options options = TinyOptions(regions_);
    options.l1 = l1_;
    options.list_kind = random->OneIn(3) ? ListKind::kOblivious : ListKind::kBraided;  // the creation sets it
    options.persist_mode = PersistMode::kEmulated;  // with eADR too, which tmpfs cannot be taken for: flushes do nothing then
    options.max_region_size = 64ull << 20;
    options.segment_size = kSegmentSize;
    options.memtable_size = 16ull << 10;
    options.memtable = random->OneIn(2) ? MemtableKind::kHash : MemtableKind::kSkipList;
    options.lookup_cache_size = random->OneIn(2) ? 256 : 0;
    options.filter_bits_per_key = random->OneIn(2) ? 10 : 0;
    options.max_space_amplification = random->OneIn(4) ? 0 : 1.05;
    options.space_slack = 0;
    if (random->OneIn(2)) options.kept_free_space = 0;
    options.index_unified_logging = !random->OneIn(3);  // the creation sets it
    options.checkpoint_tables = static_cast<uint32_t>(random->Range(1, 3));
    options.l0_compaction_trigger = static_cast<uint32_t>(random->Range(1, 3));
    options.compaction_threads = static_cast<uint32_t>(random->Range(1, 3));
    options.recovery_threads = static_cast<uint32_t>(random->Range(1, 2));
    static const CrashFilter filter_in_place(true), filter_by_writes(false);
    if (filtered_ && random->OneIn(2)) options.compaction_filter = random->OneIn(2) ? &filter_in_place : &filter_by_writes;
    if (merges_) options.merge_operator = std::make_shared<AppendOperator>();
    return options;
  }

  // `count` operations of one lane; an error ends it. With transactions, one of the lane may stay undecided.
  Status Work(CrashDatabase* db, CrashOracle* oracle, size_t lane, uint64_t count, uint64_t seed) const {
    Random random(seed);
    Status status;
    for (uint64_t i = 0; i < count && status.ok(); ++i) {
      if (db->pessimistic() != nullptr && random.OneIn(4)) {
        status = IsUndecided(db, lane) ? Decide(db, oracle, lane, random.OneIn(3)) : Prepare(db, oracle, lane, &random);
      } else {
        const bool by_transaction = db->has_transactions() && random.OneIn(2);
        if (by_transaction && random.OneIn(4)) status = GiveUp(db, DrawOperation(db, lane, &random), &random);
        if (!status.ok()) break;
        CrashOperation operation = DrawOperation(db, lane, &random);
        if (!by_transaction && random.OneIn(6)) AddRange(db, lane, &random, &operation);
        status = Perform(db, oracle, lane, operation, by_transaction ? &random : nullptr);
      }
      if (!status.ok()) break;
      if (random.OneIn(80)) status = (*db)->Flush();
      if (status.ok() && random.OneIn(100))
        status = (*db)->CompactRange({}, db->family(random.Uniform(db->families())), nullptr, nullptr);
      if (status.ok() && random.OneIn(60)) UseSnapshot(db->get());
      // Lanes work at the same time, and one of them has the fourth family.
      if (status.ok() && lane == 0 && db->has_families() && random.OneIn(40)) status = db->Renew(random.OneIn(2));
      if (status.ok() && filtered_ && random.OneIn(40)) status = CompactUnderSnapshot(db, oracle, lane, &random);
    }
    return status;
  }

  // Deletes all keys from some key on, of all lanes, and merges: leaves at the end of an NV-Tree are empty then, and go when it
  // is rebuilt. No lane may be at work.
  Status ClearEnd(CrashDatabase* db, CrashOracle* oracle, Random* random) const {
    std::vector<std::string> keys;
    for (const auto& lane : lane_keys_) keys.insert(keys.end(), lane.begin(), lane.end());
    std::sort(keys.begin(), keys.end());
    const std::string from = keys[random->Range(keys.size() / 4, keys.size() / 2)];
    Status status;
    for (size_t lane = 0; lane < lane_keys_.size() && status.ok(); ++lane) {
      if (IsUndecided(db, lane)) status = Decide(db, oracle, lane, random->OneIn(2));
      if (!status.ok()) break;
      CrashOperation operation;
      for (const auto& key : lane_keys_[lane]) {
        if (key >= from) operation.push_back({key, std::nullopt, false});
      }
      status = Perform(db, oracle, lane, operation);
    }
    for (size_t i = 0; i < db->families() && status.ok(); ++i) status = (*db)->CompactRange({}, db->family(i), nullptr, nullptr);
    return status;
  }

 private:
  static void Note(bool acknowledged) {
    if (StoreTracer* const tracer = StoreTracer::Current()) tracer->NoteOperation(acknowledged);
  }

  // Each sorted run takes a segment, and here runs are short, as are the parts of a record: large values would have so many that
  // the regions are full.
  CrashOperation DrawPrepared(CrashDatabase* db, size_t lane, Random* random) const {
    constexpr uint64_t kMostBytes = 64 << 10;
    for (;;) {
      CrashOperation operation = DrawOperation(db, lane, random);
      uint64_t bytes = 0;
      for (const CrashUpdate& update : operation) bytes += update.value ? update.value->size() : 0;
      if (l1_ != L1Kind::kSortedRuns || bytes <= kMostBytes) return operation;
    }
  }

  static bool IsUndecided(CrashDatabase* db, size_t lane) {
    return db->pessimistic() != nullptr && db->pessimistic()->GetTransactionByName(NameOfPrepared(lane)) != nullptr;
  }

  Status Prepare(CrashDatabase* db, CrashOracle* oracle, size_t lane, Random* random) const {
    const CrashOperation operation = DrawPrepared(db, lane, random);
    return Perform(oracle, lane, {{NameOfPrepared(lane), TextOf(operation), false}},
                   [&] { return PrepareOperation(db, lane, operation); });
  }

  // By a handle of its own, as after a crash.
  static Status Decide(CrashDatabase* db, CrashOracle* oracle, size_t lane, bool rolls_back) {
    const auto transaction = db->pessimistic()->GetTransactionByName(NameOfPrepared(lane));
    CrashOperation operation;
    if (!rolls_back) operation = UpdatesOf(*transaction);
    operation.push_back({NameOfPrepared(lane), std::nullopt, false});
    return Perform(oracle, lane, operation, [&] { return rolls_back ? transaction->Rollback() : transaction->Commit(); });
  }

  // Puts a range that is deleted somewhere into the operation: a run of neighbours of one family, all of them the lane's.
  void AddRange(CrashDatabase* db, size_t lane, Random* random, CrashOperation* operation) const {
    const std::vector<std::string> keys = FreeKeys(db, lane);
    const std::string& begin = keys[random->Uniform(keys.size())];
    std::vector<std::string> neighbours;
    for (const auto& of_lane : lane_keys_) {
      for (const auto& key : of_lane) {
        if (key > begin && db->NumberOf(key) == db->NumberOf(begin)) neighbours.push_back(key);
      }
    }
    std::sort(neighbours.begin(), neighbours.end());
    CrashOperation range{{begin, std::nullopt, false}};
    for (const auto& key : neighbours) {
      if (random->OneIn(6) || std::find(keys.begin(), keys.end(), key) == keys.end()) break;
      range.push_back({key, std::nullopt, false, std::nullopt, true});
    }
    range[0].range_end = range.back().key + std::string(1, '\0');
    operation->insert(operation->begin() + static_cast<std::ptrdiff_t>(random->Uniform(operation->size() + 1)), range.begin(),
                      range.end());
  }

  // Not those that an undecided transaction has locked.
  std::vector<std::string> FreeKeys(CrashDatabase* db, size_t lane) const {
    std::vector<std::string> keys = lane_keys_[lane];
    if (IsUndecided(db, lane)) {
      const auto locked = UpdatesOf(*db->pessimistic()->GetTransactionByName(NameOfPrepared(lane)));
      std::erase_if(keys, [&](const std::string& key) {
        return std::any_of(locked.begin(), locked.end(), [&](const CrashUpdate& update) { return update.key == key; });
      });
    }
    return keys;
  }

  CrashOperation DrawOperation(CrashDatabase* db, size_t lane, Random* random) const {
    const std::vector<std::string> keys = FreeKeys(db, lane);
    CrashOperation operation(random->OneIn(4) ? random->Range(2, 8) : 1);
    for (auto& [key, value, is_operand, range_end, is_in_range] : operation) {
      key = keys[random->Uniform(keys.size())];
      is_operand = merges_ && random->OneIn(2);
      if (is_operand) {
        value = "," + std::to_string(random->Uniform(1000));
      } else if (!random->OneIn(4)) {
        value = !filtered_ ? "" : random->OneIn(4) ? kDrops : random->OneIn(4) ? kChanges : "";
        *value += DrawValue(random);
      }
    }
    return operation;
  }

  std::string DrawValue(Random* random) const {
    if (growing_ && random->OneIn(60)) return PatternedValue(random->Next(), random->Range(1 << 20, 3 << 20));
    if (random->OneIn(80)) return PatternedValue(random->Next(), kSegmentSize / 4 + random->Uniform(kSegmentSize));
    if (random->OneIn(4)) return PatternedValue(random->Next(), random->Range(1000, 6000));
    return PatternedValue(random->Next(), random->Uniform(300));
  }

  // `transaction`: by one, in ways that are drawn of it.
  Status Perform(CrashDatabase* db, CrashOracle* oracle, size_t lane, const CrashOperation& operation,
                 Random* transaction = nullptr) const {
    return Perform(oracle, lane, operation,
                   [&] { return transaction != nullptr ? Commit(db, operation, transaction) : Execute(db, operation); });
  }
  // `execute` makes what the operation says durable.
  template <class Execution>
  static Status Perform(CrashOracle* oracle, size_t lane, const CrashOperation& operation, const Execution& execute) {
    oracle->Begin(lane, operation);
    Note(false);
    Status status = execute();
    if (!status.ok()) return status;
    oracle->Acknowledge(lane);
    Note(true);
    return status;
  }

  static Status Execute(CrashDatabase* db, const CrashOperation& operation) {
    if (operation.size() == 1) {
      const auto& [key, value, is_operand, range_end, is_in_range] = operation[0];
      if (range_end) return db->get()->DeleteRange({}, db->FamilyOf(key), key, *range_end);
      if (is_operand) return (*db)->Merge({}, db->FamilyOf(key), key, *value);
      return value ? (*db)->Put({}, db->FamilyOf(key), key, *value) : (*db)->Delete({}, db->FamilyOf(key), key);
    }
    WriteBatch batch;
    for (const auto& [key, value, is_operand, range_end, is_in_range] : operation) {
      const auto* const family = db->FamilyOf(key);
      if (is_in_range) continue;
      if (range_end) {
        batch.DeleteRange(family, key, *range_end);
      } else if (is_operand) {
        batch.Merge(family, key, *value);
      } else {
        value ? batch.Put(family, key, *value) : batch.Delete(family, key);
      }
    }
    // Transactions know no ranges. The keys are nobody else's.
    return batch.HasDeleteRange() ? db->get()->Write({}, batch) : (*db)->Write({}, batch);
  }

  static Status Update(Transaction* transaction, CrashDatabase* db, const CrashUpdate& update) {
    auto* const family = db->FamilyOf(update.key);
    if (update.is_operand) return transaction->Merge(family, update.key, *update.value);
    return update.value ? transaction->Put(family, update.key, *update.value) : transaction->Delete(family, update.key);
  }

  // A compaction filter may write a key behind a transaction's snapshot: that is a conflict, and no violation. Nobody else does.
  Status Commit(CrashDatabase* db, const CrashOperation& operation, Random* random) const {
    const int tries = filtered_ ? 100 : 1;
    Status status = TryCommit(db, operation, random);
    for (int i = 1; i < tries && status.IsBusy(); ++i) status = TryCommit(db, operation, random);
    return status;
  }
  // What a save point took back leaves nothing.
  static Status TryCommit(CrashDatabase* db, const CrashOperation& operation, Random* random) {
    const auto transaction = db->Begin();
    if (random->OneIn(2)) transaction->SetSnapshot();
    Status status;
    if (random->OneIn(2)) {
      transaction->SetSavePoint();
      for (const CrashUpdate& update : operation) {
        if (status.ok()) status = transaction->Put(db->FamilyOf(update.key), update.key, "taken back");
        const std::string other = update.key + ".of no operation";
        if (status.ok()) status = transaction->Put(db->FamilyOf(other), other, "");
      }
      if (status.ok()) status = transaction->RollbackToSavePoint();
    }
    for (const CrashUpdate& update : operation) {
      if (status.ok()) status = Update(transaction.get(), db, update);
    }
    if (status.ok()) status = transaction->Commit();
    // An optimistic one has a conflict where a compaction filter wrote the key, or forgot its deletion. Then nothing was written.
    return db->pessimistic() == nullptr && status.IsBusy() ? Execute(db, operation) : status;
  }

  // A transaction that is not committed leaves nothing.
  static Status GiveUp(CrashDatabase* db, const CrashOperation& operation, Random* random) {
    const auto transaction = db->Begin();
    Status status;
    for (const CrashUpdate& update : operation) {
      if (status.ok()) status = Update(transaction.get(), db, update);
    }
    return status.ok() && random->OneIn(2) ? transaction->Rollback() : status;
  }

  // Versions that only a snapshot sees stay in the lists until a sweep finds that it has gone.
  static void UseSnapshot(DB* db) {
    const Snapshot* snapshot = db->GetSnapshot();
    Status ignored = db->Flush();  // a failure shows at the next write
    (void)ignored;
    db->ReleaseSnapshot(snapshot);
  }

  // What a filter drops has older versions below it that somebody sees.
  Status CompactUnderSnapshot(CrashDatabase* db, CrashOracle* oracle, size_t lane, Random* random) const {
    const Snapshot* const snapshot = (*db)->GetSnapshot();
    Status status;
    for (int i = 0; i < 8 && status.ok(); ++i) status = Perform(db, oracle, lane, DrawOperation(db, lane, random));
    CompactRangeOptions options;
    options.sweep_last_level = random->OneIn(2);
    if (status.ok()) status = (*db)->CompactRange(options, db->family(random->Uniform(db->families())), nullptr, nullptr);
    (*db)->ReleaseSnapshot(snapshot);
    return status;
  }

  const uint32_t regions_;
  const L1Kind l1_;
  const bool growing_;
  const bool filtered_;
  const bool merges_;
  std::vector<std::vector<std::string>> lane_keys_;
};

}  // namespace braiddb::test
