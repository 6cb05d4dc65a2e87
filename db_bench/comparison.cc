#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "db_bench/results.h"

namespace braiddb::bench {

namespace {

std::vector<std::string> BenchmarksOf(const std::vector<Result>& results) {
  std::vector<std::string> names;
  for (const Result& result : results) {
    if (std::find(names.begin(), names.end(), result.benchmark) == names.end()) names.push_back(result.benchmark);
  }
  return names;
}

// The median of a figure over all runs of a benchmark by an engine. Ignores values that are not positive.
template <class Figure>
double MedianOf(const std::vector<Result>& results, const std::string& engine, const std::string& benchmark, Figure figure) {
  std::vector<double> figures;
  for (const Result& result : results) {
    if (result.engine == engine && result.benchmark == benchmark) figures.push_back(figure(result.measured));
  }
  return figures.empty() ? 0 : Median(figures);
}

// Shortens a library path to the file name.
std::string LabelOf(const std::string& engine) {
  const size_t colon = engine.find(':'), slash = engine.rfind('/');
  return slash == std::string::npos ? engine : engine.substr(0, colon + 1) + engine.substr(slash + 1);
}

int WidthOf(const std::string& engine) { return std::max<int>(14, static_cast<int>(LabelOf(engine).size())); }

template <class Figure>
void PrintRow(const std::string& title, const std::vector<std::string>& engines, const std::vector<Result>& results,
              const std::string& benchmark, bool more_is_better, Figure figure) {
  double first = 0;
  std::printf("%-30s", title.c_str());
  for (size_t i = 0; i < engines.size(); ++i) {
    const double median = MedianOf(results, engines[i], benchmark, figure);
    if (i == 0) first = median;
    if (median > 0) {
      std::printf(" %*.*f", WidthOf(engines[i]), more_is_better ? 0 : 2, median);
    } else {
      std::printf(" %*s", WidthOf(engines[i]), "-");
    }
    if (i == 0) continue;
    if (const double ratio = TimesBetter(first, median, more_is_better); ratio > 0) {
      std::printf(" (%7.2f x)", ratio);
    } else {
      std::printf(" %11s", "");
    }
  }
  std::printf("\n");
}

// Whether the benchmark executes one operation only, such as waitforcompaction. Then no rate exists.
bool IsDoneOnce(const std::vector<Result>& results, const std::string& benchmark) {
  return std::all_of(results.begin(), results.end(),
                     [&](const Result& result) { return result.benchmark != benchmark || result.measured.operations == 1; });
}

// Prints the CPU time per operation, and the rate of a background writer. With --settle also rate and CPU time including the
// remaining merges.
void PrintCosts(const std::vector<std::string>& engines, const std::vector<Result>& results, const std::string& benchmark) {
  const auto settled = [](const Measurement& measured) { return measured.SettledOperationsPerSecond(); };
  const bool has_settled = std::any_of(engines.begin(), engines.end(), [&](const std::string& engine) {
    return MedianOf(results, engine, benchmark, settled) > 0;
  });
  const auto beside = [](const Measurement& measured) { return measured.background_ops_per_second; };
  if (std::any_of(engines.begin(), engines.end(),
                  [&](const std::string& engine) { return MedianOf(results, engine, benchmark, beside) > 0; }))
    PrintRow("  beside them ops/sec", engines, results, benchmark, true, beside);
  if (has_settled) PrintRow("  settled ops/sec", engines, results, benchmark, true, settled);
  PrintRow("  CPU us/op", engines, results, benchmark, false,
           [](const Measurement& measured) { return measured.CpuMicrosPerOperation(); });
  if (!has_settled) return;
  PrintRow("  CPU us/op, settled", engines, results, benchmark, false,
           [](const Measurement& measured) { return measured.SettledCpuMicrosPerOperation(); });
}

}  // namespace

double Median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  const size_t middle = numbers.size() / 2;
  return numbers.size() % 2 == 1 ? numbers[middle] : (numbers[middle - 1] + numbers[middle]) / 2;
}

double TimesBetter(double ours, double theirs, bool more_is_better) {
  if (!(ours > 0 && theirs > 0)) return 0;
  return more_is_better ? ours / theirs : theirs / ours;
}

void PrintComparison(const std::vector<std::string>& engines, const std::vector<Result>& results,
                     const std::vector<Failure>& failures) {
  std::printf("------------------------------------------------\n");
  std::printf("Medians; in brackets how many times better %s is\n%-30s", LabelOf(engines.front()).c_str(), "");
  for (size_t i = 0; i < engines.size(); ++i) {
    std::printf(" %*s%s", WidthOf(engines[i]), LabelOf(engines[i]).c_str(), i == 0 ? "" : "            ");
  }
  std::printf("\n");
  for (const std::string& benchmark : BenchmarksOf(results)) {
    if (IsDoneOnce(results, benchmark)) {
      PrintRow(benchmark + " ms", engines, results, benchmark, false,
               [](const Measurement& measured) { return measured.seconds * 1000; });
      continue;
    }
    PrintRow(benchmark + " ops/sec", engines, results, benchmark, true,
             [](const Measurement& measured) { return measured.OperationsPerSecond(); });
    PrintCosts(engines, results, benchmark);
    for (size_t i = 0; i < kOperations; ++i) {
      const auto percentile = [i](const Measurement& measured) { return measured.latencies_ns[i].Percentile(99.9) / 1000; };
      if (MedianOf(results, engines.front(), benchmark, percentile) <= 0) continue;
      PrintRow(std::string("  P99.9 of ") + NameOf(static_cast<Operation>(i)) + ", us", engines, results, benchmark, false,
               percentile);
    }
  }
  for (const Failure& failure : failures) {
    std::printf("FAILED: %s in round %u: its process %s; later rounds are without it\n", failure.engine.c_str(),
                failure.round + 1, failure.what.c_str());
  }
  std::fflush(stdout);
}

}  // namespace braiddb::bench
