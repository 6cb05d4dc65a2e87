// braiddb repair: copies the intact entries of a damaged database to a new database.
#include <cinttypes>
#include <cstdio>

#include "tools/child_job.h"
#include "tools/command.h"
#include "tools/output.h"
#include "util/file.h"

namespace braiddb::tools {
namespace {

void PrintJson(const std::string& database, const RepairReport& report) {
  Facts facts;
  facts.Add("database", database);
  facts.Add("keys", report.keys);
  facts.Add("entries", report.entries);
  facts.Add("column_families", report.families);
  facts.Add("damaged_stretches", report.damaged_stretches);
  facts.Add("damaged_bytes", report.damaged_bytes);
  auto damage = nlohmann::ordered_json::array();
  for (const CheckFinding& finding : report.damage) damage.push_back({{"what", finding.what}, {"where", finding.where}});
  facts.Add("damage", std::move(damage));
  facts.Add("lost", report.lost);
  facts.Print({OutputForm::kJson, ByteForm::kRaw});
}

int Repair(const CommandLine& line, RepairOptions options, bool as_json) {
  options.source = line.MakeCheckOptions({"reading the log", "sorting", "writing"});
  RepairReport report;
  const Status status = RepairDatabase(options, line.Positional(0), line.Positional(1), &report);
  if (!status.ok()) return CannotLook(status);
  EndProgress();
  if (as_json) {
    PrintJson(line.Positional(1), report);
    return report.lost.empty() ? kSound : kDamaged;
  }
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

}  // namespace

int RunRepair(const Arguments& arguments) {
  CommandLine line("braiddb repair [option...] <database> <new database>", {"database", "new database"});
  RepairOptions options;
  bool as_json = false;
  line.Add()("json", boost::program_options::bool_switch(&as_json), "print JSON")(
      "regions", boost::program_options::value(&options.target.regions)->value_name("N"),
      "regions of the new database; as many as there were unless given");
  int exit_code = kSound;
  if (!line.Parse(arguments, &exit_code)) return exit_code;
  const std::string path = line.Positional(1);
  return ChildJob{.action = "repairing",
                  .work = [&] { return Repair(line, options, as_json); },
                  .clean = [&] { return RemoveUnfinishedCopy(path); },
                  .after = [&] { return FileExists(path) ? path + " is complete" : "nothing is left of the new database"; }}
      .Run();
}

}  // namespace braiddb::tools
