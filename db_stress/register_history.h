// RegisterHistory: checks a history of reads and writes of one key for linearizability. The check is exact and fast, because
// every write writes a unique value.
//
// From: P. B. Gibbons, E. Korach, "Testing shared memories", SIAM J. Comput. 26 (1997), section 4. With unique values, group each
// write with the reads that returned its value. Let f be the first end and s the last start in the group. If f < s, the group
// occupies the time from f to s (a forward zone). Otherwise the group can take effect at any instant from s to f (a backward
// zone). The history is linearizable if and only if no read ends before its write starts, no two forward zones overlap, and no
// backward zone lies inside a forward zone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace braiddb::stress {

// Times are ticks of one clock that all threads share. Values are arbitrary numbers, each written once. kInitial is the value
// before the first write.
class RegisterHistory {
 public:
  static constexpr uint64_t kInitial = 0;

  void AddWrite(uint64_t value, uint64_t start, uint64_t end) {
    Group& group = groups_[value];
    group.written = true;
    group.write_start = start;
    group.Add(start, end);
  }
  void AddRead(uint64_t value, uint64_t start, uint64_t end) {
    Group& group = groups_[value];
    group.first_read_end = std::min(group.first_read_end, end);
    group.Add(start, end);
  }
  void Merge(const RegisterHistory& other) {
    for (const auto& [value, group] : other.groups_) {
      Group& mine = groups_[value];
      if (group.written) {
        mine.written = true;
        mine.write_start = group.write_start;
      }
      mine.first_read_end = std::min(mine.first_read_end, group.first_read_end);
      mine.first_end = std::min(mine.first_end, group.first_end);
      mine.last_start = std::max(mine.last_start, group.last_start);
    }
  }

  // Returns a description of the violation, or nothing.
  std::optional<std::string> Violation() const {
    struct Zone {
      uint64_t low, high, value;
    };
    std::vector<Zone> forward, backward;
    for (auto [value, group] : groups_) {
      if (value == kInitial) {
        group.first_end = 0;  // written before all operations
      } else if (!group.written) {
        return "value " + std::to_string(value) + " was read but never written";
      } else if (group.first_read_end < group.write_start) {
        return "value " + std::to_string(value) + " was read before it was written";
      }
      if (group.first_end < group.last_start) {
        forward.push_back({group.first_end, group.last_start, value});
      } else {
        backward.push_back({group.last_start, group.first_end, value});
      }
    }
    std::sort(forward.begin(), forward.end(), [](const Zone& a, const Zone& b) { return a.low < b.low; });
    for (size_t i = 1; i < forward.size(); ++i) {
      if (forward[i].low < forward[i - 1].high) return Describe("came back after", forward[i - 1].value, forward[i].value);
    }
    for (const Zone& zone : backward) {
      // The last forward zone that begins before this zone. Forward zones are disjoint.
      auto after =
          std::upper_bound(forward.begin(), forward.end(), zone.low, [](uint64_t low, const Zone& f) { return low < f.low; });
      if (after == forward.begin()) continue;
      const Zone& around = *std::prev(after);
      if (zone.low > around.low && zone.high < around.high)
        return Describe("was seen around the whole life of", around.value, zone.value);
    }
    return std::nullopt;
  }

 private:
  struct Group {
    bool written = false;
    uint64_t write_start = 0;
    uint64_t first_read_end = UINT64_MAX;
    uint64_t first_end = UINT64_MAX;
    uint64_t last_start = 0;
    void Add(uint64_t start, uint64_t end) {
      first_end = std::min(first_end, end);
      last_start = std::max(last_start, start);
    }
  };

  static std::string Describe(const char* how, uint64_t a, uint64_t b) {
    return "value " + std::to_string(a) + " " + how + " value " + std::to_string(b);
  }

  std::map<uint64_t, Group> groups_;
};

}  // namespace braiddb::stress
