#include "db_bench/perf_counters.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace braiddb::bench {

namespace {

// RocksDB's names of times end in one of these. All times are nanoseconds.
const char* UnitOf(std::string_view name) {
  if (name.ends_with("_time") || name.ends_with("_nanos")) return " ns";
  return name.ends_with("_bytes") || name.ends_with("_byte") ? " bytes" : "";
}

}  // namespace

void PerfCounters::Add(const std::string& name, uint64_t value) {
  const auto known = std::ranges::find(figures_, name, &Figure::name);
  if (known == figures_.end()) {
    figures_.push_back({name, value});
  } else {
    known->value += value;
  }
}

void PerfCounters::Add(std::string_view report) {
  constexpr std::string_view kIs = " = ", kEnd = ", ";
  while (!report.empty()) {
    const size_t end = std::min(report.find(kEnd), report.size());
    const std::string_view counter = report.substr(0, end);
    report.remove_prefix(std::min(report.size(), end + kEnd.size()));
    const size_t is = counter.find(kIs);
    uint64_t value = 0;
    if (is == std::string_view::npos) continue;
    const char* const number = counter.data() + is + kIs.size();
    const auto parsed = std::from_chars(number, counter.data() + counter.size(), value);
    if (parsed.ec == std::errc() && value != 0) Add(std::string(counter.substr(0, is)), value);
  }
}

void PerfCounters::Merge(const PerfCounters& other) {
  for (const Figure& figure : other.figures_) Add(figure.name, figure.value);
}

void PerfCounters::Print(uint64_t operations) const {
  for (const auto& [name, value] : figures_) {
    const double each = static_cast<double>(value) / static_cast<double>(operations);
    std::printf("  %-40s : %14.3f%s per operation, %llu in all\n", name.c_str(), each, UnitOf(name),
                static_cast<unsigned long long>(value));
  }
}

}  // namespace braiddb::bench
