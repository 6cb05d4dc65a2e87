// differential_test: the same random calls through RocksDB's library and through the drop-in. See docs/TESTING.md.
#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cstdio>
#include <filesystem>

#include "tests/differential/child.h"
#include "tests/differential/known_differences.h"
#include "tests/differential/self_check.h"
#include "tests/support/campaign_flags.h"

namespace {

namespace po = boost::program_options;
namespace bt = braiddb::test;

constexpr int kSkipped = 77;

struct Flags {
  std::string rocksdb = "librocksdb.so.7.8";
  std::string dropin = BRAIDDB_DROPIN;
  std::string directory = std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp";
  uint64_t sequences = 1000;
  uint64_t seed = 1;
  size_t sequences_per_life = 20;
  size_t calls_per_sequence = 80;
  uint64_t most_failures = 1;
  bool no_shrink = false;
  bool show = false;
  bool self_test = false;
};

po::options_description Describe(Flags* flags) {
  po::options_description description("differential_test: compares what RocksDB and the drop-in answer to the same calls");
  auto add = description.add_options();
  add("help", "this text");
  add("rocksdb", po::value(&flags->rocksdb)->default_value(flags->rocksdb), "RocksDB's library");
  add("dropin", po::value(&flags->dropin)->default_value(flags->dropin), "the library that is tested");
  add("directory", po::value(&flags->directory)->default_value(flags->directory), "for databases");
  add("sequences", po::value(&flags->sequences)->default_value(flags->sequences), "of calls");
  add("seed", po::value(&flags->seed)->default_value(flags->seed), "of the first database; the next ones have the next seeds");
  add("sequences-per-life", po::value(&flags->sequences_per_life)->default_value(flags->sequences_per_life),
      "that share a database");
  add("calls", po::value(&flags->calls_per_sequence)->default_value(flags->calls_per_sequence), "in a sequence");
  add("failures", po::value(&flags->most_failures)->default_value(flags->most_failures), "end after so many");
  add("no-shrink", po::bool_switch(&flags->no_shrink), "do not look for a shorter sequence that differs");
  add("show", po::bool_switch(&flags->show), "print all calls");
  add("self-test", po::bool_switch(&flags->self_test), "the drop-in against itself with wrong answers; needs no RocksDB");
  return description;
}

std::string OperationAt(const bt::Life& life, const bt::ChildResult& result) {
  return result.failed_at() < life.calls.size() ? bt::Operations()[life.calls[result.failed_at()].operation].name : "the close";
}

void Report(const Flags& flags, const bt::Libraries& libraries, const bt::Life& life, const bt::ChildResult& result,
            const std::string& directory) {
  std::printf(
      "DIFFERENCE with --seed %llu: call %zu: %s\n", static_cast<unsigned long long>(life.seed), result.failed_at(),
      result.crash.empty() ? result.life.difference->call.c_str() : (result.crash + " in " + OperationAt(life, result)).c_str());
  bt::Life shown = life;
  shown.calls.resize(std::min(result.failed_at() + 1, life.calls.size()));
  if (!flags.no_shrink) shown = bt::Shrink(libraries, life, result, directory);
  std::printf("  database: %s order, prefixes of %zu, %s, buffer of %zu KiB, last level %s, %zu regions, %s merges\n",
              shown.options.reverse_order ? "reverse" : "byte", shown.options.prefix_length,
              shown.options.adds_numbers ? "numbers" : "texts", shown.options.write_buffer_size >> 10, shown.last_level.c_str(),
              shown.regions, shown.options.automatic_merges ? "automatic" : "no");
  if (!flags.no_shrink) {
    bt::RunInChild(libraries, shown, directory, true);
  } else if (result.crash.empty()) {
    std::printf("    = %.3000s\n    ≠ %.3000s\n", result.life.difference->expected.c_str(),
                result.life.difference->found.c_str());
  }
  std::fflush(stdout);
}

int Compare(const Flags& flags, const bt::Libraries& libraries, const std::string& directory) {
  uint64_t sequences = 0;
  uint64_t calls = 0;
  uint64_t failures = 0;
  uint64_t lives = 0;
  std::vector<uint64_t> known(bt::KnownDifferences().size());
  const auto progress = [&] {
    std::printf("differential_test: %llu sequences, %llu calls, %llu databases, %llu differences\n",
                static_cast<unsigned long long>(sequences), static_cast<unsigned long long>(calls),
                static_cast<unsigned long long>(lives), static_cast<unsigned long long>(failures));
    std::fflush(stdout);
  };
  for (uint64_t seed = flags.seed; sequences < flags.sequences && failures < flags.most_failures; ++seed) {
    const bt::Life life = bt::DrawLife(seed, flags.sequences_per_life, flags.calls_per_sequence);
    const bt::ChildResult result = bt::RunInChild(libraries, life, directory, flags.show);
    sequences += result.life.sequences;
    calls += result.life.calls;
    for (size_t i = 0; i < known.size(); ++i) known[i] += result.life.known[i];
    if (result.failed()) {
      ++failures;
      Report(flags, libraries, life, result, directory);
    }
    if (++lives % 20 == 0) progress();
  }
  progress();
  for (size_t i = 0; i < known.size(); ++i) {
    std::printf("  known: %s (%s): %llu times\n", bt::KnownDifferences()[i].name, bt::KnownDifferences()[i].document,
                static_cast<unsigned long long>(known[i]));
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  const po::options_description description = Describe(&flags);
  po::variables_map values;
  if (const auto exit_code = bt::ParseCampaignFlags(argc, argv, "differential_test", description, &values)) return *exit_code;
  const std::string directory = flags.directory + "/braiddb-differential-" + std::to_string(getpid());
  bt::Libraries libraries;
  // RocksDB first: a name without a path would find the drop-in if that is there already.
  const std::string no_rocksdb = bt::LoadApi(flags.rocksdb, &libraries.expected);
  if (const std::string why = bt::LoadApi(flags.dropin, &libraries.tested); !why.empty()) {
    std::fprintf(stderr, "differential_test: %s\n", why.c_str());
    return bt::kUsageError;
  }
  if (flags.self_test) return bt::SelfTest(libraries.tested, directory, BRAIDDB_SOURCE);
  if (!no_rocksdb.empty()) {
    std::printf("differential_test: skipped, RocksDB's library is not here: %s\n", no_rocksdb.c_str());
    return kSkipped;
  }
  if (libraries.expected.file == libraries.tested.file) {
    std::printf("differential_test: skipped, %s is the drop-in itself: --rocksdb names RocksDB's library\n",
                flags.rocksdb.c_str());
    return kSkipped;
  }
  return Compare(flags, libraries, directory);
}
