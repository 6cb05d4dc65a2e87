// Metrics: all figures of a database at one moment, for an operator or a monitoring system. docs/METRICS.md lists them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
namespace braiddb {

enum class MetricType : uint8_t {
  kCounter,    // only grows while the database is open; begins with 0 at each open
  kGauge,      // a value of this moment
  kHistogram,  // a distribution since the open
};

// A row of the registry. All strings live as long as the program and are never null.
struct MetricDescription {
  const char* name;  // as in the text; counters end in "_total"
  MetricType type;
  const char* unit;     // "bytes", "seconds", "ratio", or what is counted, e.g. "entries"
  const char* labels;   // the names of the labels, with commas; "" for a metric without labels
  const char* meaning;  // one sentence without a full stop
  const char* source;   // how the value is read: from which part of the database
};

// All metrics that GetMetrics can return, in the order of the text.
std::span<const MetricDescription> AllMetrics();

struct MetricSample {
  // Name and value of each label. Bytes of family names that are not printable ASCII are written as %XX.
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;  // of a counter or gauge
  // Of a histogram only.
  struct Bucket {
    double upper_bound;  // in the metric's unit
    uint64_t count;      // the number of values below the bound; a later bucket includes all earlier ones
  };
  std::vector<Bucket> buckets;
  uint64_t count = 0;  // of all values
  double sum = 0;      // of all values, in the metric's unit
};

struct Metric {
  const MetricDescription* description;
  std::vector<MetricSample> samples;  // one for each combination of labels
};

// A segment of the log or of an index.
struct SegmentFigures {
  uint32_t region = 0;
  const char* state = "";      // "open", "sealed", "index" or "copies"
  uint64_t capacity = 0;       // bytes
  uint64_t used = 0;           // bytes of entries
  uint64_t dead = 0;           // of these, in entries that no reader needs; bytes
  bool is_dead_known = false;  // false: no entry was counted yet, so `dead` is 0
};

// Thread safety: const methods may be called concurrently.
struct Metrics {
  std::vector<Metric> all;               // in the order of AllMetrics(); metrics without samples are absent
  std::vector<SegmentFigures> segments;  // segments in use

  // Null if there is no such metric.
  const Metric* Find(std::string_view name) const;
  // The value of the counter or gauge whose labels have these values, in the order of the labels; 0 if there is no such sample.
  double Value(std::string_view name, std::span<const std::string_view> label_values = {}) const;
};

enum class MetricsFormat : uint8_t {
  kPrometheus,   // Prometheus text format 0.0.4; content type: kPrometheusContentType
  kOpenMetrics,  // OpenMetrics 1.0; content type: kOpenMetricsContentType
};
inline constexpr const char* kPrometheusContentType = "text/plain; version=0.0.4; charset=utf-8";
inline constexpr const char* kOpenMetricsContentType = "application/openmetrics-text; version=1.0.0; charset=utf-8";

// The text that a monitoring system reads from an HTTP endpoint. Every name begins with "braiddb_".
std::string MetricsText(const Metrics& metrics, MetricsFormat format = MetricsFormat::kPrometheus);

}  // namespace braiddb
#pragma GCC visibility pop
