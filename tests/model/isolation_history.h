// Is a history of transactions snapshot isolated? Exact, because every transaction that writes a key has read it before, and
// every write wrote a value of its own: so the history itself tells the order of a key's versions.
//
// From: A. Adya, "Weak consistency", MIT 1999, and A. Cerone, A. Gotsman, "Analysing snapshot isolation", PODC 2016.
// Transactions depend on each other: b reads what a wrote (wr), b writes the next version behind a's (ww), b writes the next
// version behind the one that a read (rw). The history is one of snapshot isolation if nothing that was taken back and nothing
// intermediate was read, no version has two successors, and each cycle of dependencies has two rw in a row. A cycle with just
// one rw is read skew; one with two in a row is write skew, which is permitted, and which a serializable history has not.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace braiddb::test {

// Times are ticks of one clock that all threads share.
struct TransactionRecord {
  uint64_t start = 0, end = 0;
  bool committed = false;
  bool one_view = false;                // its reads were by one snapshot: they count, too, if it did not commit
  std::map<uint32_t, uint64_t> reads;   // what it found of a key before it wrote that itself; kInitial: nothing
  std::map<uint32_t, uint64_t> writes;  // what it wrote of a key last. REQUIRES: the key is one of `reads`.
  std::set<uint64_t> overwritten;       // what it wrote and then overwrote, or took back
};

class IsolationHistory {
 public:
  static constexpr uint64_t kInitial = 0;

  void Add(TransactionRecord record) { records_.push_back(std::move(record)); }
  size_t committed() const;

  // What is wrong, or nothing. Transactions that are not committed must have left nothing.
  std::optional<std::string> Violation();
  // After Violation(), if it found none: cycles that only write skew explains; at least one if the history is not serializable.
  size_t write_skews() const { return write_skews_; }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  using Version = std::pair<uint32_t, uint64_t>;  // key, value

  std::optional<std::string> FindVersions();
  std::optional<std::string> FindDependencies();
  std::optional<std::string> FindCycles();
  // Is there a way from `from` to `to`, with or without rw?
  bool Reaches(size_t from, size_t to, bool with_rw) const;
  std::string NameOf(size_t transaction) const;

  std::vector<TransactionRecord> records_;
  std::map<Version, size_t> writers_;                         // of committed transactions
  std::map<Version, size_t> successors_;                      // who wrote the next version
  std::vector<std::vector<size_t>> before_;                   // wr and ww: who must come after each
  std::vector<std::vector<size_t>> overtakes_;                // rw
  std::vector<std::pair<size_t, size_t>> anti_dependencies_;  // rw, in pairs
  size_t write_skews_ = 0;
};

inline size_t IsolationHistory::committed() const {
  return static_cast<size_t>(
      std::count_if(records_.begin(), records_.end(), [](const auto& record) { return record.committed; }));
}

inline std::string IsolationHistory::NameOf(size_t transaction) const {
  const TransactionRecord& record = records_[transaction];
  return "transaction " + std::to_string(transaction) + " (" + std::to_string(record.start) + " to " +
         std::to_string(record.end) + ")";
}

inline std::optional<std::string> IsolationHistory::Violation() {
  writers_.clear();
  successors_.clear();
  anti_dependencies_.clear();
  before_.assign(records_.size(), {});
  overtakes_.assign(records_.size(), {});
  write_skews_ = 0;
  auto wrong = FindVersions();
  if (!wrong) wrong = FindDependencies();
  if (!wrong) wrong = FindCycles();
  return wrong;
}

inline std::optional<std::string> IsolationHistory::FindVersions() {
  for (size_t i = 0; i < records_.size(); ++i) {
    if (!records_[i].committed) continue;
    for (const auto& [key, value] : records_[i].writes) writers_[{key, value}] = i;
  }
  for (size_t i = 0; i < records_.size(); ++i) {
    if (!records_[i].committed) continue;
    for (const auto& [key, value] : records_[i].writes) {
      const auto [place, first] = successors_.emplace(Version{key, records_[i].reads.at(key)}, i);
      if (first) continue;
      return "lost update: " + NameOf(place->second) + " and " + NameOf(i) + " both wrote key " + std::to_string(key) +
             " behind its value " + std::to_string(records_[i].reads.at(key));
    }
  }
  return std::nullopt;
}

inline std::optional<std::string> IsolationHistory::FindDependencies() {
  for (size_t i = 0; i < records_.size(); ++i) {
    const TransactionRecord& record = records_[i];
    for (const auto& [key, value] : record.reads) {
      const auto writer = writers_.find({key, value});
      if (writer == writers_.end() && value != kInitial) {
        return "dirty read: " + NameOf(i) + " found the value " + std::to_string(value) + " of key " + std::to_string(key) +
               ", which no transaction has committed";
      }
      if (writer != writers_.end()) {
        if (records_[writer->second].start > record.end) return NameOf(i) + " read from the later " + NameOf(writer->second);
        if (writer->second != i && (record.committed || record.one_view)) before_[writer->second].push_back(i);
      }
      const auto next = successors_.find({key, value});
      if (next == successors_.end() || next->second == i) continue;
      if (records_[next->second].end < record.start) {
        return "stale read: " + NameOf(i) + " found the value " + std::to_string(value) + " of key " + std::to_string(key) +
               ", which " + NameOf(next->second) + " had overwritten before";
      }
      if (!record.committed && !record.one_view) continue;
      overtakes_[i].push_back(next->second);
      anti_dependencies_.emplace_back(i, next->second);
    }
  }
  return std::nullopt;
}

inline bool IsolationHistory::Reaches(size_t from, size_t to, bool with_rw) const {
  std::vector<bool> seen(records_.size(), false);
  std::vector<size_t> stack{from};
  seen[from] = true;
  while (!stack.empty()) {
    const size_t at = stack.back();
    stack.pop_back();
    if (at == to) return true;
    const auto push = [&](const std::vector<size_t>& nexts) {
      for (const size_t next : nexts) {
        // What began after `to` had ended cannot lead back to it.
        if (seen[next] || records_[next].start > records_[to].end) continue;
        seen[next] = true;
        stack.push_back(next);
      }
    };
    push(before_[at]);
    if (with_rw) push(overtakes_[at]);
  }
  return false;
}

inline std::optional<std::string> IsolationHistory::FindCycles() {
  for (size_t i = 0; i < records_.size(); ++i) {
    for (const size_t next : before_[i]) {
      if (Reaches(next, i, false)) return "circular reads: " + NameOf(i) + " and " + NameOf(next) + " saw each other's writes";
    }
  }
  for (const auto& [reader, writer] : anti_dependencies_) {
    if (Reaches(writer, reader, false)) {
      return "read skew: " + NameOf(reader) + " did not see a write of " + NameOf(writer) + ", but what comes after it";
    }
    if (Reaches(writer, reader, true)) ++write_skews_;
  }
  return std::nullopt;
}

}  // namespace braiddb::test
