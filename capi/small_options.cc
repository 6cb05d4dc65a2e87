// Options of reads, writes, flushes, compactions, and tables.
#include "capi/options.h"
#include "capi/result.h"

// Generates create, destroy, and the setters and getters of the table.
#define DEFINE_OBJECT(object, type)                                         \
  type* braiddb_##object##_create() { return braiddb::capi::Make<type>(); } \
  void braiddb_##object##_destroy(type* options) { delete options; }

#define DEFINE_BOTH(set_type, get_type, name, initial)                               \
  BRAIDDB_C_DEFINE_SET(readoptions, braiddb_readoptions_t, set_type, get_type, name) \
  BRAIDDB_C_DEFINE_GET(readoptions, braiddb_readoptions_t, get_type, name)
#define DEFINE_SET(type, name, initial) BRAIDDB_C_DEFINE_SET(readoptions, braiddb_readoptions_t, type, type, name)
DEFINE_OBJECT(readoptions, braiddb_readoptions_t)
BRAIDDB_C_READ_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET

#define DEFINE_BOTH(set_type, get_type, name, initial)                                 \
  BRAIDDB_C_DEFINE_SET(writeoptions, braiddb_writeoptions_t, set_type, get_type, name) \
  BRAIDDB_C_DEFINE_GET(writeoptions, braiddb_writeoptions_t, get_type, name)
#define DEFINE_SET(type, name, initial) BRAIDDB_C_DEFINE_SET(writeoptions, braiddb_writeoptions_t, type, type, name)
DEFINE_OBJECT(writeoptions, braiddb_writeoptions_t)
BRAIDDB_C_WRITE_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET

#define DEFINE_BOTH(set_type, get_type, name, initial)                                 \
  BRAIDDB_C_DEFINE_SET(flushoptions, braiddb_flushoptions_t, set_type, get_type, name) \
  BRAIDDB_C_DEFINE_GET(flushoptions, braiddb_flushoptions_t, get_type, name)
#define DEFINE_SET(type, name, initial) BRAIDDB_C_DEFINE_SET(flushoptions, braiddb_flushoptions_t, type, type, name)
DEFINE_OBJECT(flushoptions, braiddb_flushoptions_t)
BRAIDDB_C_FLUSH_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET

#define DEFINE_BOTH(set_type, get_type, name, initial)                                     \
  BRAIDDB_C_DEFINE_SET(compactoptions, braiddb_compactoptions_t, set_type, get_type, name) \
  BRAIDDB_C_DEFINE_GET(compactoptions, braiddb_compactoptions_t, get_type, name)
#define DEFINE_SET(type, name, initial) BRAIDDB_C_DEFINE_SET(compactoptions, braiddb_compactoptions_t, type, type, name)
DEFINE_OBJECT(compactoptions, braiddb_compactoptions_t)
BRAIDDB_C_COMPACT_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET

void braiddb_compactoptions_set_bottommost_level_compaction(braiddb_compactoptions_t* options, unsigned char value) {
  options->bottommost_level_compaction = value;
}
unsigned char braiddb_compactoptions_get_bottommost_level_compaction(braiddb_compactoptions_t* options) {
  return options->bottommost_level_compaction;
}

#define DEFINE_BOTH(set_type, get_type, name, initial)                                                     \
  BRAIDDB_C_DEFINE_SET(block_based_options, braiddb_block_based_table_options_t, set_type, get_type, name) \
  BRAIDDB_C_DEFINE_GET(block_based_options, braiddb_block_based_table_options_t, get_type, name)
#define DEFINE_SET(type, name, initial) \
  BRAIDDB_C_DEFINE_SET(block_based_options, braiddb_block_based_table_options_t, type, type, name)
DEFINE_OBJECT(block_based_options, braiddb_block_based_table_options_t)
BRAIDDB_C_BLOCK_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET

#define DEFINE_BOTH(set_type, get_type, name, initial)                                           \
  BRAIDDB_C_DEFINE_SET(cuckoo_options, braiddb_cuckoo_table_options_t, set_type, get_type, name) \
  BRAIDDB_C_DEFINE_GET(cuckoo_options, braiddb_cuckoo_table_options_t, get_type, name)
#define DEFINE_SET(type, name, initial) BRAIDDB_C_DEFINE_SET(cuckoo_options, braiddb_cuckoo_table_options_t, type, type, name)
DEFINE_OBJECT(cuckoo_options, braiddb_cuckoo_table_options_t)
BRAIDDB_C_CUCKOO_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET

#define DEFINE_BOTH(set_type, get_type, name, initial)                                                                 \
  BRAIDDB_C_DEFINE_SET(universal_compaction_options, braiddb_universal_compaction_options_t, set_type, get_type, name) \
  BRAIDDB_C_DEFINE_GET(universal_compaction_options, braiddb_universal_compaction_options_t, get_type, name)
