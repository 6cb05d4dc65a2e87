// FirstLife: the process that works with a database while its power may fail at any fence.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/db.h"
#include "tests/crash/crash_workload.h"
#include "tests/crash/persist_simulator.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {

struct FirstLifeResult {
  std::string violation;
  Statistics work;
  uint64_t dropped = 0;
};

class FirstLife {
 public:
  static constexpr int kOperationsPerLane = 400;

  FirstLife(const CrashWorkload& workload, const std::string& path, const DropRule& drop, uint64_t seed)
      : workload_(workload), path_(path), drop_(drop), random_(seed) {}

  // `judge` gets each crash point while the writers wait, and says whether to go on.
  FirstLifeResult Run(const std::function<bool(const CrashPoint&)>& judge) {
    FirstLifeResult result;
    std::filesystem::remove_all(path_);
    CrashOracle oracle(CrashWorkload::kLanes);
    PersistSimulator::Options options;
    options.seed = random_.Next();
    options.drop = drop_;
    PersistSimulator simulator(path_, options, CrashWorkload::NoteAllowed(&oracle));
    std::unique_ptr<DB> db;
    const Status opened = CrashWorkload::OpenWatched(workload_.DatabaseOptions(&random_), path_, &simulator, &db);
    if (!opened.ok()) return {"creating the database: " + opened.ToString(), {}, 0};

    Gate gate;
    std::atomic<size_t> working{CrashWorkload::kLanes};
    std::atomic<bool> stop{false};
    std::array<Status, CrashWorkload::kLanes> statuses;
    std::vector<std::thread> writers;
    for (size_t lane = 0; lane < CrashWorkload::kLanes; ++lane) {
      writers.emplace_back([&, lane, seed = random_.Next()] {
        statuses[lane] = workload_.Work(db.get(), &oracle, lane, kOperationsPerLane, seed, [&] {
          gate.Pass();
          return !stop;
        });
        --working;
      });
    }
    while (working > 0) {
      if (!simulator.HasPoints()) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        continue;
      }
      gate.Set(false);
      for (const auto& point : simulator.TakePoints()) stop = stop || !judge(point);
      gate.Set(true);
    }
    for (auto& writer : writers) writer.join();
    for (const Status& status : statuses) {
      if (!status.ok()) result.violation = "working with the database: " + status.ToString();
    }
    if (!stop) simulator.CaptureNow("at the end");
    result.work = db->GetStatistics();
    if (Status status = db->Close(); !status.ok()) result.violation = "closing the database: " + status.ToString();
    db.reset();
    result.dropped = simulator.dropped();
    for (const auto& point : simulator.TakePoints()) stop = stop || !judge(point);
    return result;
  }

 private:
  // Lets the writers of the first database pass only while nobody looks at images.
  class Gate {
   public:
    void Pass() {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return open_; });
    }
    void Set(bool open) {
      std::lock_guard lock(mutex_);
      open_ = open;
      changed_.notify_all();
    }

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_ = true;
  };

  const CrashWorkload& workload_;
  const std::string path_;
  const DropRule drop_;
  Random random_;
};

}  // namespace braiddb::test
