// ParseMetricsText: a strict parser of the Prometheus and OpenMetrics text formats.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/metrics.h"

namespace braiddb::test {

// Samples by their name with labels as they stand in the text.
struct ParsedMetrics {
  std::string error;  // what is wrong, and in which line; empty: nothing
  std::map<std::string, double> samples;
  std::map<std::string, std::string> types;  // by family
};

// Accepts what MetricsText may write and nothing else: each family once, with HELP and TYPE before its samples; names and labels
// of the allowed characters; counters that end in "_total" and do not go below 0; histograms whose buckets grow up to "+Inf",
// which equals the count; no sample twice.
ParsedMetrics ParseMetricsText(std::string_view text, MetricsFormat format);

}  // namespace braiddb::test
