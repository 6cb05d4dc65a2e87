// Compaction filters while others write and read: no write is lost, nothing older comes back, and what snapshots see stays.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "tests/concurrent/concurrent_db_fixture.h"
#include "tests/concurrent/concurrent_workload.h"
#include "tests/support/db_test_util.h"
#include "tests/support/rule_filter.h"

namespace braiddb::test {
namespace {

constexpr int kWriters = 3;
constexpr int kKeys = 40;  // of each writer

std::string KeyOf(int writer, uint64_t key) { return "w" + std::to_string(writer) + NumberedKey(key); }

// What a value says of itself: "drop", "to:" or "keep", and behind that the number of its write.
std::string ValueOf(uint64_t number) {
  const char* const rules[] = {"drop", "to:", "keep", "keep"};
  return rules[number % 4] + std::to_string(number) + std::string(number % 50, 'x');
}

class DbCompactionFilterConcurrentTest : public DbConcurrentTest {
 protected:
  // Each writer reads what it wrote before, as it was or as the filter made it. Others compact, and scan.
  void Run(const RuleFilter& filter) {
    options_.compaction_filter = &filter;
    options_.max_space_amplification = 1.1;
    options_.space_slack = 0;
    Reopen();
    const int writes = 20'000 / kSlowdown;
    std::atomic<int> writing{kWriters};
    Crew crew;
    std::vector<std::map<std::string, std::string>> written(kWriters);
    for (int writer = 0; writer < kWriters; ++writer) {
      crew.Start([&, writer] {
        Random random(writer + 1);
        auto& mine = written[writer];
        for (int i = 1; i <= writes && !crew.stopped(); ++i) {
          const std::string key = KeyOf(writer, random.Uniform(kKeys));
          const std::string was = GetOrText(db_.get(), key);
          const auto known = mine.find(key);
          if (!IsOutcome(was, known == mine.end() ? nullptr : &known->second))
            return crew.Fail(key + " is " + Printable(was) + ", was " + (known == mine.end() ? "nothing" : known->second));
          if (random.OneIn(5)) {
            if (!crew.Check(db_->Delete({}, key), "delete")) return;
            mine.erase(key);
          } else {
            const std::string value = ValueOf(random.Next() % 1'000'000);
            if (!crew.Check(db_->Put({}, key, value), "put")) return;
            mine[key] = value;
          }
        }
        --writing;
      });
    }
    crew.Start([&] {
      for (int turn = 0; writing > 0 && !crew.stopped(); ++turn) {
        CompactRangeOptions options;
        options.sweep_last_level = turn % 2 == 0;
        if (!crew.Check(db_->CompactRange(options, nullptr, nullptr), "CompactRange")) return;
      }
    });
    crew.Start([&] {
      while (writing > 0 && !crew.stopped()) {
        const Snapshot* const snapshot = db_->GetSnapshot();
        ReadOptions options;
        options.snapshot = snapshot;
        const Pairs first = ScanForward(db_.get(), options);
        Pairs second = ScanBackward(db_.get(), options);
        std::reverse(second.begin(), second.end());
        db_->ReleaseSnapshot(snapshot);
        if (const std::string wrong = Compare(filter, first, second); !wrong.empty()) return crew.Fail(wrong);
      }
    });
    crew.Join();
    ASSERT_OK(db_->CompactRange({}, nullptr, nullptr));
    std::map<std::string, std::string> expected;
    for (const auto& mine : written) expected.insert(mine.begin(), mine.end());
    EXPECT_TRUE(HoldsExactly(db_.get(), RuleFilter::Outcomes(expected)));
    db_.reset();
    options_.compaction_filter = nullptr;
    Reopen();
    EXPECT_TRUE(HoldsExactly(db_.get(), RuleFilter::Outcomes(expected)));
    db_.reset();
  }

 private:
  static bool IsOutcome(const std::string& found, const std::string* written) {
    const std::string gone = "<not found>";
    if (written == nullptr) return found == gone;
    return found == *written || found == RuleFilter::Outcome(*written).value_or(gone);
  }
  // Two scans of one snapshot, the first before the second: keys may go in between, if the filter takes them, and values stay.
  static std::string Compare(const RuleFilter& filter, const Pairs& first, const Pairs& second) {
    const std::map<std::string, std::string> before(first.begin(), first.end()), after(second.begin(), second.end());
    if (before.size() != first.size() || after.size() != second.size()) return "a key twice in a scan";
    for (const auto& [key, value] : after) {
      const auto then = before.find(key);
      if (then == before.end() || then->second != value) return key + " came up in a snapshot, or changed";
    }
    for (const auto& [key, value] : before) {
      if (after.count(key) != 0) continue;
      if (!filter.IgnoreSnapshots() || RuleFilter::Outcome(value)) return key + " went from a snapshot";
    }
    return {};
  }
};

INSTANTIATE_TEST_SUITE_P(Setups, DbCompactionFilterConcurrentTest, kConcurrentSetups, NameOf);

TEST_P(DbCompactionFilterConcurrentTest, RemovalsInPlace) { Run(RuleFilter(true)); }
TEST_P(DbCompactionFilterConcurrentTest, RemovalsByWrites) { Run(RuleFilter(false)); }

}  // namespace
}  // namespace braiddb::test
