// braiddb readers: lists the processes that read a database beside the program that has it open for writing.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "braiddb/db.h"
#include "tools/command.h"

namespace braiddb::tools {

namespace po = boost::program_options;
using Takes = CommandLine::Takes;

int RunReaders(const Arguments& arguments) {
  CommandLine line("braiddb readers [option...] <database>", {"database"}, Takes::kArguments);
  bool as_json = false;
  line.Add()("json", po::bool_switch(&as_json), "print JSON");
  int exit_code = kSound;
  if (!line.Parse(arguments, &exit_code)) return exit_code;
  std::vector<DB::LiveReaderInfo> readers;
  if (Status status = DB::ListLiveReaders(line.Positional(0), &readers); !status.ok()) return CannotLook(status);
  if (as_json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const DB::LiveReaderInfo& reader : readers) {
      nlohmann::ordered_json json{{"pid", reader.pid}, {"seconds", reader.seconds}, {"expired", reader.has_expired}};
      json["oldest_snapshot"] = nullptr;
      if (reader.oldest_snapshot.has_value()) json["oldest_snapshot"] = *reader.oldest_snapshot;
      all.push_back(std::move(json));
    }
    std::printf("%s\n", all.dump(2).c_str());
    return kSound;
  }
  std::printf("%10s %12s %20s  %s\n", "pid", "seconds", "oldest snapshot", "state");
  for (const DB::LiveReaderInfo& reader : readers) {
    const std::string snapshot = reader.oldest_snapshot.has_value() ? std::to_string(*reader.oldest_snapshot) : "-";
    std::printf("%10d %12llu %20s  %s\n", reader.pid, static_cast<unsigned long long>(reader.seconds), snapshot.c_str(),
                reader.has_expired ? "expired" : "reads");
  }
  return kSound;
}

}  // namespace braiddb::tools