#define DEFINE_SET(type, name, initial) \
  BRAIDDB_C_DEFINE_SET(universal_compaction_options, braiddb_universal_compaction_options_t, type, type, name)
DEFINE_OBJECT(universal_compaction_options, braiddb_universal_compaction_options_t)
BRAIDDB_C_UNIVERSAL_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET

#define DEFINE_BOTH(set_type, get_type, name, initial)                                                       \
  BRAIDDB_C_DEFINE_SET(fifo_compaction_options, braiddb_fifo_compaction_options_t, set_type, get_type, name) \
  BRAIDDB_C_DEFINE_GET(fifo_compaction_options, braiddb_fifo_compaction_options_t, get_type, name)
#define DEFINE_SET(type, name, initial) \
  BRAIDDB_C_DEFINE_SET(fifo_compaction_options, braiddb_fifo_compaction_options_t, type, type, name)
DEFINE_OBJECT(fifo_compaction_options, braiddb_fifo_compaction_options_t)
BRAIDDB_C_FIFO_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET

// ---- Reads

namespace {

// Stores a copy of the bytes and the engine's slice of it. Null removes both.
void Keep(braiddb_readoptions_t* options, const char* bytes, size_t length, std::string* kept,
          std::optional<braiddb::Slice>* slice) {
  kept->clear();
  slice->reset();
  if (bytes == nullptr) return;
  braiddb::capi::DoOrNote(&options->unfit, [&] {
    kept->assign(bytes, length);
    *slice = braiddb::Slice(*kept);
  });
}

}  // namespace

// RocksDB verifies blocks by default, because they come from a disk. A get from persistent memory verifies checksums only on
// request.
void braiddb_readoptions_set_verify_checksums(braiddb_readoptions_t* options, unsigned char value) {
  options->verify_checksums = value != 0;
  options->rep.verify_checksums = value != 0;
}
unsigned char braiddb_readoptions_get_verify_checksums(braiddb_readoptions_t* options) { return options->verify_checksums; }

void braiddb_readoptions_set_snapshot(braiddb_readoptions_t* options, const braiddb_snapshot_t* snapshot) {
  options->rep.snapshot = snapshot == nullptr ? nullptr : snapshot->rep;
}

void braiddb_readoptions_set_iterate_lower_bound(braiddb_readoptions_t* options, const char* key, size_t key_length) {
  Keep(options, key, key_length, &options->lower_bound, &options->rep.iterate_lower_bound);
}

void braiddb_readoptions_set_iterate_upper_bound(braiddb_readoptions_t* options, const char* key, size_t key_length) {
  Keep(options, key, key_length, &options->upper_bound, &options->rep.iterate_upper_bound);
}

void braiddb_readoptions_set_prefix(braiddb_readoptions_t* options, const char* prefix, size_t prefix_length) {
  Keep(options, prefix, prefix_length, &options->prefix, &options->rep.prefix);
}

void braiddb_readoptions_set_timestamp(braiddb_readoptions_t* options, const char* timestamp, size_t timestamp_length) {
  Keep(options, timestamp, timestamp_length, &options->timestamp, &options->rep.timestamp);
}

void braiddb_readoptions_set_iter_start_ts(braiddb_readoptions_t* options, const char* timestamp, size_t timestamp_length) {
  Keep(options, timestamp, timestamp_length, &options->iter_start_ts, &options->rep.iter_start_ts);
}

// ---- Writes, compactions

braiddb::Status braiddb::capi::Contradiction() {
  return Guarded([] { return Status::InvalidArgument("Sync writes has to enable WAL."); });  // RocksDB's text
}

void braiddb_writeoptions_disable_WAL(braiddb_writeoptions_t* options, int value) { options->disable_WAL = value != 0; }
unsigned char braiddb_writeoptions_get_disable_WAL(braiddb_writeoptions_t* options) { return options->disable_WAL; }

void braiddb_compactoptions_set_full_history_ts_low(braiddb_compactoptions_t* options, char* timestamp, size_t timestamp_length) {
  braiddb::Status ignored;  // without memory the history is not trimmed
  braiddb::capi::DoOrNote(&ignored, [&] {
    options->full_history_ts_low.assign(timestamp == nullptr ? "" : timestamp, timestamp == nullptr ? 0 : timestamp_length);
  });
}

// ---- Tables

void braiddb_block_based_options_set_block_cache(braiddb_block_based_table_options_t* options, braiddb_cache_t* cache) {
  options->block_cache = cache == nullptr ? nullptr : cache->rep;
}

void braiddb_block_based_options_set_block_cache_compressed(braiddb_block_based_table_options_t* options,
                                                            braiddb_cache_t* cache) {
  options->block_cache_compressed = cache == nullptr ? nullptr : cache->rep;
}

void braiddb_block_based_options_set_filter_policy(braiddb_block_based_table_options_t* options, braiddb_filterpolicy_t* policy) {
  options->filter_policy.reset(policy);
}
