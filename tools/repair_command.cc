// braiddb repair: copies the intact entries of a damaged database to a new database.
#include <cinttypes>
#include <cstdio>

#include "tools/command.h"

namespace braiddb::tools {

int RunRepair(const Arguments& arguments) {
  CommandLine line("braiddb repair [option...] <database> <new database>", {"database", "new database"});
  RepairOptions options;
  line.Add()("regions", boost::program_options::value(&options.target.regions)->value_name("N"),
             "regions of the new database; as many as there were unless given");
  int exit_code = kSound;
  if (!line.Parse(arguments, &exit_code)) return exit_code;
  options.source = line.MakeCheckOptions("reading");
  RepairReport report;
  const Status status = RepairDatabase(options, line.Positional(0), line.Positional(1), &report);
  if (!status.ok()) return CannotLook(status);
  EndProgress();
  for (const CheckFinding& finding : report.damage)
    std::printf("damaged: %s\n  where: %s\n", finding.what.c_str(), finding.where.c_str());
  for (const std::string& lost : report.lost) std::printf("lost: %s\n", lost.c_str());
  std::printf("%s: %" PRIu64 " keys, from %" PRIu64 " intact log entries\n", line.Positional(1).c_str(), report.keys,
              report.entries);
  if (report.families > 1) std::printf("  %" PRIu64 " column families\n", report.families);
  if (report.damaged_stretches != 0) {
    std::printf("  %" PRIu64 " stretches of log are damaged, %s in all\n", report.damaged_stretches,
                BytesText(report.damaged_bytes).c_str());
  }
  std::printf("%s\n", report.lost.empty() ? "nothing that was found to be there is lost" : "some data is LOST");
  return report.lost.empty() ? kSound : kDamaged;
}

}  // namespace braiddb::tools
