#include "db_stress/flags.h"

#include <unistd.h>

#include <boost/program_options.hpp>
#include <cstdlib>
#include <iostream>
#include <random>
#include <stdexcept>

#include "db_stress/key_table.h"
#include "index/level_kind.h"

namespace braiddb::stress {

namespace {

namespace po = boost::program_options;

constexpr int kUsageError = 2;
constexpr char kInjections[] =
    "lost_write, stale_write, torn_batch, lost_shared_write, torn_transfer, lost_update, lost_prepare, kept_update, "
    "split_batch";

std::string DefaultPath() {
  if (const char* directory = std::getenv("TEST_TMPDIR")) return std::string(directory) + "/dbstress";
  const char* base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  return std::string(base) + "/braiddb-" + std::to_string(getuid()) + "/dbstress";
}

Injection ParseInjection(const std::string& name) {
  if (name.empty()) return Injection::kNone;
  if (name == "lost_write") return Injection::kLostWrite;
  if (name == "stale_write") return Injection::kStaleWrite;
  if (name == "torn_batch") return Injection::kTornBatch;
  if (name == "lost_shared_write") return Injection::kLostSharedWrite;
  if (name == "torn_transfer") return Injection::kTornTransfer;
  if (name == "lost_update") return Injection::kLostUpdate;
  if (name == "lost_prepare") return Injection::kLostPrepare;
  if (name == "kept_update") return Injection::kKeptUpdate;
  if (name == "split_batch") return Injection::kSplitBatch;
  throw std::invalid_argument("--inject=" + name + " is none of " + kInjections);
}

void CheckRange(const char* name, uint64_t value, uint64_t least, uint64_t most) {
  if (value >= least && value <= most) return;
  throw std::invalid_argument("--" + std::string(name) + "=" + std::to_string(value) + " is not between " +
                              std::to_string(least) + " and " + std::to_string(most));
}

}  // namespace

std::optional<int> ParseFlags(int argc, char** argv, Flags* flags) {
  std::string injection, l1;
  po::options_description known(
      "db_stress: kills a process that works with a database, again and again, and verifies what the next one finds.\n"
      "Ends with 1 if that is not what it should be, and keeps the database then.\n",
      110, 60);
  auto add = known.add_options();
  add("help", "print this and end");
  add("db", po::value(&flags->db)->default_value(DefaultPath()), "directory for all files; what is there is destroyed");
  add("seed", po::value(&flags->seed)->default_value(0), "of all that is drawn; 0: a new one each time");
  add("cycles", po::value(&flags->cycles)->default_value(0), "lives of the process; 0: until stopped by SIGINT or SIGTERM");
  add("duration", po::value(&flags->duration)->default_value(0), "seconds; 0: no limit");
  add("max_key", po::value(&flags->max_key)->default_value(100'000), "keys of the largest databases; most have a few thousand");
  add("threads", po::value(&flags->threads)->default_value(8), "the most, drawn anew for each life; at most 8");
  add("regions", po::value(&flags->regions)->default_value(4), "the most, drawn anew for each database; at most 16");
  add("ops_per_thread", po::value(&flags->ops_per_thread)->default_value(0),
      "after which a process that is not killed before ends by itself; 0: no limit");
  add("interval_ms", po::value(&flags->interval_ms)->default_value(150),
      "the longest life, but for occasional ones of 10 times that");
  add("fresh_every", po::value(&flags->fresh_every)->default_value(30), "cycles after which a new database is begun, on average");
  add("check_one_in", po::value(&flags->check_one_in)->default_value(6),
      "cycles in which CheckDatabase must find no damage; 0: none");
  add("pmempool_one_in", po::value(&flags->pmempool_one_in)->default_value(20),
      "cycles in which `pmempool check` must not, if it is installed; 0: none");
  add("progress_seconds", po::value(&flags->progress_seconds)->default_value(5), "between lines of progress");
  add("inject", po::value(&injection)->default_value(""),
      (std::string("play a bug that must be found, one of ") + kInjections).c_str());
  add("families", po::value(&flags->families)->default_value(4),
      "column families that keys are spread over, the most, drawn anew for each database; at most 8");
  add("transactions", po::value(&flags->transactions)->default_value(true),
      "two lives in three open it as a database of transactions");
  add("l1", po::value(&l1)->default_value("any"),
      ("the last level: " + LevelKindNames(", ") + ", or any, drawn for each database").c_str());
  try {
    po::variables_map values;
    const auto style = po::command_line_style::unix_style | po::command_line_style::allow_long_disguise;
    const po::parsed_options parsed = po::command_line_parser(argc, argv).options(known).style(style).positional({}).run();
    // Boost would convert a negative number to a large one.
    for (const auto& option : parsed.options) {
      const std::string value = option.value.empty() ? "" : option.value[0];
      if (value.size() > 1 && value[0] == '-' && std::isdigit(static_cast<unsigned char>(value[1])) != 0)
        throw std::invalid_argument("--" + option.string_key + "=" + value + " is negative");
    }
    po::store(parsed, values);
    if (values.count("help") != 0) {
      std::cout << known << std::flush;
      return 0;
    }
    po::notify(values);
    flags->injection = ParseInjection(injection);
    if (const LevelKind* const kind = FindLevelKind(l1); kind != nullptr) {
      flags->l1 = kind->id;
    } else if (l1 != "any") {
      throw std::invalid_argument("--l1=" + l1 + " is not known");
    }
    CheckRange("families", flags->families, 1, 8);
    CheckRange("threads", flags->threads, 1, KeyTable::kLanes);
    CheckRange("regions", flags->regions, 1, 16);
    CheckRange("max_key", flags->max_key, KeyTable::kMinKeys, 100'000'000);
    CheckRange("interval_ms", flags->interval_ms, 1, 1'000'000);
    CheckRange("fresh_every", flags->fresh_every, 1, UINT32_MAX);
    CheckRange("progress_seconds", flags->progress_seconds, 1, UINT32_MAX);
  } catch (const std::exception& error) {
    std::cerr << "db_stress: " << error.what() << "; --help lists the flags\n";
    return kUsageError;
  }
  if (flags->seed == 0) flags->seed = std::random_device()();
  return std::nullopt;
}

}  // namespace braiddb::stress
