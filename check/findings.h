// Findings: collects the findings of a check in its report.
#pragma once

#include <string>

#include "braiddb/check.h"
#include "util/check.h"

namespace braiddb {

inline constexpr char kRestoreAdvice[] = "restore the database from a copy, or save what is intact with `braiddb repair`";

// Keeps the first CheckReport::kMaxFindings findings, and counts the others. Thread safety: one thread at a time.
class Findings {
 public:
  // `report` must outlive the object.
  explicit Findings(CheckReport* report) : report_(report) { BRAIDDB_DCHECK(report != nullptr); }

  // Adds a damage. `what`: the damage. `where`: file and byte, or structure. `advice`: what a user can do.
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
