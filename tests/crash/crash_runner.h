// CrashRunner: works with a database, lets the power fail in the middle, and looks at what comes up: over and over, also during
// recovery.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/db.h"
#include "tests/crash/crash_image.h"
#include "tests/crash/crash_oracle.h"
#include "tests/crash/crash_watch.h"
#include "tests/crash/crash_wire.h"
#include "tests/crash/crash_workload.h"
#include "tests/crash/first_life.h"
#include "tests/crash/persist_simulator.h"
#include "tests/support/db_test_util.h"
#include "util/file.h"

namespace braiddb::test {

struct CrashRunOptions {
  uint32_t regions = 2;
  uint64_t seed = 1;
  uint64_t images = 100;             // stop after so many, of first and second crashes together
  uint32_t images_per_point = 5;     // of first crashes; 2 of second ones
  uint32_t second_crash_one_in = 8;  // images whose recovery and later work is watched as well
  bool keep_images = true;           // lay the image of a violation out where it stays
  DropRule drop;                     // a bug to pretend while the database works for the first time
};

struct CrashRunResult {
  uint64_t databases = 0;
  uint64_t points = 0;
  uint64_t first_images = 0;
  uint64_t second_images = 0;
  uint64_t dirty_lines = 0;
  uint64_t dropped = 0;
  std::array<uint64_t, static_cast<size_t>(ImageKind::kCount)> by_kind{};
  Statistics work;        // of the databases that worked for the first time
  std::string violation;  // the first one; the run ends with it

  uint64_t images() const { return first_images + second_images; }
};

class CrashRunner {
 public:
  explicit CrashRunner(const CrashRunOptions& options)
      : options_(options), random_(options.seed), workload_(options.regions, &random_) {}

  CrashRunResult Run() {
    while (!Done()) RunDatabase();
    return result_;
  }

 private:
  bool Done() const { return result_.images() >= options_.images || !result_.violation.empty(); }

  // ---- The first life, in a process of its own

  // Runs a child that works with a fresh database and looks at each crash point that it reports.
  void RunDatabase() {
    ++result_.databases;
    int from_child[2], to_child[2];
    if (pipe(from_child) != 0 || pipe(to_child) != 0) return Violate("no pipes");
    const uint64_t seed = random_.Next();
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      close(from_child[0]);
      close(to_child[1]);
      CrashWatch::Forget();
      LiveInChild(seed, from_child[1], to_child[0]);
    }
    close(from_child[1]);
    close(to_child[0]);
    bool finished = false;
    for (char message = 0; !finished && Receive(from_child[0], &message);) {
      if (message == kDone) {
        ReadFirstLifeResult();
        finished = true;
      } else {
        JudgePoint(LoadPoint(point_path_));
        const char answer = Done() ? kStop : kGoOn;
        if (write(to_child[1], &answer, 1) != 1) break;
      }
    }
    if (!finished) kill(child, SIGKILL);  // it hangs, or has died already
    int status = 0;
    waitpid(child, &status, 0);
    if (!finished) Violate("the process that works with the database hung or died, status " + std::to_string(status));
    close(from_child[0]);
    close(to_child[1]);
  }

  static constexpr char kPoint = 'P', kDone = 'D', kGoOn = 'G', kStop = 'S';

