// index_bench: measures NV-Tree and LB+-Tree without a database, beside LCB+Tree and CDDS-Tree (NV-Tree, FAST '15, section 4).
#include <algorithm>
#include <cstdio>
#include <fstream>

#include "index_bench/workload.h"
#include "util/standard_streams.h"

namespace braiddb {
namespace {

class Report {
 public:
  explicit Report(const IndexBenchFlags& flags) : flags_(flags) {
    if (!flags.csv.empty()) csv_.open(flags.csv);
    if (csv_.is_open())
      csv_ << "tree,node_bytes,benchmark,ops_per_second,lines,fences,xplines,rebuilds,rebuild_seconds,dram_bytes\n";
  }
  bool ok() const { return flags_.csv.empty() || csv_.is_open(); }

  void Header() const {
    std::printf("%llu keys, %s, median of %llu; lines, fences and XPLines per operation\n\n",
                static_cast<unsigned long long>(flags_.num), flags_.flush_invalidates ? "clflush" : "clwb",
                static_cast<unsigned long long>(flags_.rounds));
    std::printf("%-6s %-8s %-7s %12s %8s %8s %8s %9s %10s %9s\n", "nodes", "op", "tree", "ops/s", "lines", "fences", "XPLines",
                "rebuilds", "in them", "DRAM MiB");
  }

  // `timed`: one element per round.
  void Add(uint32_t node_bytes, const std::vector<IndexMeasurements>& timed, const IndexMeasurements& counted) {
    for (size_t i = 0; i < flags_.benchmarks.size(); ++i) {
      for (const IndexKind kind : flags_.trees) {
        std::vector<double> speeds;
        for (const IndexMeasurements& round : timed) {
          const IndexMeasurement& measured = round.at(kind)[i];
          speeds.push_back(static_cast<double>(measured.operations) / measured.seconds);
        }
        std::nth_element(speeds.begin(), speeds.begin() + static_cast<std::ptrdiff_t>(speeds.size() / 2), speeds.end());
        const IndexMeasurement& last = timed.back().at(kind)[i];
        const auto found = counted.find(kind);
        Line(node_bytes, kind, speeds[speeds.size() / 2], last, found == counted.end() ? nullptr : &found->second[i]);
      }
    }
    std::fflush(stdout);
  }

 private:
  void Line(uint32_t node_bytes, IndexKind kind, double speed, const IndexMeasurement& timed, const IndexMeasurement* counted) {
    const auto per_operation = [&](uint64_t count) { return static_cast<double>(count) / static_cast<double>(timed.operations); };
    const double lines = counted == nullptr ? 0 : per_operation(counted->lines);
    const double fences = counted == nullptr ? 0 : per_operation(counted->fences);
    const double xp_lines = counted == nullptr ? 0 : per_operation(counted->xp_lines);
    const double rebuild_seconds = static_cast<double>(timed.stats.rebuild_ns) * 1e-9;
    std::printf("%-6u %-8s %-7s %12.0f %8.2f %8.2f %8.2f %9llu %8.2f %% %9.2f\n", node_bytes, timed.benchmark.c_str(),
                NameOf(kind), speed, lines, fences, xp_lines, static_cast<unsigned long long>(timed.stats.rebuilds),
                100 * rebuild_seconds / timed.seconds, static_cast<double>(timed.stats.dram_bytes) / (1 << 20));
    if (!csv_.is_open()) return;
    csv_ << NameOf(kind) << ',' << node_bytes << ',' << timed.benchmark << ',' << speed << ',' << lines << ',' << fences << ','
         << xp_lines << ',' << timed.stats.rebuilds << ',' << rebuild_seconds << ',' << timed.stats.dram_bytes << std::endl;
  }

  const IndexBenchFlags& flags_;
  std::ofstream csv_;
};

int Run(const IndexBenchFlags& flags) {
  Report report(flags);
  if (!report.ok()) {
    std::fprintf(stderr, "index_bench: cannot write %s\n", flags.csv.c_str());
    return 1;
  }
  report.Header();
  for (const uint32_t node_bytes : flags.node_bytes) {
    std::vector<IndexMeasurements> timed;
    IndexMeasurements counted;
    for (uint64_t round = 0; round < flags.rounds + flags.count; ++round) {
      const bool count = round == flags.rounds;
      const std::string error = RunRound(flags, node_bytes, count, count ? &counted : &timed.emplace_back());
      if (!error.empty()) {
        std::fprintf(stderr, "index_bench: %s\n", error.c_str());
        return 1;
      }
    }
    report.Add(node_bytes, timed, counted);
  }
  return 0;
}

}  // namespace
}  // namespace braiddb

int main(int argc, char** argv) {
  braiddb::OpenStandardStreams();
  braiddb::IndexBenchFlags flags;
  auto exit_code = braiddb::ParseIndexBenchFlags(argc, argv, &flags);
  if (!exit_code) exit_code = braiddb::Run(flags);
  return braiddb::FinishStandardOutput("index_bench", *exit_code, 1);
}
