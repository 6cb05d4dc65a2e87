// What came of the opens of a campaign.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "tests/mutation/mutation.h"

namespace braiddb::test {

class CampaignReport {
 public:
  // `judged`: whether a promise holds for it.
  void Add(const std::string& name, const Mutation& mutation, const Result& result, bool judged);
  void AddWords(uint64_t words) { words_ += words; }
  void Print(uint64_t controls, double seconds) const;

  uint64_t opens() const { return opens_; }
  uint64_t bad() const { return bad_; }

 private:
  using Row = std::array<uint64_t, static_cast<size_t>(Outcome::kCount)>;
  using Table = std::map<std::string, Row>;
  static void PrintTable(const char* title, const Table& table);

  uint64_t opens_ = 0;
  uint64_t bad_ = 0;
  uint64_t unpromised_ = 0;
  uint64_t words_ = 0;  // that hold data
  std::set<std::tuple<std::string, std::string, uint64_t>> seen_;
  Table by_case_;
  Table by_kind_;
  Table by_way_;
  std::map<std::string, uint64_t> by_code_;
};

}  // namespace braiddb::test
