// braiddb check: verifies a database. Changes nothing, except as --acknowledge-unsafe-shutdown describes.
#include <cinttypes>
#include <cstdio>

#include "tools/command.h"

namespace braiddb::tools {

int RunCheck(const Arguments& arguments) {
  CommandLine line("braiddb check [option...] <database>", {"database"});
  bool acknowledge = false;
  line.Add()("acknowledge-unsafe-shutdown", boost::program_options::bool_switch(&acknowledge),
             "allow the database to open after a memory module lost data at a power loss, or after the database moved to another "
             "module without a clean close; run a check without this option first");
  int exit_code = kSound;
  if (!line.Parse(arguments, &exit_code)) return exit_code;
  CheckReport report;
  CheckOptions options = line.MakeCheckOptions("checking");
  options.acknowledge_unsafe_shutdown = acknowledge;
  const Status status = CheckDatabase(options, line.Positional(0), &report);
  if (!status.ok()) return CannotLook(status);
  EndProgress();
  for (const CheckFinding& finding : report.findings) PrintFinding(finding);
  if (report.more_findings != 0) std::printf("and %" PRIu64 " more findings\n", report.more_findings);
  std::printf("%s: %" PRIu64 " regions, %" PRIu64 " segments and %" PRIu64 " free ones\n", line.Positional(0).c_str(),
              report.regions, report.segments, report.free_segments);
  if (report.families > 1) std::printf("  %" PRIu64 " column families\n", report.families);
  std::printf("  last level: %" PRIu64 " entries, %" PRIu64 " of them older versions\n", report.l1_entries,
              report.obsolete_entries);
  std::printf("  level 0: %" PRIu64 " entries in %" PRIu64 " tables%s\n", report.l0_entries, report.tables,
              report.merge_running ? "; the next open resumes a merge" : "");
  std::printf("  log: %" PRIu64 " entries to replay, %" PRIu64 " dead\n", report.log_entries, report.dead_entries);
  if (report.allocation_pending) std::printf("  space is not accounted for: the next open finishes an interrupted allocation\n");
  std::printf("%s\n", report.sound() ? "sound" : "DAMAGED");
  return report.sound() ? kSound : kDamaged;
}

}  // namespace braiddb::tools
