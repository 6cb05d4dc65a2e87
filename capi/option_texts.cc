// Converts the options of the tables to text, and loads them from the options file.
#include "capi/option_texts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "braiddb/options_file.h"
#include "capi/database.h"
#include "capi/option_strings.h"
#include "capi/option_values.h"
#include "capi/option_words.h"
#include "capi/result.h"

namespace braiddb::capi {
namespace {

template <class Value>
std::string Print(std::string_view name, Value value) {
  if constexpr (std::is_same_v<Value, unsigned char>) return value != 0 ? "true" : "false";
  for (const Word& word : WordsOf(name)) {
    if (static_cast<Value>(word.value) == value) return std::string(word.text);
  }
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.begin(), text.end(), value).ptr};
}

template <class Value>
bool Parse(std::string_view name, std::string_view text, Value* value) {
  if (text == "true" || text == "false") {
    *value = static_cast<Value>(text == "true");
    return true;
  }
  for (const Word& word : WordsOf(name)) {
    if (word.text != text) continue;
    *value = static_cast<Value>(word.value);
    return true;
  }
  Value number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if (std::is_same_v<Value, unsigned char> && number != Value{0} && number != Value{1}) return false;
  *value = number;
  return true;
}

}  // namespace

bool IsFamilyOption(std::string_view name) {
  constexpr std::string_view kBeginnings[] = {"arena_",
                                              "blob_",
                                              "bloom_",
                                              "bottommost_",
                                              "compaction_style",
                                              "compression",
                                              "disable_auto_",
                                              "enable_blob_",
                                              "experimental_",
                                              "hard_",
                                              "inplace_",
                                              "level",
                                              "max_bytes_for_",
                                              "max_compaction_",
                                              "max_sequential",
                                              "max_successive_",
                                              "max_write_",
                                              "memtable_",
                                              "min_",
                                              "num_levels",
                                              "optimize_filters_",
                                              "prepopulate_",
                                              "report_bg_",
                                              "soft_",
                                              "target_file_",
                                              "write_buffer_size"};
  return std::any_of(std::begin(kBeginnings), std::end(kBeginnings), [&](auto beginning) { return name.starts_with(beginning); });
}

// RocksDB's name of an option of block-based tables.
static std::string TableOptionName(std::string_view name) {
  return std::string(name == "data_block_hash_ratio" ? "data_block_hash_table_util_ratio" : name);
}

