// Options that can be changed while a database is open.
#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capi/objects.h"
#include "capi/option_strings.h"
#include "capi/option_texts.h"
#include "capi/option_values.h"
#include "capi/options.h"
#include "capi/result.h"

using braiddb::ChangedOptions;
using braiddb::ColumnFamilyHandle;
using braiddb::Status;
using namespace braiddb::capi;

namespace {

// RocksDB's mutable column family options that are in the tables of the C API.
constexpr std::string_view kChangeable[] = {"arena_block_size",
                                            "blob_file_size",
                                            "blob_file_starting_level",
                                            "bottommost_compression",
                                            "compression",
                                            "disable_auto_compactions",
                                            "enable_blob_files",
                                            "experimental_mempurge_threshold",
                                            "hard_pending_compaction_bytes_limit",
                                            "inplace_update_num_locks",
                                            "level0_file_num_compaction_trigger",
                                            "level0_slowdown_writes_trigger",
                                            "level0_stop_writes_trigger",
                                            "max_bytes_for_level_base",
                                            "max_bytes_for_level_multiplier",
                                            "max_compaction_bytes",
                                            "max_sequential_skip_in_iterations",
                                            "max_successive_merges",
                                            "max_write_buffer_number",
                                            "memtable_huge_page_size",
                                            "memtable_prefix_bloom_size_ratio",
                                            "memtable_whole_key_filtering",
                                            "min_blob_size",
                                            "prepopulate_blob_cache",
                                            "report_bg_io_stats",
                                            "soft_pending_compaction_bytes_limit",
                                            "target_file_size_base",
                                            "target_file_size_multiplier",
                                            "write_buffer_size"};
// The other mutable options; they have no effect here.
constexpr std::string_view kOthers[] = {"blob_compaction_readahead_size",
                                        "blob_compression_type",
                                        "blob_garbage_collection_age_cutoff",
                                        "blob_garbage_collection_force_threshold",
                                        "bottommost_compression_opts",
                                        "bottommost_temperature",
                                        "check_flush_compaction_key_order",
                                        "compaction_options_fifo",
                                        "compaction_options_universal",
                                        "compression_opts",
                                        "compression_per_level",
                                        "enable_blob_garbage_collection",
                                        "max_bytes_for_level_multiplier_additional",
                                        "paranoid_file_checks",
                                        "periodic_compaction_seconds",
                                        "sample_for_compression",
                                        "ttl"};
// Mutable options with several values, which may be named as "structure.value".
constexpr std::string_view kStructures[] = {"bottommost_compression_opts", "compaction_options_fifo",
                                            "compaction_options_universal", "compression_opts"};
// Mutable options of block-based tables; they have no effect here.
constexpr std::string_view kTableOptions[] = {"block_restart_interval",
                                              "block_size",
                                              "initial_auto_readahead_size",
                                              "max_auto_readahead_size",
                                              "num_file_reads_for_auto_readahead",
                                              "prepopulate_block_cache"};
// Column family options that are fixed at open.
constexpr std::string_view kFixed[] = {"compaction_filter",
                                       "compaction_filter_factory",
                                       "comparator",
                                       "compaction_pri",
                                       "force_consistency_checks",
                                       "max_mem_compaction_level",
                                       "memtable_factory",
                                       "merge_operator",
                                       "preclude_last_level_data_seconds"};

template <size_t kCount>
bool IsOneOf(std::string_view name, const std::string_view (&names)[kCount]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

uint32_t Positive(int value) { return static_cast<uint32_t>(std::max(1, value)); }

// Applies a changed option to the engine, if it has an effect. As at open (capi/open_options.cc), but a value equal to the
// default counts too.
void Apply(std::string_view name, const braiddb_options_t& set, ChangedOptions* changed) {
  if (name == "write_buffer_size") {
    changed->memtable_size = MemtableSize(set.write_buffer_size);
  } else if (name == "max_write_buffer_number") {
    changed->max_immutable_memtables = Positive(std::max(2, set.max_write_buffer_number) - 1);
  } else if (name == "level0_file_num_compaction_trigger") {
    changed->l0_compaction_trigger = Positive(set.level0_file_num_compaction_trigger);
  } else if (name == "level0_slowdown_writes_trigger" && set.level0_slowdown_writes_trigger > 0) {
    changed->l0_slowdown_writes_trigger = Positive(set.level0_slowdown_writes_trigger);
  } else if (name == "disable_auto_compactions") {
    changed->disable_auto_compaction = set.disable_auto_compactions != 0;
  }
}

Status NotChangeable(std::string_view name) { return Status::InvalidArgument("Option not changeable: " + std::string(name)); }

// Checks options of block-based tables. `name`: the option that was set.
Status CheckTableOptions(std::string_view name, std::span<const NamedText> all) {
  braiddb_options_t set;
  bool has_unknown = false;
  for (const NamedText& option : all) {
    Status status;
    if (option.name == "id") {
      if (option.text != "BlockBasedTable") return NotChangeable(name);
    } else if (!SetBlockOption(option, &set.table, &status)) {
      has_unknown = true;
    } else if (!IsOneOf(option.name, kTableOptions)) {
      return NotChangeable(option.name);
    } else if (!status.ok()) {
      return status;
    }
  }
  return has_unknown ? OptionNotFound(name) : Status::OK();
}

// Removes `prefix` from the beginning of *text; false if *text begins otherwise.
bool Skip(std::string_view prefix, std::string_view* text) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}

// Checks an option of the table format. *is_one is false if `name` is no such option.
Status CheckTableFormat(std::string_view name, std::string_view value, bool* is_one) {
  *is_one = true;
  if (name == "table_factory" || name == "block_based_table_factory") {
    const bool changes_nothing = value.empty() || value == "BlockBasedTable" || value == "nullptr";
    std::vector<NamedText> all;
    if (changes_nothing) return Status::OK();
    if (value.find('=') == std::string_view::npos || !SplitOptions(value, &all).ok()) return NotChangeable(name);
    return CheckTableOptions(name, all);
  }
  std::string_view option = name;
  *is_one = Skip("table_factory.", &option) || Skip("block_based_table_factory.", &option);
  if (!*is_one) return Status::OK();
  (void)Skip("BlockBasedTable.", &option);
  const NamedText one[] = {{option, value}};
  return CheckTableOptions(name, one);
}

// Checks "structure.value". *is_one is false if `name` is no such option.
Status CheckPartOfStructure(std::string_view name, std::string_view value, bool* is_one) {
  const size_t dot = name.find('.');
  const std::string_view structure = name.substr(0, dot);
  *is_one = dot != std::string_view::npos && IsOneOf(structure, kStructures);
  if (!*is_one) return Status::OK();
  const std::string_view option = name.substr(dot + 1);
  if (option.empty() || option.find_first_of("=;{}") != std::string_view::npos)
    return Status::InvalidArgument("Unrecognized option: " + std::string(name));
  braiddb_options_t set;
  return SetNamedOption(structure, "{" + std::string(option) + "={" + std::string(value) + "}}", &set);
}

// Errors have RocksDB's texts.
Status Take(std::string_view name, std::string_view value, ChangedOptions* changed) {
  const std::string text(name);
  if (name == "prefix_extractor") {
    return Status::NotSupported("set_options: the prefix extractor is that of the open");
  }
  if (IsOneOf(name, kChangeable) || IsOneOf(name, kOthers)) {
    braiddb_options_t set;
    if (Status status = SetNamedOption(name, value, &set); !status.ok()) return status;
    if (!IsOneOf(name, kChangeable)) return Status::OK();
    changed->foreign_family_options[text] = OptionText(name, set);
    Apply(name, set, changed);
    return Status::OK();
  }
  bool is_one = false;
  if (Status status = CheckTableFormat(name, value, &is_one); is_one) return status;
  if (Status status = CheckPartOfStructure(name, value, &is_one); is_one) return status;
  braiddb_options_t probe;
  const bool is_known = !OptionText(name, probe).empty();
  if (IsOneOf(name, kFixed) || (is_known && IsFamilyOption(name))) return NotChangeable(name);
  return OptionNotFound(name);
}

// Applies all options or none. If a name occurs several times, its last value counts, as in RocksDB.
Status SetOptions(braiddb_t* db, ColumnFamilyHandle* family, int count, const char* const* names, const char* const* values) {
  if (count <= 0) return Status::InvalidArgument("empty input");
  ChangedOptions changed;
  for (int i = 0; i < count; ++i) {
    const std::string_view name = names[i];
    if (std::find(names + i + 1, names + count, name) != names + count) continue;
    if (Status status = Take(names[i], values[i], &changed); !status.ok()) return status;
  }
  return db->db->SetOptions(family, changed);
}

}  // namespace

void braiddb_set_options(braiddb_t* db, int count, const char* const* names, const char* const* values, char** errptr) {
  SaveError(errptr, Guarded([&] { return SetOptions(db, db->db->DefaultColumnFamily(), count, names, values); }));
}

void braiddb_set_options_cf(braiddb_t* db, braiddb_column_family_handle_t* column_family, int count, const char* const* names,
                            const char* const* values, char** errptr) {
  SaveError(errptr, Guarded([&] { return SetOptions(db, FamilyOf(column_family), count, names, values); }));
}
