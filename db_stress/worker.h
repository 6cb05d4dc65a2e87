// Worker: one thread of a life. Executes and checks random operations until it is stopped.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "db_stress/bank.h"
#include "db_stress/flags.h"
#include "db_stress/plan.h"
#include "db_stress/store.h"
#include "db_stress/temporary_family.h"
#include "db_stress/view_check.h"
#include "util/random.h"

namespace braiddb::stress {

struct WorkerOptions {
  const LifePlan* plan;
  uint32_t thread;
  uint64_t operations;  // maximum number of operations; 0: no limit
  Injection injection;
};

class Worker {
 public:
  // `bank`: used if the store has accounts.
  Worker(const Oracle& oracle, Store* store, Bank* bank, const WorkerOptions& options);
  ~Worker();

  // Runs until ExpectedState::stop(), the limit, or the first violation. Reports the violation by ExpectedState::Fail.
  void Run();

 private:
  // A snapshot that is read again later, after its keys were overwritten, flushed, and merged.
  struct Held {
    const Snapshot* snapshot;
    std::unique_ptr<ViewCheck> check;
  };

  Violation Step();
  // Writes: keys of this thread's lanes, and shared keys.
  Violation WriteSome();
  Violation WriteKeys(uint32_t lane, const std::vector<uint32_t>& keys);
  Violation WriteByTransaction(uint32_t lane, const std::vector<uint32_t>& keys);
  Violation WriteShared();
  // Reads keys for update and writes them.
  Violation UpdateShared();
  // Reads
  Violation Get();
  Violation GetShared();
  Violation GetGroup();
  // Reads keys of arbitrary families in one view.
  Violation GetTogether(ViewCheck* check);
  Violation WalkAround();
  Violation HoldSnapshot();
  Violation LookAgain(Held* held);
  Violation Administer();
  Violation UseBank();
  Violation UseTemporaryFamily();

  uint32_t DrawLane();
  uint32_t DrawSingle(uint32_t lane);
  uint32_t DrawAny();
  // Neighbours in the key order of one family.
  std::vector<uint32_t> DrawWindow(size_t most);
  // All keys with some prefix. Empty if there are too many to read.
  std::vector<uint32_t> DrawPrefix(std::string* prefix);
  uint64_t Between(uint64_t low, uint64_t high) { return low + random_.Uniform(high - low + 1); }
  ColumnFamilyHandle* FamilyOf(uint32_t id) const { return store_->families()[oracle_.keys->family_of(id)]; }
  const std::string* RangeEnd(uint32_t id);
  // Adds the update of one key to a batch or a transaction.
  template <class Updates>
  auto Update(Updates* updates, uint32_t id) const;
  bool Percent(uint32_t percent) { return random_.Uniform(100) < percent; }
  bool Inject(Injection injection) { return options_.injection == injection && random_.OneIn(200); }

  const Oracle oracle_;
  Store* const store_;
  DB* const db_;
  Bank* const bank_;
  const WorkerOptions options_;
  const LifePlan& plan_;
  Random random_;
  ReadOptions read_;
  WriteOptions write_;
  std::vector<uint32_t> lanes_;
  std::deque<Held> held_;
};

}  // namespace braiddb::stress
