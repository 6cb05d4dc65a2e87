#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "db_bench/results.h"

namespace braiddb::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kPercentiles[] = {50, 75, 90, 95, 99, 99.9, 99.99};
constexpr const char* kPercentileNames[] = {"P50", "P75", "P90", "P95", "P99", "P99.9", "P99.99"};

Json ToJson(const Environment& environment) {
  return {{"date", environment.date},
          {"cpu", environment.cpu},
          {"cpus", environment.cpus},
          {"cpu_cache", environment.cpu_cache},
          {"numa_nodes", environment.numa_nodes},
          {"memory_bytes", environment.memory_bytes},
          {"kernel", environment.kernel},
          {"huge_pages", environment.huge_pages},
          {"file_system", environment.file_system},
          {"device", environment.device},
          {"version", environment.version},
          {"commit", environment.commit},
          {"compiler", environment.compiler},
          {"warnings", environment.warnings}};
}

// In microseconds. An element [a, b] of the distribution function: the share b took at most a.
Json ToJson(const Histogram& histogram) {
  constexpr double kMicro = 1000;
  Json percentiles = Json::object();
  for (size_t i = 0; i < std::size(kPercentiles); ++i) {
    percentiles[kPercentileNames[i]] = histogram.Percentile(kPercentiles[i]) / kMicro;
  }
  Json distribution = Json::array();
  uint64_t below = 0;
  histogram.ForEachBucket([&](double, double upper, uint64_t count) {
    below += count;
    distribution.push_back({upper / kMicro, static_cast<double>(below) / static_cast<double>(histogram.count())});
  });
  return {{"count", histogram.count()},
          {"average", histogram.Average() / kMicro},
          {"standard_deviation", histogram.StandardDeviation() / kMicro},
          {"min", static_cast<double>(histogram.min()) / kMicro},
          {"max", static_cast<double>(histogram.max()) / kMicro},
          {"percentiles", percentiles},
          {"distribution", distribution}};
}

Json ToJson(const std::vector<SineRate::Demand>& demands) {
  Json json = Json::array();
  for (const SineRate::Demand& demand : demands) json.push_back({demand.seconds, demand.rate});
  return json;
}

// A table: column names, of which the first is the time, and one row per sample.
Json StateOf(const Samples& samples) {
  Json names = Json::array({"seconds"}), rows = Json::array();
  for (const std::string& name : samples.names) names.push_back(name);
  for (const Sample& sample : samples.list) {
    Json row = Json::array({sample.seconds});
    for (const uint64_t value : sample.state) row.push_back(value);
    rows.push_back(std::move(row));
  }
  return {{"names", std::move(names)}, {"samples", std::move(rows)}};
}

Json ToJson(const Result& result) {
  const Measurement& measured = result.measured;
  Json json{{"engine", result.engine},
            {"round", result.round},
            {"benchmark", result.benchmark},
            {"threads", result.threads},
            {"operations", measured.operations},
            {"seconds", measured.seconds},
            {"ops_per_second", measured.OperationsPerSecond()},
            {"micros_per_op", measured.micros_per_operation},
            {"bytes", measured.bytes},
            {"written_bytes", result.written},
            {"user_seconds", result.user_seconds},
            {"system_seconds", result.system_seconds},
            {"huge_page_bytes", result.huge_page_bytes},
            {"cpu_micros_per_op", measured.CpuMicrosPerOperation()}};
  if (result.reader_processes > 0) json["reader_processes"] = result.reader_processes;
  if (measured.background_ops_per_second > 0) json["background_ops_per_second"] = measured.background_ops_per_second;
  if (measured.verified > 0) json["verified"] = measured.verified;
  if (measured.settled_seconds > 0) {
    json["settled_seconds"] = measured.settled_seconds;
    json["settled_ops_per_second"] = measured.SettledOperationsPerSecond();
    json["settled_cpu_micros_per_op"] = measured.SettledCpuMicrosPerOperation();
  }
  if (measured.found) {
    json["found"] = *measured.found;
    json["looked_up"] = measured.looked_up;
  }
  if (!measured.message.empty()) json["message"] = measured.message;
  Json latencies = Json::object();
  for (size_t i = 0; i < kOperations; ++i) {
    const Histogram& histogram = measured.latencies_ns[i];
    if (histogram.count() > 0) latencies[NameOf(static_cast<Operation>(i))] = ToJson(histogram);
  }
  json["latencies_us"] = std::move(latencies);
  Json progress = Json::array();
  for (const Sample& sample : result.samples.list) progress.push_back({sample.seconds, sample.operations});
  json["progress"] = std::move(progress);
  if (!result.samples.list.empty()) json["state"] = StateOf(result.samples);
  json["counters"] = Json::object();
  for (const Figure& figure : result.counters) json["counters"][figure.name] = figure.value;
  if (!measured.perf.figures().empty()) json["perf_context"] = Json::object();
  for (const Figure& figure : measured.perf.figures()) json["perf_context"][figure.name] = figure.value;
  if (!result.demands.empty()) json["demanded_rate"] = ToJson(result.demands);
  if (!result.write_demands.empty()) json["demanded_write_rate"] = ToJson(result.write_demands);
  return json;
}

}  // namespace

bool WriteJson(const std::string& path, const Flags& flags, const Environment& environment,
               const std::vector<EngineDescription>& engines, const std::vector<Result>& results,
               const std::vector<Failure>& failures) {
  Json document{{"program", "db_bench"}, {"format", 1}, {"environment", ToJson(environment)}, {"command", flags.command_line}};
  document["flags"] = Json::object();
  for (const auto& [name, value] : flags.values) document["flags"][name] = value;
  document["engines"] = Json::array();
  for (const EngineDescription& engine : engines) {
    document["engines"].push_back({{"engine", engine.engine},
                                   {"version", engine.version},
                                   {"settings", engine.settings},
                                   {"survives", engine.durability},
                                   {"pages", engine.pages}});
  }
  document["runs"] = Json::array();
  for (const Result& result : results) document["runs"].push_back(ToJson(result));
  document["failures"] = Json::array();
  for (const Failure& failure : failures) {
    document["failures"].push_back({{"engine", failure.engine}, {"round", failure.round}, {"what", failure.what}});
  }
  std::ofstream file(path);
  file << document.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
  file.close();
  if (file) return true;
  std::fprintf(stderr, "db_bench: cannot write --json=%s: %m\n", path.c_str());
  return false;
}

}  // namespace braiddb::bench
