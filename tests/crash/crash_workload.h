// CrashWorkload: random work on a database, noted in an oracle as it goes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braiddb/db.h"
#include "db/test_hooks.h"
#include "tests/crash/crash_oracle.h"
#include "tests/crash/persist_simulator.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {

class CrashWorkload {
 public:
  static constexpr size_t kLanes = 2;
  static constexpr size_t kKeysPerLane = 40;

  CrashWorkload(uint32_t regions, Random* random) : regions_(regions), lane_keys_(kLanes) {
    const auto keys = MakeKeyUniverse(random, kLanes * kKeysPerLane, false);
    for (size_t i = 0; i < keys.size(); ++i) lane_keys_[i % kLanes].push_back(keys[i]);
  }

  const std::vector<std::vector<std::string>>& lane_keys() const { return lane_keys_; }

  Options DatabaseOptions(Random* random) const {
    Options options = TinyOptions(regions_);
    options.persist_mode = PersistMode::kEmulated;
    options.max_region_size = 64ull << 20;
    options.memtable_size = (16ull << 10) << random->Uniform(2);
    options.checkpoint_tables = static_cast<uint32_t>(random->Range(1, 3));
    options.l0_compaction_trigger = static_cast<uint32_t>(random->Range(1, 3));
    options.compaction_threads = 1;
    options.recovery_threads = static_cast<uint32_t>(random->Range(1, 2));
    return options;
  }

  // Opens with the simulator behind the persistence, if there is one.
  static Status OpenWatched(const Options& options, const std::string& path, PersistSimulator* simulator,
                            std::unique_ptr<DB>* db) {
    if (simulator != nullptr) SetPoolsMappedHook([simulator](RegionSet* regions) { simulator->Attach(regions); });
    const Status status = DB::Open(options, path, db);
    SetPoolsMappedHook(nullptr);
    return status;
  }

  static auto NoteAllowed(const CrashOracle* oracle) {
    return [oracle](CrashPoint* point, bool copied) {
      point->allowed = copied ? UnionOf(std::move(point->allowed), oracle->Current()) : oracle->Current();
    };
  }

  // `count` operations of one lane; an error ends it.
  Status Work(DB* db, CrashOracle* oracle, size_t lane, int count, uint64_t seed, const std::function<bool()>& go_on) const {
    PersistSimulator::MarkForegroundThread(true);
    Random random(seed);
    Status status;
    for (int i = 0; i < count && status.ok() && go_on(); ++i) {
      CrashOperation operation = DrawOperation(lane, &random);
      oracle->Begin(lane, operation);
      status = Execute(db, operation);
      if (status.ok()) oracle->Acknowledge(lane);
      if (status.ok() && random.OneIn(100)) status = db->Flush();
      if (status.ok() && random.OneIn(150)) status = db->CompactRange({}, nullptr, nullptr);
    }
    PersistSimulator::MarkForegroundThread(false);
    return status;
  }

 private:
  CrashOperation DrawOperation(size_t lane, Random* random) const {
    const auto& keys = lane_keys_[lane];
    CrashOperation operation(random->OneIn(4) ? random->Range(2, 8) : 1);
    for (auto& [key, value] : operation) {
      key = keys[random->Uniform(keys.size())];
      if (!random->OneIn(4)) value = RandomValue(random, 256 << 10, random->OneIn(2));
    }
    return operation;
  }

  static Status Execute(DB* db, const CrashOperation& operation) {
    if (operation.size() == 1) {
      const auto& [key, value] = operation[0];
      return value ? db->Put({}, key, *value) : db->Delete({}, key);
    }
    WriteBatch batch;
    for (const auto& [key, value] : operation) value ? batch.Put(key, *value) : batch.Delete(key);
    return db->Write({}, batch);
  }

  const uint32_t regions_;
  std::vector<std::vector<std::string>> lane_keys_;
};

}  // namespace braiddb::test
