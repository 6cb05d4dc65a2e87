// Translates the options of the C API to the engine's, for options with an effect. Reads the environment variables.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "braiddb/db.h"
#include "capi/option_texts.h"
#include "capi/options.h"
#include "capi/result.h"

namespace braiddb::capi {
namespace {

// If the program left an option at RocksDB's default, the engine's default applies.
const braiddb_options_t& Untouched() {
  static const braiddb_options_t untouched;
  return untouched;
}

// Cache size for a program of the drop-in libraries that sets none. A cache below 2 MiB takes memory only for its used pages. It
// has room for 200,000 keys. The 8 MiB of blocks in LevelDB and RocksDB hold about a third of them.
#ifdef BRAIDDB_DROPIN
constexpr uint64_t kDropInCacheBytes = (2 << 20) - 64;
#else
constexpr uint64_t kDropInCacheBytes = 0;
#endif

uint32_t Positive(int value) { return static_cast<uint32_t>(std::max(1, value)); }

void MapMemtables(const braiddb_options_t& from, Options* to) {
  if (from.write_buffer_size != Untouched().write_buffer_size) to->memtable_size = MemtableSize(from.write_buffer_size);
  if (from.max_write_buffer_number != Untouched().max_write_buffer_number)
    to->max_immutable_memtables = Positive(std::max(2, from.max_write_buffer_number) - 1);
}

void MapBackgroundWork(const braiddb_options_t& from, Options* to) {
  const uint32_t cpus = std::max(1u, std::thread::hardware_concurrency());
  if (from.max_background_compactions > 0) {
    to->compaction_threads = std::min(cpus, Positive(from.max_background_compactions));
  } else if (from.max_background_jobs != Untouched().max_background_jobs) {
    to->compaction_threads = std::min(cpus, Positive(from.max_background_jobs));
  }
  if (from.level0_file_num_compaction_trigger != Untouched().level0_file_num_compaction_trigger)
    to->l0_compaction_trigger = Positive(from.level0_file_num_compaction_trigger);
  if (from.level0_slowdown_writes_trigger != Untouched().level0_slowdown_writes_trigger &&
      from.level0_slowdown_writes_trigger > 0) {
    to->l0_slowdown_writes_trigger = Positive(from.level0_slowdown_writes_trigger);
  }
  to->disable_auto_compaction = from.disable_auto_compactions != 0;
}

void MapReads(const braiddb_options_t& from, Options* to) {
  const auto& cache = from.cache != nullptr ? from.cache : from.table.block_cache;
  if (to->lookup_cache_size == Options().lookup_cache_size) {
    if (from.table.no_block_cache != 0) {
      to->lookup_cache_size = 0;
    } else if (cache != nullptr) {
      to->lookup_cache_size = cache->limit.capacity();
      to->lookup_cache_limit = std::shared_ptr<CacheLimit>(cache, &cache->limit);
    } else if (from.optimized_cache_bytes != 0) {
      to->lookup_cache_size = from.optimized_cache_bytes;
    } else if (kDropInCacheBytes != 0) {
      to->lookup_cache_size = kDropInCacheBytes;
    }
  }
  const braiddb_filterpolicy_t* const policy =
      from.leveldb_policy != nullptr ? from.leveldb_policy : from.table.filter_policy.get();
  if (policy != nullptr && !policy->is_users_own()) {
    constexpr double kMostBits = 64;
    to->filter_bits_per_key = static_cast<uint32_t>(std::lround(std::clamp(policy->bits_per_key, 0.0, kMostBits)));
  }
}

// ---- Environment variables

Status WrongValue(const char* variable, const char* value, const char* wanted) {
  return Status::InvalidArgument("environment variable " + std::string(variable) + " is '" + value + "'; " + wanted);
}

// Parses a number with an optional suffix K, M, G, or T, for powers of 1024.
bool ParseBytes(std::string_view text, uint64_t* bytes) {
  int shift = 0;
  if (!text.empty()) {
    constexpr std::string_view kUnits = "KMGT";
    const size_t unit = kUnits.find(text.back());
    if (unit != std::string_view::npos) {
      shift = 10 * static_cast<int>(unit + 1);
      text.remove_suffix(1);
    }
  }
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number > UINT64_MAX >> shift) return false;
  *bytes = number << shift;
  return true;
}

// Uses the variable if it is set and the program has not changed the option.
Status TakeBytes(const char* variable, uint64_t untouched, uint64_t* field) {
  const char* const value = secure_getenv(variable);
  if (value == nullptr || *field != untouched || ParseBytes(value, field)) return Status::OK();
  return WrongValue(variable, value, "a number of bytes is wanted, such as 268435456, 256M or 1G");
}

template <class Kind>
Status TakeKind(const char* variable, const std::vector<std::pair<std::string_view, Kind>>& kinds, Kind untouched, Kind* field) {
  const char* const value = secure_getenv(variable);
  if (value == nullptr || *field != untouched) return Status::OK();
  std::string wanted = "possible are";
  for (const auto& [name, kind] : kinds) {
    if (name == value) {
      *field = kind;
      return Status::OK();
    }
    wanted.append(" ").append(name);
  }
  return WrongValue(variable, value, wanted.c_str());
}

// A name that no other database's regions have. Regions of a database that was removed or moved by hand therefore never match
// another database.
std::string NewRegionsName(const std::string& path) {
  std::random_device random;
  char name[24];
  std::snprintf(name, sizeof name, "-%08x%08x", static_cast<unsigned>(random()), static_cast<unsigned>(random()));
  return std::filesystem::absolute(path).lexically_normal().filename().string().substr(0, 100) + name;
}

// File of an older version, in the directory of a database that was made with the environment variable. Has the path of each
// region, one per line, and a last line that marks the file as complete. Newer versions use the file DATABASE, which DB::Open
// reads and writes.
constexpr const char* kRegionsFile = "/REGIONS";
constexpr const char* kLastLine = "end";

}  // namespace

