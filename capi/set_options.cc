// Options that can be changed while a database is open.
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "capi/objects.h"
#include "capi/option_strings.h"
#include "capi/option_texts.h"
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
                                        "block_based_table_factory",
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
                                        "plain_table_factory",
                                        "sample_for_compression",
                                        "table_factory",
                                        "ttl"};
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
  if (name.starts_with("table_factory.") || name.starts_with("compaction_options_")) return Status::OK();
  braiddb_options_t probe;
  const bool is_known = !OptionText(name, probe).empty();
  if (IsOneOf(name, kFixed) || (is_known && IsFamilyOption(name)))
    return Status::InvalidArgument("Option not changeable: " + text);
  return Status::InvalidArgument("Could not find option: : " + text);
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
