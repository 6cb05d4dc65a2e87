#include "db_stress/totals.h"

#include <cstdio>

namespace braiddb::stress {

namespace {

using Number = unsigned long long;

void Move(std::atomic<uint64_t>* from, uint64_t* to) { *to += from->exchange(0); }

std::string Row(const char* name, uint64_t number, const std::string& note = {}) {
  char text[200];
  std::snprintf(text, sizeof(text), "  %-22s %14llu%s%s\n", name, static_cast<Number>(number), note.empty() ? "" : "   ",
                note.c_str());
  return text;
}

}  // namespace

void Totals::Take(Counters* counters) {
  Move(&counters->operations, &operations);
  Move(&counters->reads, &reads);
  Move(&counters->writes, &writes);
  Move(&counters->batches, &batches);
  Move(&counters->views, &views);
  Move(&counters->shared_events, &shared_events);
  Move(&counters->transactions, &transactions);
  Move(&counters->conflicts, &conflicts);
  Move(&counters->rollbacks, &rollbacks);
  Move(&counters->audits, &audits);
  Move(&counters->prepared, &prepared);
  Move(&counters->recovered, &recovered);
  Move(&counters->families, &families);
  Move(&counters->catch_ups, &catch_ups);
  Move(&counters->opens, &opens);
  Move(&counters->replayed, &replayed);
  Move(&counters->verified_keys, &verified_keys);
  Move(&counters->rotations, &rotations);
  Move(&counters->checkpoints, &checkpoints);
  Move(&counters->compactions, &compactions);
}

std::string Totals::Line(double seconds) const {
  char text[400];
  std::snprintf(text, sizeof(text),
                "%6.0f s: %llu cycles (%.0f/min), %llu kills (%llu opening), %llu databases; %llu operations, %llu replayed, "
                "%llu keys verified, %llu compactions; %llu violations",
                seconds, static_cast<Number>(cycles), static_cast<double>(cycles) * 60 / seconds, static_cast<Number>(kills),
                static_cast<Number>(kills_opening), static_cast<Number>(databases), static_cast<Number>(operations),
                static_cast<Number>(replayed), static_cast<Number>(verified_keys), static_cast<Number>(compactions),
                static_cast<Number>(violations));
  return text;
}

std::string Totals::Summary(double seconds) const {
  char length[40];
  std::snprintf(length, sizeof(length), "in %.0f s", seconds);
  return Row("cycles", cycles, length) + Row("databases", databases) +
         Row("kills", kills,
             std::to_string(kills_opening) + " while opening, " + std::to_string(kills_creating) + " of these while creating; " +
                 std::to_string(kills_closing) + " while closing") +
         Row("clean closes", closes) + Row("opens", opens) + Row("replayed entries", replayed) + Row("operations", operations) +
         Row("writes", writes, std::to_string(batches) + " of several keys") + Row("reads", reads) +
         Row("views", views, "snapshots and iterators") +
         Row("transactions", transactions,
             "begun; " + std::to_string(conflicts) + " met a conflict, " + std::to_string(rollbacks) + " were rolled back") +
         Row("prepared", prepared, "before they were decided; " + std::to_string(recovered) + " of them by a later life") +
         Row("audits", audits, "of all accounts, by one view") + Row("column families", families, "dropped and created anew") +
         Row("catch-ups", catch_ups, "of secondaries") +
         Row("reads in histories", shared_events, "and writes, in " + std::to_string(epochs) + " histories") +
         Row("verified keys", verified_keys, "of whole databases, each by two scans and Get") + Row("rotations", rotations) +
         Row("checkpoints", checkpoints) + Row("compactions", compactions) + Row("CheckDatabase", checks) +
         Row("pmempool check", pool_checks) + Row("emptied databases", space_checks) + Row("violations", violations);
}

}  // namespace braiddb::stress