// The location of an existing database is stored with the database. The variable applies only to new databases (PlaceRegions).
Status FindRegions(const std::string& path, Options* to) {
  std::error_code error;
  if (!to->region_paths.empty() || !std::filesystem::exists(path + kRegionsFile, error)) return Status::OK();
  std::ifstream file(path + kRegionsFile);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  if (lines.size() < 2 || lines.back() != kLastLine)
    return Status::Corruption(path + kRegionsFile +
                              " is damaged; it has a line for each directory of a region, and then \"end\"");
  to->region_paths.assign(lines.begin(), lines.end() - 1);
  return Status::OK();
}

// The open creates the directories. It first stores their paths in the database's directory.
Status PlaceRegions(const std::string& path, Options* to) {
  const char* const value = secure_getenv("BRAIDDB_REGION_ROOTS");
  if (!to->region_paths.empty()) return Status::OK();
  if (Status status = FindRegions(path, to); !status.ok() || !to->region_paths.empty()) return status;
  if (value == nullptr || *value == '\0') return Status::OK();
  for (const char* made : {"/region-0", "/DATABASE", "/DESTROYING"}) {
    if (std::filesystem::exists(path + made)) return Status::OK();
  }
  const std::string name = NewRegionsName(path);
  std::string_view rest = value;
  while (!rest.empty()) {
    const std::string_view root = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), root.size() + 1));
    if (root.empty()) continue;
    std::error_code error;
    if (!std::filesystem::is_directory(root, error)) {  // it may be a mount that is missing
      return Status::IOError("BRAIDDB_REGION_ROOTS names " + std::string(root) + ", which is no directory; mount it or make it");
    }
    to->region_paths.push_back(std::filesystem::absolute(std::string(root) + "/" + name).string());
  }
  return Status::OK();
}

Status DestroyPlaced(const Options& options, const std::string& path) {
  Options placed = options;
  if (Status status = FindRegions(path, &placed); !status.ok()) return status;
  if (Status status = DB::Destroy(placed, path); !status.ok()) return status;
  std::error_code not_empty;
  if (std::filesystem::remove(path + kRegionsFile, not_empty)) std::filesystem::remove(path, not_empty);
  return Status::OK();
}

CopyOptions PlacedCopies() {
  CopyOptions result;
  result.place_regions = PlaceRegions;
  result.destroy = [](const std::string& path) { return DestroyPlaced({}, path); };
  return result;
}

namespace {

Status TakeEnvironment(const std::string& path, Options* to) {
  const Options untouched;
  Status status = FindRegions(path, to);
  if (status.ok()) status = TakeBytes("BRAIDDB_DRAM_BUDGET", untouched.dram_budget, &to->dram_budget);
  if (status.ok()) status = TakeBytes("BRAIDDB_MAX_REGION_SIZE", untouched.max_region_size, &to->max_region_size);
  if (status.ok()) status = TakeBytes("BRAIDDB_LOOKUP_CACHE_SIZE", untouched.lookup_cache_size, &to->lookup_cache_size);
  if (status.ok()) {
    std::vector<std::pair<std::string_view, L1Kind>> kinds;
    for (const auto& [kind, name] : L1KindNames()) kinds.emplace_back(name, kind);
    status = TakeKind<L1Kind>("BRAIDDB_L1", kinds, untouched.l1, &to->l1);
  }
  if (status.ok()) {
    status = TakeKind<PersistMode>("BRAIDDB_PERSIST_MODE",
                                   {{"auto", PersistMode::kAuto},
                                    {"cache-line", PersistMode::kCacheLine},
                                    {"eadr", PersistMode::kEadr},
                                    {"page", PersistMode::kPage},
                                    {"emulated", PersistMode::kEmulated}},
                                   untouched.persist_mode, &to->persist_mode);
  }
  return status;
}

}  // namespace

Status MakeOptions(const braiddb_options_t& from, const std::string& path, Options* to) {
  if (!from.unfit.ok()) return from.unfit;
  *to = from.own;
  to->create_if_missing = from.create_if_missing != 0;
  to->error_if_exists = from.error_if_exists != 0;
  to->create_missing_column_families = from.create_missing_column_families != 0;
  if (from.comparator != nullptr) {
    to->comparator = from.comparator;
  }
  to->compaction_filter = from.compaction_filter;
  to->compaction_filter_factory = from.compaction_filter_factory;
  to->histograms = from.statistics != nullptr;
  MapMemtables(from, to);
  MapBackgroundWork(from, to);
  MapReads(from, to);
  NoteOptions(from, to);
  return TakeEnvironment(path, to);
}

}  // namespace braiddb::capi
