#include "db_stress/life.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "db_stress/follower.h"
#include "db_stress/temporary_family.h"
#include "db_stress/verifier.h"
#include "db_stress/worker.h"

namespace braiddb::stress {

namespace {

using Clock = std::chrono::steady_clock;
// Period of the child's check of the clock and its orders. A kill may come between two checks.
constexpr auto kTick = std::chrono::milliseconds(2);

}  // namespace

int Life::Run() {
  Violation wrong = Open();
  if (!wrong) wrong = Work();
  if (!wrong) wrong = End();
  if (wrong) oracle_.expected->Fail(*wrong);
  return oracle_.expected->failed() ? 1 : 0;
}

// Checks the state after a kill through a read-only open: twice, directly after the open, and when L0 tables have their index.
Violation Life::ReadOnly() {
  Status status = store_.OpenForReadOnly(database_, plan_, path_);
  // No life has finished the creation of the database, or of one of its families.
  if (status.IsNotFound() || status.IsInvalidArgument()) return std::nullopt;
  if (!status.ok()) return "read-only open: " + status.ToString();
  ReadOptions read;
  read.verify_checksums = plan_.verify_checksums;
  for (int round = 0; round < 2; ++round) {
    if (auto wrong = VerifyDatabase(oracle_, store_.db(), store_.families(), read)) return "after a read-only open: " + *wrong;
  }
  status = store_.Close();
  store_.Reset();
  return status.ok() ? Violation() : "Close of a read-only database: " + status.ToString();
}

Violation Life::Open() {
  if (plan_.reads_only_first) {
    if (auto wrong = ReadOnly()) return wrong;
  }
  const auto start = Clock::now();
  Status status = store_.Open(database_, plan_, path_);
  if (status.IsNotSupported() && bank_.MayHavePrepared()) {
    // Prepared transactions wait for their decision. Only an open with pessimistic transactions can decide them.
    LifePlan deciding = plan_;
    deciding.kind = StoreKind::kPessimistic;
    status = store_.Open(database_, deciding, path_);
  }
  if (!status.ok()) return "open: " + status.ToString();
  Counters& counters = oracle_.expected->counters();
  counters.opens.fetch_add(1, kRelaxed);
  counters.replayed.fetch_add(store_.db()->GetStatistics().replayed_entries, kRelaxed);
  ReadOptions read;
  read.verify_checksums = plan_.verify_checksums;
  if (auto wrong = VerifyDatabase(oracle_, store_.db(), store_.families(), read)) return "after the open: " + *wrong;
  if (store_.has_accounts()) {
    if (auto wrong = bank_.Recover(read)) return "after the open: " + *wrong;
    for (uint32_t i = 0; i < Store::kTemporaryFamilies; ++i) {
      if (auto wrong = TemporaryFamily(&store_, i).Verify(read)) return "after the open: temporary family: " + *wrong;
    }
  }
  oracle_.expected->BeginEpoch();
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
  oracle_.expected->open_us() = static_cast<uint64_t>(took.count());
  oracle_.expected->serving() = true;
  return std::nullopt;
}

Violation Life::Work() {
  std::atomic<uint32_t> working{plan_.threads};
  std::atomic<bool> stop{false};
  std::thread follower;
  if (plan_.has_follower) {
    follower = std::thread([&] {
      if (auto wrong = Follower(oracle_, database_, plan_, path_).Run(stop)) oracle_.expected->Fail(*wrong);
    });
  }
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < plan_.threads; ++thread) {
    threads.emplace_back([&, thread] {
      Worker(oracle_, &store_, &bank_, {&plan_, thread, flags_.ops_per_thread, flags_.injection}).Run();
      working.fetch_sub(1, kRelaxed);
    });
  }
  for (int tick = 0; working.load(kRelaxed) > 0; ++tick) {
    std::this_thread::sleep_for(kTick);
    if (tick % 4 == 0) PublishStatistics();
  }
  for (auto& thread : threads) thread.join();
  stop.store(true, kRelaxed);
  if (follower.joinable()) follower.join();
  PublishStatistics();
  return std::nullopt;  // a worker has reported a violation to ExpectedState
}

Violation Life::End() {
  if (oracle_.expected->failed()) return std::nullopt;
  if (plan_.verify_at_end) {
    if (auto wrong = VerifyDatabase(oracle_, store_.db(), store_.families(), {})) return "before the close: " + *wrong;
  }
  const Status status = store_.Close();
  if (!status.ok()) return "Close: " + status.ToString();
  store_.Reset();
  return std::nullopt;
}

void Life::PublishStatistics() {
  const Statistics now = store_.db()->GetStatistics();
  Counters& counters = oracle_.expected->counters();
  counters.rotations.fetch_add(now.rotations - published_.rotations, kRelaxed);
  counters.checkpoints.fetch_add(now.checkpoints - published_.checkpoints, kRelaxed);
  counters.compactions.fetch_add(now.compactions - published_.compactions, kRelaxed);
  published_ = now;
}

}  // namespace braiddb::stress
