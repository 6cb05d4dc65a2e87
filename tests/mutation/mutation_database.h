// The small databases whose words are mutated, and what they hold.
#pragma once

#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "braiddb/check.h"
#include "braiddb/db.h"
#include "db/test_hooks.h"
#include "tests/support/db_test_util.h"
#include "util/sync_point.h"

namespace braiddb::test {

enum class Life : uint8_t {
  kClosed,   // closed cleanly: last level, tables of L0, nothing to replay
  kKilled,   // with log behind the boundary, in open segments
  kMerging,  // killed in a merge: a batch of the journal recorded and not yet done; entries marked that the tree still has
  kMerged,   // … and done; and the tree has it
};

inline const char* NameOf(Life life) {
  static constexpr const char* kNames[] = {"Closed", "Killed", "Merging", "Merged"};
  return kNames[static_cast<int>(life)];
}

// A thread that writes to another region than the one that makes it, if there is another one.
class OtherThread {
 public:
  explicit OtherThread(const RegionSet* regions)
      : regions_(regions), home_(regions->HomeRegion()), thread_([this] { Start(1); }) {}
  ~OtherThread() {
    Run({});
    thread_.join();
  }
  OtherThread(const OtherThread&) = delete;
  OtherThread& operator=(const OtherThread&) = delete;

  // Returns when it is done. An empty task ends the thread.
  void Run(std::function<void()> task) {
    std::unique_lock lock(mutex_);
    task_ = std::move(task);
    has_task_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !has_task_; });
  }

 private:
  // Which region is a new thread's depends on how many there are, those of the database included.
  void Start(int started) {
    constexpr int kMostThreads = 8;
    if (regions_->HomeRegion() == home_ && regions_->count() > 1 && started < kMostThreads) {
      std::thread next([this, started] { Start(started + 1); });
      next.join();
      return;
    }
    for (bool more = true; more;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return has_task_; });
      more = static_cast<bool>(task_);
      if (more) task_();
      has_task_ = false;
      changed_.notify_all();
    }
  }

  const RegionSet* const regions_;
  const uint32_t home_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> task_;
  bool has_task_ = false;
  std::thread thread_;  // the last member: it uses the others
};

// GOAL   Every structure of the format in one database of a few hundred entries: last level, L0, a log to replay, batches,
//        deletions, older versions, free and sealed and open segments, segments of their own. With `families` there are column
//        families beside the default one, of two kinds of last level and of two orders, and one that was dropped just before
//        the process was killed.
// The last write of each thread may be missing after damage: what is damaged there cannot be told from a write that was cut off.
class MutationDatabase {
 public:
  static constexpr uint32_t kRegions = 2;
  static constexpr uint64_t kKeys = 600;  // all keys are NumberedKeys below this, or optional
  using Content = std::map<std::string, std::string>;

  explicit MutationDatabase(Life life, uint32_t regions = kRegions, L1Kind l1 = TestedL1(), bool families = false)
      : life_(life), regions_(regions), l1_(l1) {
    if (families) {
      ColumnFamilyOptions other(options());
      other.comparator = ReverseBytewiseComparator();
      families_.push_back({"other", other});
      ColumnFamilyOptions tree(options());
      tree.l1 = l1 == L1Kind::kNvTree ? L1Kind::kBraidedSkipList : L1Kind::kNvTree;
      families_.push_back({"of another kind", tree});
      expected_.resize(1 + families_.size());
    }
    Plan();
  }

  Options options() const {
    Options options = MakeOptions(regions_);
    options.l1 = l1_;
    return options;
  }
  static Options MakeOptions(uint32_t regions = kRegions) {
    Options options = TinyOptions(regions);
    options.disable_auto_compaction = true;
    options.checkpoint_tables = 1000;
    options.max_region_size = 64ull << 20;
    options.initial_region_size = 8ull << 20;  // so that it has free segments
    return options;
  }

  // Makes it in a child process. `older`: gets a copy of it, in an earlier state.
  testing::AssertionResult Make(const std::string& path, const std::string& older) const {
    const int exit = RunInChild([&] { return Live(path, older); });
    if (exit != 0) return testing::AssertionFailure() << "the process that makes the database ended with " << exit;
    return ChecksAsSound(path);
  }

  // Beside the default one.
  const std::vector<ColumnFamilyDescriptor>& families() const { return families_; }
  // Of the default family, or of families()[family - 1].
  const Content& expected(size_t family = 0) const { return expected_[family]; }
  // Keys that need not be there, of the default family.
  const std::set<std::string>& optional() const { return optional_; }

 private:
  struct Step {
    enum Kind : uint8_t { kBatch, kFlush, kMerge, kCopy, kDrop } kind;
    WriteBatch batch;
  };
  using Handles = std::vector<std::unique_ptr<ColumnFamilyHandle>>;

  // Ids are given in the order of creation.
  void Put(WriteBatch* batch, int key, int version, size_t size, size_t family = 0) {
    const std::string value = PatternedValue(static_cast<uint64_t>(key * 1000 + version), size);
    batch->PutCF(static_cast<uint32_t>(family), NumberedKey(static_cast<uint64_t>(key)), value);
    if (family < expected_.size()) expected_[family][NumberedKey(static_cast<uint64_t>(key))] = value;
  }
  void Delete(WriteBatch* batch, int key, size_t family = 0) {
    batch->DeleteCF(static_cast<uint32_t>(family), NumberedKey(static_cast<uint64_t>(key)));
    expected_[family].erase(NumberedKey(static_cast<uint64_t>(key)));
  }
  void Add(Step::Kind kind, const WriteBatch& batch = {}) { steps_.push_back({kind, batch}); }

