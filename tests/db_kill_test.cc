// kill -9 in a loop: a child writes with several threads, is killed at some moment, and whoever opens the database next finds
// every acknowledged write, each unacknowledged one whole or not at all, and goes on with it.
//
// BRAIDDB_KILL_CYCLES and BRAIDDB_KILL_SEED extend or repeat a run.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/db.h"
#include "tests/crash/shared_progress.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

using Clock = std::chrono::steady_clock;

struct KillCase {
  const char* name;
  uint32_t regions;
  uint32_t threads;
  int cycles;
};

void PrintTo(const KillCase& test, std::ostream* out) { *out << test.name; }

class DbKillTest : public testing::TestWithParam<KillCase> {
 protected:
  void SetUp() override { ASSERT_NE(progress_, nullptr); }
  void TearDown() override { SharedProgress::Delete(progress_); }

  Options RandomOptions() {
    Options options = TinyOptions(GetParam().regions);
    options.memtable_size = (16ull << 10) << random_.Uniform(3);
    options.checkpoint_tables = static_cast<uint32_t>(random_.Range(1, 4));
    options.compaction_threads = static_cast<uint32_t>(random_.Range(1, 2));
    options.l0_compaction_trigger = static_cast<uint32_t>(random_.Range(1, 3));
    return options;
  }

  // ---- In the child

  [[noreturn]] void ServeUntilKilled(const Options& options, uint64_t seed) {
    std::unique_ptr<DB> db;
    const Status status = DB::Open(options, path_, &db);
    if (!status.ok()) ExitChild("open: " + status.ToString());
    progress_->replayed += db->GetStatistics().replayed_entries;
    if (auto wrong = progress_->Check(db.get())) ExitChild(*wrong);
    progress_->serving = true;
    std::vector<std::thread> writers;
    for (uint32_t thread = 0; thread < GetParam().threads; ++thread) {
      writers.emplace_back([&, thread] { WriteForEver(db.get(), thread, seed); });
    }
    for (auto& writer : writers) writer.join();  // never
    std::abort();
  }

  void WriteForEver(DB* db, uint32_t thread, uint64_t seed) {
    Random random(seed * 10 + thread);
    for (uint64_t i = 1;; ++i) {
      uint32_t keys[SharedProgress::kMaxBatch];
      const uint32_t count = random.OneIn(8) ? static_cast<uint32_t>(random.Range(2, SharedProgress::kMaxBatch)) : 1;
      keys[0] = static_cast<uint32_t>(random.Skewed(SharedProgress::kKeys));
      for (uint32_t k = 1; k < count; ++k) keys[k] = (keys[k - 1] + 7) % SharedProgress::kKeys;
      Status status = progress_->WriteNext(db, thread, keys, count);
      if (status.ok() && random.OneIn(2000)) status = db->Flush();
      if (status.ok() && random.OneIn(2000)) status = db->CompactRange({}, nullptr, nullptr);
      if (!status.ok()) ExitChild("thread " + std::to_string(thread) + ": " + status.ToString());
      if (thread == 0 && i % 64 == 0) {
        const Statistics statistics = db->GetStatistics();
        progress_->compactions = std::max<uint64_t>(progress_->compactions, statistics.compactions);
        progress_->checkpoints = std::max<uint64_t>(progress_->checkpoints, statistics.checkpoints);
      }
    }
  }

  [[noreturn]] void ExitChild(const std::string& message) {
    progress_->Fail(message);
    _exit(1);
  }

  // ---- In the parent

  // One life of a child: from its fork to its death.
  void RunCycle(int cycle) {
    const Options options = RandomOptions();
    const uint64_t seed = random_.Next();
    const bool while_opening = random_.OneIn(5);
    const auto patience = std::chrono::microseconds(random_.Uniform(while_opening ? 20'000 : 60'000) * (kSlowdown > 1 ? 2 : 1));
    progress_->serving = false;
    std::fflush(nullptr);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) ServeUntilKilled(options, seed);

