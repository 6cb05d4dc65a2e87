// braiddb check: verifies a database. Changes nothing, except as --acknowledge-unsafe-shutdown describes.
#include <cinttypes>
#include <cstdio>

#include "tools/child_job.h"
#include "tools/command.h"
#include "tools/output.h"

namespace braiddb::tools {
namespace {

void PrintJson(const std::string& database, const CheckReport& report) {
  Facts facts;
  facts.Add("database", database);
  facts.Add("sound", report.sound());
  facts.Add("regions", report.regions);
  facts.Add("segments", report.segments);
  facts.Add("free_segments", report.free_segments);
  facts.Add("column_families", report.families);
  facts.Add("last_level_entries", report.l1_entries);
  facts.Add("older_versions", report.obsolete_entries);
  facts.Add("l0_tables", report.tables);
  facts.Add("l0_entries", report.l0_entries);
  facts.Add("merge_running", report.merge_running);
  facts.Add("log_entries", report.log_entries);
  facts.Add("dead_entries", report.dead_entries);
  facts.Add("allocation_pending", report.allocation_pending);
  auto findings = nlohmann::ordered_json::array();
  for (const CheckFinding& finding : report.findings)
    findings.push_back({{"what", finding.what}, {"where", finding.where}, {"advice", finding.advice}});
  facts.Add("findings", std::move(findings));
  facts.Add("more_findings", report.more_findings);
  facts.Print({OutputForm::kJson, ByteForm::kRaw});
}

void PrintText(const std::string& database, const CheckReport& report) {
  for (const CheckFinding& finding : report.findings) PrintFinding(finding);
  if (report.more_findings != 0) std::printf("and %" PRIu64 " more findings\n", report.more_findings);
  std::printf("%s: %" PRIu64 " regions, %" PRIu64 " segments and %" PRIu64 " free ones\n", database.c_str(), report.regions,
              report.segments, report.free_segments);
  if (report.families > 1) std::printf("  %" PRIu64 " column families\n", report.families);
  std::printf("  last level: %" PRIu64 " entries, %" PRIu64 " of them older versions\n", report.l1_entries,
              report.obsolete_entries);
  std::printf("  level 0: %" PRIu64 " entries in %" PRIu64 " tables%s\n", report.l0_entries, report.tables,
              report.merge_running ? "; the next open resumes a merge" : "");
  std::printf("  log: %" PRIu64 " entries to replay, %" PRIu64 " dead\n", report.log_entries, report.dead_entries);
  if (report.allocation_pending) std::printf("  space is not accounted for: the next open finishes an interrupted allocation\n");
  std::printf("%s\n", report.sound() ? "sound" : "DAMAGED");
}

}  // namespace

int RunCheck(const Arguments& arguments) {
  CommandLine line("braiddb check [option...] <database>", {"database"});
  bool acknowledge = false;
  bool as_json = false;
  line.Add()("json", boost::program_options::bool_switch(&as_json), "print JSON")(
      "acknowledge-unsafe-shutdown", boost::program_options::bool_switch(&acknowledge),
      "allow the database to open after a memory module lost data at a power loss, or after the database moved to another "
      "module without a clean close; run a check without this option first");
  int exit_code = kSound;
  if (!line.Parse(arguments, &exit_code)) return exit_code;
  const auto check = [&]() -> int {
    CheckReport report;
    CheckOptions options = line.MakeCheckOptions({"checking the log", "checking the lists"});
    options.acknowledge_unsafe_shutdown = acknowledge;
    const Status status = CheckDatabase(options, line.Positional(0), &report);
    if (!status.ok()) return CannotLook(status);
    EndProgress();
    if (as_json) {
      PrintJson(line.Positional(0), report);
    } else {
      PrintText(line.Positional(0), report);
    }
    return report.sound() ? kSound : kDamaged;
  };
  const auto after = [&] { return acknowledge ? "run it again" : "the database is as it was"; };
  return ChildJob{.action = "checking", .work = check, .after = after, .outlives_reader = false}.Run();
}

}  // namespace braiddb::tools