  bool DiesInMerge() const { return life_ == Life::kMerging || life_ == Life::kMerged; }
  // A closed one would have forgotten the family, or not, as it happens.
  bool Drops() const { return !families_.empty() && life_ != Life::kClosed; }

  // `keys` updates from key `first` on, each `stride` behind the one before: single ones, some in batches, some deletions; in all
  // families in turn, and batches across them.
  void Updates(int first, int stride, int keys, int version) {
    for (int i = 0; i < keys; ++i) {
      WriteBatch batch;
      const int members = i % 10 == 9 ? 3 : 1;
      for (int member = 0; member < members; ++member) {
        const int key = first + stride * i + member;
        const size_t family = static_cast<size_t>(i + member) % expected_.size();
        if ((i + version) % 7 == 6) {
          Delete(&batch, key, family);
        } else {
          Put(&batch, key, version, static_cast<size_t>(8 + key % 60), family);
        }
      }
      Add(Step::kBatch, batch);
    }
  }

  void Plan() {
    Updates(0, 1, 120, 1);
    WriteBatch large;
    Put(&large, 500, 1, 100'000);  // more than a quarter of a segment: one of its own
    Add(Step::kBatch, large);
    if (Drops()) {
      WriteBatch gone;
      for (int key = 0; key < 10; ++key) Put(&gone, key, 1, 20, expected_.size());
      Add(Step::kBatch, gone);
    }
    Add(Step::kFlush);
    Add(Step::kMerge);
    Add(Step::kCopy);
    Updates(3, 2, 40, 2);
    Add(Step::kFlush);
    Updates(0, 5, 30, 3);
    Add(Drops() ? Step::kDrop : Step::kFlush);  // a drop flushes, too
    if (DiesInMerge()) {
      Add(Step::kMerge);
    } else {
      Updates(1, 4, 30, 4);
    }
  }

  const char* PointToDieAt() const {
    const bool is_merging = life_ == Life::kMerging;
    switch (l1_) {
      case L1Kind::kBraidedSkipList:
        return is_merging ? "MergeJournal::Apply:Recorded" : "MergeJournal::Apply:Done";
      case L1Kind::kNvTree:
      case L1Kind::kHybrid:
      case L1Kind::kLbTree:
        return is_merging ? "LevelMerge:Marked" : "LevelMerge:Applied";
      case L1Kind::kSortedRuns:
        return is_merging ? "SortedRuns::Commit:Written" : "SortedRuns::Commit:Linked";
    }
    return "";
  }

  int Live(const std::string& path, const std::string& older) const {
    std::vector<ColumnFamilyDescriptor> descriptors = families_;
    if (Drops()) descriptors.push_back({"dropped", ColumnFamilyOptions(options())});
    Options creating = options();
    creating.create_missing_column_families = true;
    std::unique_ptr<DB> db;
    Handles handles;  // while there is one of the family that was dropped, what it has stays as it is
    if (!DB::Open(creating, path, descriptors, &handles, &db).ok()) return 1;
    int merges = 0;
    size_t batches = 0;
    SyncPoints::Instance().SetCallback(PointToDieAt(), [&](void*) {
      // With families, not in the merge of the first.
      if (DiesInMerge() && merges == 2 && ++batches == 1 + std::min<size_t>(1, families_.size())) _exit(0);
    });
    SyncPoints::Instance().Enable();
    int failures = 0;
    size_t turn = 0;
    // Two threads take turns, so that each region has entries.
    OtherThread other(RegionsOf(db.get()));
    const auto work = [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) failures += Take(steps_[i], db.get(), handles, path, older, &merges) ? 0 : 1;
    };
    while (turn < steps_.size()) {
      const size_t end = std::min(turn + 5, steps_.size());
      if (turn / 5 % 2 == 0) {
        work(turn, end);
      } else {
        other.Run([&] { work(turn, end); });
      }
      turn = end;
    }
    if (life_ == Life::kKilled) {
      // The last write of each thread.
      if (!db->Put({}, "last0", "0").ok()) return 3;
      other.Run([&] { failures += db->Put({}, "last1", "1").ok() ? 0 : 1; });
      _exit(failures == 0 ? 0 : 2);
    }
    if (DiesInMerge()) return 4;  // it did not get to the merge
    handles.clear();
    return failures == 0 && db->Close().ok() ? 0 : 2;
  }

  static bool Take(const Step& step, DB* db, const Handles& handles, const std::string& path, const std::string& older,
                   int* merges) {
    CompactRangeOptions no_sweep;
    no_sweep.sweep_last_level = false;
    switch (step.kind) {
      case Step::kBatch:
        return db->Write({}, step.batch).ok();
      case Step::kFlush:
        return db->Flush().ok();
      case Step::kMerge:
        ++*merges;
        return db->CompactRange(no_sweep, nullptr, nullptr).ok();
      case Step::kDrop:
        return db->DropColumnFamily(handles.back().get()).ok();
      case Step::kCopy:
        CopyDatabase(path, older);
        return true;
    }
    return false;
  }

  const Life life_;
  const uint32_t regions_;
  const L1Kind l1_;
  std::vector<ColumnFamilyDescriptor> families_;
  std::vector<Step> steps_;
  std::vector<Content> expected_ = std::vector<Content>(1);  // by family
  std::set<std::string> optional_ = {"last0", "last1"};
};

}  // namespace braiddb::test
