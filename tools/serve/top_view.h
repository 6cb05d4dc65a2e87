// TopView: the figures of a database as lines of text, for `braiddb top`.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "braiddb/metrics.h"

namespace braiddb::tools {

// Thread safety: one thread at a time.
class TopView {
 public:
  // Lines of at most 79 columns. Rates are those since the call before, and "-" in the first call.
  // `title`: the first line. `now`: when `metrics` were read.
  std::string Render(const std::string& title, const Metrics& metrics, std::chrono::steady_clock::time_point now);

 private:
  // Increase per second of a counter's sum; negative: unknown.
  double Rate(const Metrics& metrics, const char* name) const;

  std::optional<Metrics> before_;
  double seconds_ = 0;  // since before_
  std::chrono::steady_clock::time_point at_;
};

}  // namespace braiddb::tools
