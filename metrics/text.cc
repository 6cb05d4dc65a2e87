// The text formats of Prometheus and OpenMetrics.
//
// https://prometheus.io/docs/instrumenting/exposition_formats and https://prometheus.io/docs/specs/om/open_metrics_spec
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include "braiddb/metrics.h"

namespace braiddb {
namespace {

constexpr std::string_view kTotal = "_total";

// Whole numbers up to 2^53 without an exponent, others as short as they can be read back.
void AppendNumber(double value, std::string* text) {
  constexpr double kExact = 9007199254740992.0;
  char digits[64];
  const bool is_whole = value == std::floor(value) && std::fabs(value) <= kExact;
  const auto end = is_whole ? std::to_chars(digits, digits + sizeof(digits), static_cast<int64_t>(value)).ptr
                            : std::to_chars(digits, digits + sizeof(digits), value).ptr;
  text->append(digits, end);
}

void AppendEscaped(std::string_view value, bool is_quoted, std::string* text) {
  for (const char c : value) {
    if (c == '\n') {
      text->append("\\n");
      continue;
    }
    if (c == '\\' || (c == '"' && is_quoted)) text->push_back('\\');
    text->push_back(c);
  }
}

// `bound`: the value of the label "le"; empty: there is no such label.
void AppendLine(std::string_view name, std::string_view suffix, const MetricSample& sample, std::string_view bound, double value,
                std::string* text) {
  text->append(name).append(suffix);
  const char* separator = "{";
  const auto append_label = [&](std::string_view label, std::string_view label_value) {
    text->append(separator).append(label).append("=\"");
    AppendEscaped(label_value, true, text);
    text->push_back('"');
    separator = ",";
  };
  for (const auto& [label, label_value] : sample.labels) append_label(label, label_value);
  if (!bound.empty()) append_label("le", bound);
  if (*separator == ',') text->push_back('}');
  text->push_back(' ');
  AppendNumber(value, text);
  text->push_back('\n');
}

// OpenMetrics writes bounds as floating-point numbers.
std::string BoundText(double bound) {
  std::string text;
  AppendNumber(bound, &text);
  if (text.find_first_of(".e") == std::string::npos) text.append(".0");
  return text;
}

void AppendHistogram(std::string_view name, const MetricSample& sample, std::string* text) {
  for (const MetricSample::Bucket& bucket : sample.buckets)
    AppendLine(name, "_bucket", sample, BoundText(bucket.upper_bound), static_cast<double>(bucket.count), text);
  AppendLine(name, "_bucket", sample, "+Inf", static_cast<double>(sample.count), text);
  AppendLine(name, "_count", sample, "", static_cast<double>(sample.count), text);
  AppendLine(name, "_sum", sample, "", sample.sum, text);
}

void AppendHead(const MetricDescription& description, bool is_open_metrics, std::string* text) {
  static constexpr const char* kTypes[] = {"counter", "gauge", "histogram"};
  std::string_view name = description.name;
  // In OpenMetrics the name of a counter is that of its sample without "_total".
  if (is_open_metrics && name.ends_with(kTotal)) name.remove_suffix(kTotal.size());
  text->append("# HELP ").append(name).append(" ");
  AppendEscaped(description.meaning, is_open_metrics, text);
  text->append("\n# TYPE ").append(name).append(" ").append(kTypes[static_cast<size_t>(description.type)]).append("\n");
  const std::string_view unit = description.unit;
  // OpenMetrics demands that a name ends in its unit.
  if (is_open_metrics && !unit.empty() && name.ends_with(std::string("_").append(unit)))
    text->append("# UNIT ").append(name).append(" ").append(unit).append("\n");
}

}  // namespace

std::string MetricsText(const Metrics& metrics, MetricsFormat format) {
  const bool is_open_metrics = format == MetricsFormat::kOpenMetrics;
  std::string text;
  for (const Metric& metric : metrics.all) {
    const MetricDescription& description = *metric.description;
    AppendHead(description, is_open_metrics, &text);
    for (const MetricSample& sample : metric.samples) {
      if (description.type == MetricType::kHistogram) {
        AppendHistogram(description.name, sample, &text);
      } else {
        AppendLine(description.name, "", sample, "", sample.value, &text);
      }
    }
  }
  if (is_open_metrics) text.append("# EOF\n");
  return text;
}

}  // namespace braiddb
