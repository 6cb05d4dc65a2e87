// Findings: collects what a check finds.
#pragma once

#include <string>

#include "braiddb/check.h"

namespace braiddb {

inline constexpr char kRestoreAdvice[] = "restore the database from a copy, or save what is intact with `braiddb repair`";

class Findings {
 public:
  explicit Findings(CheckReport* report) : report_(report) {}

  void Add(std::string what, std::string where, std::string advice = kRestoreAdvice) {
    if (report_->findings.size() == CheckReport::kMaxFindings) {
      ++report_->more_findings;
    } else {
      report_->findings.push_back({std::move(what), std::move(where), std::move(advice)});
    }
  }
  bool empty() const { return report_->findings.empty(); }

 private:
  CheckReport* const report_;
};

}  // namespace braiddb