void NoteOptions(const braiddb_options_t& from, Options* to) {
#define NOTE_BOTH(set_type, get_type, name, initial) NOTE_SET(get_type, name, initial)
#define NOTE_SET(type, name, initial) \
  (IsFamilyOption(#name) ? to->foreign_family_options : to->foreign_options)[#name] = Print(#name, from.name);
  BRAIDDB_C_OPTIONS(NOTE_BOTH, NOTE_SET)
#undef NOTE_BOTH
#undef NOTE_SET
  const braiddb_block_based_table_options_t& table = from.table;
#define NOTE_BOTH(set_type, get_type, name, initial) NOTE_SET(get_type, name, initial)
#define NOTE_SET(type, name, initial) to->foreign_table_options[TableOptionName(#name)] = Print(#name, table.name);
  BRAIDDB_C_BLOCK_OPTIONS(NOTE_BOTH, NOTE_SET)
#undef NOTE_BOTH
#undef NOTE_SET
  if (table.block_cache != nullptr)
    to->foreign_table_options["block_cache"] = std::to_string(table.block_cache->limit.capacity());
}

Status SetOption(std::string_view name, std::string_view value, braiddb_options_t* options) {
  bool is_known = false;
  bool is_set = false;
#define SET_BOTH(set_type, get_type, option, initial) SET_SET(get_type, option, initial)
#define SET_SET(type, option, initial)             \
  if (name == #option) {                           \
    is_known = true;                               \
    is_set = Parse(name, value, &options->option); \
  }
  BRAIDDB_C_OPTIONS(SET_BOTH, SET_SET)
#undef SET_BOTH
#undef SET_SET
  if (is_set) return Status::OK();
  if (!is_known) return OptionNotFound(name);
  return Status::InvalidArgument("Error parsing " + std::string(name) + ":" + std::string(value));
}

std::string OptionText(std::string_view name, const braiddb_options_t& options) {
#define PRINT_BOTH(set_type, get_type, option, initial) PRINT_SET(get_type, option, initial)
#define PRINT_SET(type, option, initial) \
  if (name == #option) return Print(name, options.option);
  BRAIDDB_C_OPTIONS(PRINT_BOTH, PRINT_SET)
#undef PRINT_BOTH
#undef PRINT_SET
  return {};
}

void CopyDatabaseOptions(const braiddb_options_t& from, braiddb_options_t* to) {
#define COPY_BOTH(set_type, get_type, name, initial) COPY_SET(get_type, name, initial)
#define COPY_SET(type, name, initial) \
  if (!IsFamilyOption(#name)) to->name = from.name;
  BRAIDDB_C_OPTIONS(COPY_BOTH, COPY_SET)
#undef COPY_BOTH
#undef COPY_SET
  to->compaction_readahead_size = from.compaction_readahead_size;
  to->db_paths = from.db_paths;
  to->db_log_dir = from.db_log_dir;
  to->wal_dir = from.wal_dir;
  to->env = from.env;
  to->info_log = from.info_log;
  to->row_cache = from.row_cache;
  to->ratelimiter = from.ratelimiter;
  to->statistics = from.statistics;
}

namespace {

// Options that the file of a program without the C API has, too.
void SetShared(const Options& loaded, braiddb_options_t* options) {
  options->create_if_missing = loaded.create_if_missing;
  options->create_missing_column_families = loaded.create_missing_column_families;
  options->error_if_exists = loaded.error_if_exists;
  options->disable_auto_compactions = loaded.disable_auto_compaction;
}

Status SetForeign(const std::map<std::string, std::string>& foreign, bool ignore_unknown, braiddb_options_t* options) {
  for (const auto& [name, value] : foreign) {
    Status status = SetOption(name, value, options);
    if (!status.ok() && !ignore_unknown) return status;
  }
  return Status::OK();
}

// The size of a cache is not loaded, since a cache is an object of the program.
void SetForeignTable(const std::map<std::string, std::string>& foreign, braiddb_options_t* options) {
  for (const auto& [name, value] : foreign) {
    if (name == "block_cache" || value.find_first_of(";{}") != std::string::npos) continue;
    (void)SetNamedOption("block_based_table_factory", name + "=" + value + ";", options);  // newer ones are unknown
  }
}

using OwnedOptions = std::unique_ptr<braiddb_options_t>;

// `families`: all families, the default family first.
Status Load(const char* path, bool ignore_unknown, const braiddb_cache_t* cache, OwnedOptions* database,
            std::map<std::string, OwnedOptions>* families) {
  LoadedOptions loaded;
  if (Status status = LoadLatestOptions(path, &loaded, ignore_unknown); !status.ok()) return status;
  *database = std::make_unique<braiddb_options_t>();
  std::vector<braiddb_options_t*> all{database->get()};
  for (const ColumnFamilyDescriptor& descriptor : loaded.Descriptors()) {
    all.push_back(((*families)[descriptor.name] = std::make_unique<braiddb_options_t>()).get());
  }
  for (braiddb_options_t* const options : all) {
    options->own = loaded.options;
    options->own.foreign_options.clear();
    options->own.foreign_family_options.clear();
    options->own.foreign_table_options.clear();
    SetShared(loaded.options, options);
    if (cache == nullptr) continue;
    options->table.block_cache = cache->rep;
    options->own.lookup_cache_size = Options().lookup_cache_size;  // a default, because the size belongs to the cache object
  }
  Status status = SetForeign(loaded.options.foreign_options, ignore_unknown, database->get());
  for (const ColumnFamilyDescriptor& descriptor : loaded.Descriptors()) {
    braiddb_options_t* const options = (*families)[descriptor.name].get();
    options->own.comparator = descriptor.options.comparator;
    options->own.l1 = descriptor.options.l1;
    options->own.nv_leaf_size = descriptor.options.nv_leaf_size;
    if (status.ok()) status = SetForeign(descriptor.options.foreign_options, ignore_unknown, options);
    SetForeignTable(descriptor.options.foreign_table_options, options);
  }
  return status;
}

}  // namespace
}  // namespace braiddb::capi

using namespace braiddb::capi;
using braiddb::Status;

// Lists the families of the database. If the options file lacks a family, because the file could not be written, the family gets
// the default family's options.
void braiddb_load_latest_options(const char* path, braiddb_env_t*, bool ignore_unknown_options, braiddb_cache_t* cache,
                                 braiddb_options_t** options, size_t* column_family_count, char*** column_family_names,
                                 braiddb_options_t*** column_family_options, char** errptr) {
  *options = nullptr;
  *column_family_count = 0;
  *column_family_names = nullptr;
  *column_family_options = nullptr;
  OwnedOptions database;
  std::map<std::string, OwnedOptions> families;
  std::vector<std::string> names;
  const Status status = Guarded([&] {
    Status loaded = Load(path, ignore_unknown_options, cache, &database, &families);
    return loaded.ok() ? ListFamilies(*database, path, &names) : loaded;
  });
  if (SaveError(errptr, status)) return;
  auto** const copied_names = static_cast<char**>(std::calloc(names.size(), sizeof(char*)));
  auto** const copied_options = static_cast<braiddb_options_t**>(std::calloc(names.size(), sizeof(braiddb_options_t*)));
  const Status copied = Guarded([&] {
    if (copied_names == nullptr || copied_options == nullptr) return NoMemory();
    for (size_t i = 0; i < names.size(); ++i) {
      copied_names[i] = CopyBytes(names[i]);
      if (copied_names[i] == nullptr) return NoMemory();
      copied_options[i] = new braiddb_options_t(
          *(families.contains(names[i]) ? families[names[i]] : families[braiddb::kDefaultColumnFamilyName]));
    }
    return Status::OK();
  });
  if (SaveError(errptr, copied)) {
    braiddb_load_latest_options_destroy(nullptr, copied_names, copied_options, names.size());
    return;
  }
  *options = database.release();
  *column_family_count = names.size();
  *column_family_names = copied_names;
  *column_family_options = copied_options;
}

void braiddb_load_latest_options_destroy(braiddb_options_t* options, char** column_family_names,
                                         braiddb_options_t** column_family_options, size_t count) {
  delete options;
  for (size_t i = 0; column_family_names != nullptr && i < count; ++i) std::free(column_family_names[i]);
  for (size_t i = 0; column_family_options != nullptr && i < count; ++i) delete column_family_options[i];
  std::free(column_family_names);
  std::free(column_family_options);
}