  static bool Receive(int fd, char* message) {
    pollfd poll_fd = {fd, POLLIN, 0};
    return poll(&poll_fd, 1, 120'000 * kSlowdown) == 1 && read(fd, message, 1) == 1;
  }

  [[noreturn]] void LiveInChild(uint64_t seed, int to_parent, int from_parent) {
    FirstLife life(workload_, directory_.File("first"), options_.drop, seed);
    const FirstLifeResult result = life.Run([&](const CrashPoint& point) {
      SavePoint(point, point_path_);
      char answer = kStop;
      return write(to_parent, &kPoint, 1) == 1 && read(from_parent, &answer, 1) == 1 && answer == kGoOn;
    });
    WireWriter out;
    out.String(result.violation);
    out.String({reinterpret_cast<const char*>(&result.work), sizeof(result.work)});
    out.Number(result.dropped);
    WriteFileOrDie(point_path_, out.bytes());
    _exit(write(to_parent, &kDone, 1) == 1 ? 0 : 1);
  }

  void ReadFirstLifeResult() {
    WireReader in(ReadFileOrDie(point_path_));
    if (const std::string violation = in.String(); !violation.empty()) Violate(violation);
    Statistics work;
    std::memcpy(&work, in.String().data(), sizeof(work));
    Accumulate(&result_.work, work);
    result_.dropped += in.Number();
  }

  // ---- After the crash

  void JudgePoint(const CrashPoint& point) {
    ++result_.points;
    result_.dirty_lines += point.dirty.size();
    constexpr ImageKind kAlways[] = {ImageKind::kGuaranteed, ImageKind::kLines, ImageKind::kWords, ImageKind::kEverything};
    constexpr ImageKind kInTurn[] = {ImageKind::kOneLine, ImageKind::kAllButOneLine, ImageKind::kLines, ImageKind::kWords};
    for (uint32_t i = 0; i < options_.images_per_point && !Done(); ++i) {
      const ImageKind kind = i < std::size(kAlways) ? kAlways[i] : kInTurn[turn_++ % std::size(kInTurn)];
      ++result_.first_images;
      Judge(point, DrawImage(point, kind, &random_), 1);
    }
  }

  void Judge(const CrashPoint& point, const CrashImage& image, int depth) {
    ++result_.by_kind[static_cast<size_t>(image.kind)];
    const std::string text = "image " + std::to_string(result_.images()) + " (" + NameOf(image.kind) + " of " +
                             std::to_string(point.dirty.size()) + " dirty lines, taken " + point.where + ", crash " +
                             std::to_string(depth) + ", seed " + std::to_string(options_.seed) + ")";
    watch_.Set(text, &point, &image, options_.keep_images);
    std::vector<CrashPoint> second;
    const std::string wrong = Recover(point, image, depth, &second);
    if (!wrong.empty()) {
      Violate(text + ": " + wrong + "\n  dirty lines:" + DirtySummary(point) +
              (options_.keep_images ? "\n  image kept in " + CrashWatch::Keep(point, image) : ""));
    }
    watch_.Set("nothing", nullptr, nullptr, false);
    for (const auto& next : second) {
      ++result_.points;
      for (const ImageKind kind : {ImageKind::kGuaranteed, random_.OneIn(2) ? ImageKind::kLines : ImageKind::kWords}) {
        if (Done()) return;
        ++result_.second_images;
        Judge(next, DrawImage(next, kind, &random_), depth + 1);
      }
    }
  }

  static std::string DirtySummary(const CrashPoint& point) {
    std::array<int, static_cast<size_t>(RangeKind::kCount)> count{};
    for (const auto& line : point.dirty) ++count[static_cast<size_t>(line.kind)];
    std::string text;
    for (size_t kind = 0; kind < count.size(); ++kind) {
      if (count[kind] != 0) text += " " + std::to_string(count[kind]) + " " + NameOf(static_cast<RangeKind>(kind));
    }
    return text;
  }

  // Lays the image out, opens it, looks, goes on working, closes, opens again, looks again. Returns what is wrong, or "".
  // At depth 1, now and then with the simulator behind it: *second gets the crash points.
  std::string Recover(const CrashPoint& point, const CrashImage& image, int depth, std::vector<CrashPoint>* second) {
    const std::string path = directory_.File("image" + std::to_string(depth));
    WriteImage(point, image, path);
    // What is left of a creation is no database yet; open makes it anew.
    if (!FileExists(path + "/CREATING")) {
      if (const auto sound = ChecksAsSound(path); !sound) return sound.message();
    }
    CrashOracle oracle(point.allowed);
    std::unique_ptr<PersistSimulator> simulator;  // outlives the database
    if (depth == 1 && random_.OneIn(options_.second_crash_one_in)) {
      PersistSimulator::Options simulator_options;
      simulator_options.seed = random_.Next();
      simulator_options.one_in_log_fences = 25;
      simulator_options.one_in_other_fences = 6;
      simulator_options.max_waiting = 2;
      simulator = std::make_unique<PersistSimulator>(path, simulator_options, CrashWorkload::NoteAllowed(&oracle));
    }
    std::unique_ptr<DB> db;
    Status status = CrashWorkload::OpenWatched(workload_.DatabaseOptions(&random_), path, simulator.get(), &db);
    if (!status.ok()) return "open: " + status.ToString();
    std::vector<CrashContent> seen;
    if (auto wrong = CheckAllowed(db.get(), workload_.lane_keys(), oracle.Current(), &seen)) return *wrong;
    oracle.Settle(seen);

    if (std::string wrong = GoOn(db.get(), &oracle); !wrong.empty()) return wrong;
    if (auto wrong = CheckAllowed(db.get(), workload_.lane_keys(), oracle.Current(), &seen)) return "after going on: " + *wrong;
    status = db->Close();
    if (!status.ok()) return "close: " + status.ToString();
    db.reset();
    if (simulator != nullptr) *second = simulator->TakePoints();

    status = DB::Open(workload_.DatabaseOptions(&random_), path, &db);
    if (!status.ok()) return "second open: " + status.ToString();
    if (auto wrong = CheckAllowed(db.get(), workload_.lane_keys(), oracle.Current(), &seen))
      return "after the second open: " + *wrong;
    return random_.OneIn(8) ? CheckSpace(db.get()) : "";
  }

  std::string GoOn(DB* db, CrashOracle* oracle) {
    Status status = workload_.Work(db, oracle, 0, static_cast<int>(random_.Range(5, 40)), random_.Next(), [] { return true; });
    if (!status.ok()) return "working after recovery: " + status.ToString();
    // On a thread of its own, which has another home region.
    const auto count = static_cast<int>(random_.Range(5, 40));
    std::thread([&, seed = random_.Next()] { status = workload_.Work(db, oracle, 1, count, seed, [] { return true; }); }).join();
    if (!status.ok()) return "working after recovery: " + status.ToString();
    if (random_.OneIn(2)) status = db->CompactRange({}, nullptr, nullptr);
    return status.ok() ? "" : "CompactRange after recovery: " + status.ToString();
  }

  // Nothing is lost for ever: with no key left, next to no space is in use.
  std::string CheckSpace(DB* db) {
    for (const auto& keys : workload_.lane_keys()) {
      for (const auto& key : keys) {
        if (Status status = db->Delete({}, key); !status.ok()) return "delete: " + status.ToString();
      }
    }
    if (Status status = db->CompactRange({}, nullptr, nullptr); !status.ok()) return "CompactRange: " + status.ToString();
    const uint64_t used = IntProperty(db, "braiddb.pm-bytes-in-segments");
    return used <= kMostBytesWhenEmpty ? "" : "an empty database holds " + std::to_string(used) + " bytes in segments";
  }
  static constexpr uint64_t kMostBytesWhenEmpty = 4ull << 20;

  void Violate(const std::string& text) {
    if (result_.violation.empty()) result_.violation = text;
  }

  const CrashRunOptions options_;
  Random random_;
  TestDirectory directory_;
  const std::string point_path_ = directory_.File("point");
  CrashWorkload workload_;
  uint64_t turn_ = 0;  // of the image kinds that not every point gets
  CrashRunResult result_;
  CrashWatch watch_;
};

}  // namespace braiddb::test