    int status = 0;
    const auto hung = Clock::now() + std::chrono::seconds(120);
    bool exited = false;
    while (!while_opening && !progress_->serving && !(exited = waitpid(child, &status, WNOHANG) == child) &&
           Clock::now() < hung) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    const bool served = progress_->serving;
    if (!exited) {
      std::this_thread::sleep_for(patience);
      killed_while_opening_ += !progress_->serving;
      kill(child, SIGKILL);
      ASSERT_EQ(waitpid(child, &status, 0), child);
    }
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        << "cycle " << cycle << ": the child ended by itself (status " << status << "): " << progress_->failure;
    ASSERT_TRUE(while_opening || served) << "cycle " << cycle << ": not serving after two minutes";
  }

  void CheckHere() {
    auto db = OpenOrFail(RandomOptions(), path_);
    ASSERT_NE(db, nullptr);
    progress_->replayed += db->GetStatistics().replayed_entries;
    const auto wrong = progress_->Check(db.get());
    ASSERT_FALSE(wrong.has_value()) << *wrong;
    // Nothing has an excuse any more: no write was in flight.
    ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
    const auto later = progress_->Check(db.get());
    ASSERT_FALSE(later.has_value()) << "after CompactRange: " << *later;
    EXPECT_EQ(IntProperty(db.get(), "braiddb.background-errors"), 0u);
    ASSERT_OK(db->Close());
  }

  // PMDK's own tool accepts the pools.
  void CheckPools() {
    if (std::system("command -v pmempool > /dev/null 2>&1") != 0) {
      std::printf("pmempool is not installed: pools not checked\n");
      return;
    }
    int pools = 0;
    for (const auto& file : RegionFiles(path_)) {
      std::string start(12, '\0');
      std::ifstream(path_ + "/" + file).read(start.data(), 12);
      if (!start.starts_with("PMEMPOOLSET")) continue;
      ++pools;
      EXPECT_EQ(std::system(("pmempool check " + path_ + "/" + file + " > " + directory_.File("check.out") + " 2>&1").c_str()), 0)
          << file << ": " << ReadFileOrDie(directory_.File("check.out"));
    }
    EXPECT_EQ(pools, static_cast<int>(GetParam().regions));
  }

  // After all those deaths nothing is left that is neither used nor free.
  void CheckThatNoSpaceIsLost() {
    auto db = OpenOrFail(RandomOptions(), path_);
    ASSERT_NE(db, nullptr);
    for (const auto& [key, value] : ScanForward(db.get())) {
      ASSERT_OK(db->Delete({}, key));
    }
    ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
    ASSERT_OK(db->Close());
    db.reset();
    db = OpenOrFail(RandomOptions(), path_);
    ASSERT_NE(db, nullptr);
    ASSERT_OK(db->CompactRange({}, nullptr, nullptr));
    EXPECT_TRUE(ScanForward(db.get()).empty());
    EXPECT_LE(IntProperty(db.get(), "braiddb.pm-bytes-in-segments"), 4ull << 20);
    ASSERT_OK(db->Close());
  }

  const uint64_t seed_ = EnvNumber("BRAIDDB_KILL_SEED", 1);
  Random random_{seed_};
  TestDirectory directory_;
  const std::string path_ = directory_.File("db");
  SharedProgress* const progress_ = SharedProgress::New();
  int killed_while_opening_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Cases, DbKillTest,
                         testing::Values(KillCase{"TwoRegionsFourThreads", 2, 4, 100}, KillCase{"OneRegionOneThread", 1, 1, 20},
                                         KillCase{"OneRegionThreeThreads", 1, 3, 20}),
                         [](const auto& test) { return test.param.name; });

// [CC-1] [CC-4] [CC-5] [CC-6] [CC-7]
TEST_P(DbKillTest, AcknowledgedWritesSurvive) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  const int cycles = static_cast<int>(EnvNumber("BRAIDDB_KILL_CYCLES", GetParam().cycles / (kSlowdown > 1 ? 2 : 1)));
  for (int cycle = 0; cycle < cycles; ++cycle) {
    ASSERT_NO_FATAL_FAILURE(RunCycle(cycle));
    if (cycle % 3 == 1) {
      ASSERT_TRUE(ChecksAsSound(path_)) << "cycle " << cycle;
    }
    if (cycle % 10 == 4) {
      ASSERT_NO_FATAL_FAILURE(CheckPools());
    }
    if (cycle % 10 == 9) {
      ASSERT_NO_FATAL_FAILURE(CheckHere()) << "cycle " << cycle;
    }
  }
  ASSERT_NO_FATAL_FAILURE(CheckHere());
  std::printf("%d kills, %d of them while opening; %llu writes, %llu entries replayed\n", cycles, killed_while_opening_,
              static_cast<unsigned long long>(progress_->writes), static_cast<unsigned long long>(progress_->replayed));
  // Otherwise nothing was tested.
  EXPECT_GT(killed_while_opening_, 0);
  EXPECT_GT(progress_->writes, static_cast<uint64_t>(cycles) * 20);
  EXPECT_GT(progress_->replayed, 0u);
  EXPECT_GT(progress_->compactions, 0u);
  EXPECT_GT(progress_->checkpoints, 0u);
  CheckThatNoSpaceIsLost();
  EXPECT_TRUE(ChecksAsSound(path_));
}

}  // namespace
}  // namespace braiddb::test
