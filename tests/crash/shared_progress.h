// What writers were doing when they were killed: counters in memory that outlives them, and the check of a database against them.
//
// Every key belongs to one thread and has versions; what a version holds (a value or nothing) follows from key and version.
// Before a write the thread notes its intent, after the acknowledgement it notes that. x86 keeps a thread's stores in order, and
// a killed process loses none, so at any instant: a key holds its acknowledged version, or, if a write was under way, the
// intended one; and of the keys of one write all hold the new version or none does.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <new>
#include <optional>
#include <string>

#include "braiddb/db.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {

class SharedProgress {
 public:
  static constexpr uint32_t kThreads = 4;
  static constexpr uint32_t kKeys = 150;  // of each thread
  static constexpr uint32_t kMaxBatch = 12;

  // Lives in memory shared with all children forked later; released by Delete.
  static SharedProgress* New() {
    void* memory = mmap(nullptr, sizeof(SharedProgress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : new (memory) SharedProgress();
  }
  static void Delete(SharedProgress* progress) { munmap(progress, sizeof(SharedProgress)); }

  // ---- The writers' side. `keys` are distinct; all are written by one DB::Write, or one by Put or Delete.

  Status WriteNext(DB* db, uint32_t thread, const uint32_t* keys, uint32_t count) {
    Lane& lane = lanes_[thread];
    for (uint32_t i = 0; i < count; ++i) {
      lane.in_flight[i] = keys[i];
      lane.keys[keys[i]].intended.store(++lane.last_version, std::memory_order_release);
    }
    lane.in_flight_count.store(count, std::memory_order_release);
    Status status;
    if (count == 1) {
      const auto value = Content(thread, keys[0], lane.keys[keys[0]].intended);
      status = value ? db->Put({}, Key(thread, keys[0]), *value) : db->Delete({}, Key(thread, keys[0]));
    } else {
      WriteBatch batch;
      for (uint32_t i = 0; i < count; ++i) {
        const auto value = Content(thread, keys[i], lane.keys[keys[i]].intended);
        value ? batch.Put(Key(thread, keys[i]), *value) : batch.Delete(Key(thread, keys[i]));
      }
      status = db->Write({}, batch);
    }
    if (!status.ok()) return status;
    for (uint32_t i = 0; i < count; ++i) {
      VersionedKey& key = lane.keys[keys[i]];
      key.acknowledged.store(key.intended.load(std::memory_order_relaxed), std::memory_order_release);
    }
    lane.in_flight_count.store(0, std::memory_order_release);
    writes.fetch_add(1, std::memory_order_relaxed);
    return status;
  }

  // ---- The judge's side, when no writer lives

  // Nothing, or what is wrong. What is found is taken as acknowledged from now on: it must never change again by itself.
  std::optional<std::string> Check(DB* db) {
    const Pairs forward = ScanForward(db);
    Pairs backward = ScanBackward(db);
    if (!std::equal(forward.begin(), forward.end(), backward.rbegin(), backward.rend()))
      return "forward and backward scans differ";
    std::map<std::string, std::string> content;
    for (const auto& [key, value] : forward) {
      if (!content.emplace(key, value).second) return "twice in a scan: " + key;
    }
    for (uint32_t thread = 0; thread < kThreads; ++thread) {
      if (auto wrong = CheckLane(thread, &content)) return wrong;
      for (uint32_t key = 0; key < kKeys; ++key) {
        const auto expected = Content(thread, key, lanes_[thread].keys[key].acknowledged);
        const std::string got = GetOrText(db, Key(thread, key));
        if (got != expected.value_or("<not found>"))
          return "Get differs from the scan: " + Key(thread, key) + " = " + Printable(got);
      }
    }
    if (!content.empty()) return "never written: " + Printable(content.begin()->first);
    return std::nullopt;
  }

  static std::string Key(uint32_t thread, uint32_t key) { return "t" + std::to_string(thread) + "/" + NumberedKey(key); }

  // Nothing: deleted, or (version 0) not there yet.
  static std::optional<std::string> Content(uint32_t thread, uint32_t key, uint64_t version) {
    const uint64_t hash = (version * 1000 + key * 4 + thread) * 0x9e3779b97f4a7c15;
    if (version == 0 || (hash >> 60) < 3) return std::nullopt;
    size_t size = (hash >> 40) % 300;
    if ((hash >> 20) % 200 == 0) size = 5000;
    if ((hash >> 20) % 3000 == 1) size = 300'000;  // more than a segment
    return PatternedValue(hash, size);
  }

  // ---- Messages between the processes

  std::atomic<bool> serving{false};  // the child has opened and checked the database
  std::atomic<uint64_t> writes{0};
  std::atomic<uint64_t> replayed{0};
  std::atomic<uint64_t> compactions{0};
  std::atomic<uint64_t> checkpoints{0};
  char failure[2000] = {};

  void Fail(const std::string& message) { std::strncpy(failure, message.c_str(), sizeof(failure) - 1); }

 private:
  struct VersionedKey {
    std::atomic<uint64_t> acknowledged{0};
    std::atomic<uint64_t> intended{0};
  };
  struct Lane {
    uint64_t last_version = 0;  // never used again, also if its write was lost
    std::atomic<uint32_t> in_flight_count{0};
    uint32_t in_flight[kMaxBatch] = {};
    VersionedKey keys[kKeys];
  };

  std::optional<std::string> CheckLane(uint32_t thread, std::map<std::string, std::string>* content) {
    Lane& lane = lanes_[thread];
    const auto holds = [&](uint32_t key, uint64_t version) {
      const auto expected = Content(thread, key, version);
      const auto found = content->find(Key(thread, key));
      return expected ? found != content->end() && found->second == *expected : found == content->end();
    };
    const uint32_t in_flight = lane.in_flight_count;
    bool all_old = true, all_new = true;
    for (uint32_t i = 0; i < in_flight; ++i) {
      const VersionedKey& key = lane.keys[lane.in_flight[i]];
      const bool acknowledged = key.acknowledged == key.intended;  // killed while it noted the acknowledgement
      all_old = all_old && !acknowledged && holds(lane.in_flight[i], key.acknowledged);
      all_new = all_new && holds(lane.in_flight[i], key.intended);
    }
    if (!all_old && !all_new)
      return "torn write of thread " + std::to_string(thread) + " over " + std::to_string(in_flight) + " keys";
    if (all_new) {
      for (uint32_t i = 0; i < in_flight; ++i) {
        VersionedKey& key = lane.keys[lane.in_flight[i]];
        key.acknowledged = key.intended.load();
      }
    }
    lane.in_flight_count = 0;
    for (uint32_t key = 0; key < kKeys; ++key) {
      VersionedKey& versions = lane.keys[key];
      if (!holds(key, versions.acknowledged)) {
        const auto found = content->find(Key(thread, key));
        return Key(thread, key) + " should hold version " + std::to_string(versions.acknowledged) + " (intended " +
               std::to_string(versions.intended) + "), but has " +
               (found == content->end() ? "nothing" : Printable(found->second));
      }
      versions.intended = versions.acknowledged.load();
      content->erase(Key(thread, key));
    }
    return std::nullopt;
  }

  Lane lanes_[kThreads];
};

}  // namespace braiddb::test
