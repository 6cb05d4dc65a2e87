#include "tools/serve/top_view.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "util/format.h"

namespace braiddb::tools {
namespace {

constexpr size_t kMaxFamilies = 20;
constexpr size_t kNameColumns = 16;

// The sum of the samples whose labels begin with `label`, if it is not empty, as the value of any label.
double Sum(const Metrics& metrics, const char* name, std::string_view label = {}) {
  const Metric* const metric = metrics.Find(name);
  double sum = 0;
  if (metric == nullptr) return sum;
  for (const MetricSample& sample : metric->samples) {
    const bool has_label =
        std::any_of(sample.labels.begin(), sample.labels.end(), [&](const auto& l) { return l.second == label; });
    if (label.empty() || has_label) sum += sample.value;
  }
  return sum;
}

std::string Bytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  return Format(unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
}

std::string Count(double count) {
  if (count < 0) return "-";
  if (count >= 1e9) return Format("%.2fG", count / 1e9);
  if (count >= 1e6) return Format("%.2fM", count / 1e6);
  return count >= 1e5 ? Format("%.1fk", count / 1e3) : Format("%.0f", count);
}

std::string Percent(double part, double all) { return all > 0 ? Format("%.1f %%", 100 * part / all) : "-"; }

// Names that hold a sample of value 1.
std::string Active(const Metrics& metrics, const char* name, const std::string& none) {
  const Metric* const metric = metrics.Find(name);
  std::string text;
  for (size_t i = 0; metric != nullptr && i < metric->samples.size(); ++i) {
    const MetricSample& sample = metric->samples[i];
    if (sample.value != 0) text += (text.empty() ? "" : ", ") + sample.labels[0].second;
  }
  return text.empty() ? none : text;
}

std::string Families(const Metrics& metrics) {
  std::string text = Format("%-16s %12s %12s %12s %12s %7s\n", "family", "memtable", "immutable", "L0", "last level", "tables");
  const Metric* const tables = metrics.Find("braiddb_l0_tables");
  for (size_t i = 0; tables != nullptr && i < tables->samples.size() && i < kMaxFamilies; ++i) {
    const std::string& name = tables->samples[i].labels[0].second;
    const auto entries = [&](std::string_view level) {
      return Count(metrics.Value("braiddb_entries", std::vector<std::string_view>{name, level}));
    };
    text += Format("%-16s %12s %12s %12s %12s %7s\n", name.substr(0, kNameColumns).c_str(), entries("memtable").c_str(),
                   entries("immutable").c_str(), entries("l0").c_str(), entries("l1").c_str(),
                   Count(tables->samples[i].value).c_str());
  }
  return text;
}

std::string Regions(const Metrics& metrics) {
  std::string text = Format("%-16s %12s %12s %12s %12s %7s\n", "region", "files", "segments", "live", "dead", "free");
  const Metric* const files = metrics.Find("braiddb_region_file_bytes");
  for (size_t i = 0; files != nullptr && i < files->samples.size(); ++i) {
    const std::string& region = files->samples[i].labels[0].second;
    const auto bytes = [&](const char* name) {
      double sum = 0;
      const Metric* const metric = metrics.Find(name);
      for (size_t k = 0; metric != nullptr && k < metric->samples.size(); ++k)
        sum += metric->samples[k].labels[0].second == region ? metric->samples[k].value : 0;
      return sum;
    };
    text += Format("%-16s %12s %12s %12s %12s %7s\n", region.c_str(), Bytes(files->samples[i].value).c_str(),
                   Bytes(bytes("braiddb_region_segments_bytes")).c_str(), Bytes(bytes("braiddb_segment_live_bytes")).c_str(),
                   Bytes(bytes("braiddb_segment_dead_bytes")).c_str(), Count(bytes("braiddb_region_free_segments")).c_str());
  }
  return text;
}

std::string Dram(const Metrics& metrics) {
  std::string text = "DRAM " + Bytes(Sum(metrics, "braiddb_dram_bytes")) + ":";
  size_t columns = text.size();
  const Metric* const parts = metrics.Find("braiddb_dram_bytes");
  for (size_t i = 0; parts != nullptr && i < parts->samples.size(); ++i) {
    const std::string part = " " + parts->samples[i].labels[0].second + " " + Bytes(parts->samples[i].value);
    if (columns + part.size() > 79) {
      text += "\n    ";
      columns = 4;
    }
    text += part;
    columns += part.size();
  }
  return text + "\n";
}

}  // namespace

double TopView::Rate(const Metrics& metrics, const char* name) const {
  if (!before_ || seconds_ <= 0) return -1;
  return std::max(0.0, Sum(metrics, name) - Sum(*before_, name)) / seconds_;
}

std::string TopView::Render(const std::string& title, const Metrics& metrics, std::chrono::steady_clock::time_point now) {
  seconds_ = before_ ? std::chrono::duration<double>(now - at_).count() : 0;
  const double gets = Sum(metrics, "braiddb_gets_total");
  const double settled = Rate(metrics, "braiddb_merged_entries_total") + Rate(metrics, "braiddb_dropped_entries_total");
  const double backlog = Sum(metrics, "braiddb_merge_backlog_entries");
  std::string text = title + "\n\n";
  text += Format("writes/s %-10s gets/s %-10s delays/s %-10s entries %s\n", Count(Rate(metrics, "braiddb_writes_total")).c_str(),
                 Count(Rate(metrics, "braiddb_gets_total")).c_str(), Count(Rate(metrics, "braiddb_write_delays_total")).c_str(),
                 Count(Sum(metrics, "braiddb_entries")).c_str());
  text += Format("back-pressure: %s\n", Active(metrics, "braiddb_writes_throttled", "none").c_str());
  text += Format("backlog %s entries, %s, time to drain %s\n", Count(backlog).c_str(),
                 Bytes(Sum(metrics, "braiddb_merge_backlog_bytes")).c_str(),
                 settled > 0 ? Format("%.1f s", backlog / settled).c_str() : "-");
  text += Format("jobs: %s\n", Active(metrics, "braiddb_job_running", "none").c_str());
  text += Format("cache hits %s, filter %s, visits local %s, remote %s\n",
                 Percent(Sum(metrics, "braiddb_lookup_cache_hits_total"), gets).c_str(),
                 Percent(Sum(metrics, "braiddb_filter_negatives_total"), gets).c_str(),
                 Count(Sum(metrics, "braiddb_node_visits_total", "local")).c_str(),
                 Count(Sum(metrics, "braiddb_node_visits_total", "remote")).c_str());
  text +=
      Format("snapshots %s, the oldest %.1f s; recovery %.3f s, %s entries replayed; damage %s\n\n",
             Count(Sum(metrics, "braiddb_snapshots")).c_str(), Sum(metrics, "braiddb_oldest_snapshot_age_seconds"),
             Sum(metrics, "braiddb_recovery_duration_seconds"), Count(Sum(metrics, "braiddb_recovery_replayed_entries")).c_str(),
             Sum(metrics, "braiddb_damage_seen") != 0 ? "SEEN" : "not seen");
  text += Families(metrics) + "\n" + Regions(metrics) + "\n" + Dram(metrics);
  before_ = metrics;
  at_ = now;
  return text;
}

}  // namespace braiddb::tools
