// Flushes, compactions, families, options, files.
#include <algorithm>
#include <filesystem>
#include <tuple>

#include "tests/differential/machine.h"

namespace braiddb::test {

std::string Machine::Flush(Draw& draw) {
  const Target target = PickFamily(draw);
  braiddb_flushoptions_t* const options = api_.rocksdb_flushoptions_create();
  Error error(api_);
  if (is(Kind::kTransactions)) {
    target.by_default ? api_.rocksdb_transactiondb_flush(transaction_db_, options, error.pointer())
                      : api_.rocksdb_transactiondb_flush_cf(transaction_db_, options, target.handle(), error.pointer());
  } else {
    target.by_default ? api_.rocksdb_flush(db_, options, error.pointer())
                      : api_.rocksdb_flush_cf(db_, options, target.handle(), error.pointer());
  }
  api_.rocksdb_flushoptions_destroy(options);
  return error.Take();
}

std::string Machine::Compact(Draw& draw) {
  const Target target = PickFamily(draw);
  auto [from, to] = PickRange(draw);
  const bool open_start = draw.Chance(60);
  const bool open_end = draw.Chance(60);
  if (is(Kind::kTransactions)) return "not here";
  if (open_start) Say("from the start");
  if (open_end) Say("to the end");
  const char* const first = open_start ? nullptr : from.data();
  const char* const last = open_end ? nullptr : to.data();
  target.by_default ? api_.rocksdb_compact_range(db_, first, from.size(), last, to.size())
                    : api_.rocksdb_compact_range_cf(db_, target.handle(), first, from.size(), last, to.size());
  return "ok";
}

std::string Machine::CreateFamily(Draw& draw) {
  std::string name = draw.Chance(3) ? "default" : "f" + std::to_string(draw.Below(4));
  if (draw.Chance(3)) name = draw.Chance(50) ? "with space/and slash" : "\xc3\xa4";
  Say(name);
  Error error(api_);
  braiddb_column_family_handle_t* const handle =
      is(Kind::kTransactions)
          ? api_.rocksdb_transactiondb_create_column_family(transaction_db_, options_, name.c_str(), error.pointer())
          : api_.rocksdb_create_column_family(db_, options_, name.c_str(), error.pointer());
  if (error.failed()) return error.Take();
  families_.push_back({handle, name, false});
  size_t length = 0;
  char* const told = api_.rocksdb_column_family_handle_get_name(handle, &length);
  std::string result = "ok " + Quote({told, length});
  api_.rocksdb_free(told);
  return result;
}

std::string Machine::DropFamily(Draw& draw) {
  const size_t index = draw.Below(families_.size());
  if (index == 0 && draw.Chance(80)) return "not here";
  Family& family = families_[index];
  Say(family.name + (family.dropped ? "(dropped)" : ""));
  const bool destroy = draw.Chance(50);
  std::string result = "not here";
  if (!is(Kind::kTransactions)) {
    // What writes to the family goes with it.
    for (OpenTransaction& each : transactions_) DestroyTransaction(&each);
    EndBatches();
    Error error(api_);
    api_.rocksdb_drop_column_family(db_, family.handle, error.pointer());
    family.dropped |= !error.failed();
    result = error.Take();
    if (family.dropped) std::erase_if(put_once_, [&](const auto& each) { return each.first == family.name; });
  }
  if (!family.dropped || !destroy) return result;
  Say("and destroy the handle");
  api_.rocksdb_column_family_handle_destroy(family.handle);
  families_.erase(families_.begin() + static_cast<std::ptrdiff_t>(index));
  return result;
}

std::string Machine::SetOptions(Draw& draw) {
  static constexpr std::array<std::pair<const char*, const char*>, 12> kWords{{{"write_buffer_size", "131072"},
                                                                               {"write_buffer_size", "65536"},
                                                                               {"write_buffer_size", "much"},
                                                                               {"disable_auto_compactions", "true"},
                                                                               {"disable_auto_compactions", "false"},
                                                                               {"disable_auto_compactions", "maybe"},
                                                                               {"level0_file_num_compaction_trigger", "3"},
                                                                               {"max_write_buffer_number", "4"},
                                                                               {"target_file_size_base", "1M"},
                                                                               {"max_sequential_skip_in_iterations", "2"},
                                                                               {"comparator", "other"},
                                                                               {"no_such_option", "1"}}};
  const Target target = PickFamily(draw);
  std::array<const char*, 2> keys;
  std::array<const char*, 2> values;
  const int count = 1 + static_cast<int>(draw.Below(2));
  for (int i = 0; i < count; ++i) {
    std::tie(keys[i], values[i]) = kWords[draw.Below(kWords.size())];
    Say(std::string(keys[i]) + "=" + values[i]);
  }
  if (is(Kind::kTransactions)) return "not here";
  Error error(api_);
  target.by_default ? api_.rocksdb_set_options(db_, count, keys.data(), values.data(), error.pointer())
                    : api_.rocksdb_set_options_cf(db_, target.handle(), count, keys.data(), values.data(), error.pointer());
  return error.Take();
}

std::string Machine::OptionString(Draw& draw) {
  static constexpr std::array<const char*, 22> kWords{
      "write_buffer_size=1M",
      "write_buffer_size=-1",
      "max_write_buffer_number=5",
      "max_write_buffer_number=1x",
      "create_if_missing=true",
      "create_if_missing=1",
      "create_if_missing=perhaps",
      "num_levels=3",
      "compression=kLZ4Compression",
      "compression=kUnknownThing",
      "max_open_files=-1",
      "block_based_table_factory={block_size=8192;cache_index_and_filter_blocks=1}",
      "block_based_table_factory={block_size=8192",
      "compaction_style=kCompactionStyleUniversal",
      "unknown=1",
      "",
      "=",
      " target_file_size_base = 4K ",
      "max_bytes_for_level_multiplier=8.5",
      "prefix_extractor=fixed:4",
      "comparator=leveldb.BytewiseComparator",
      "max_background_jobs=2147483648"};
  std::string text;
  for (size_t count = 1 + draw.Below(4); count > 0; --count) text += std::string(kWords[draw.Below(kWords.size())]) + ";";
  if (draw.Chance(50)) text.pop_back();
  Say(Quote(text.substr(0, 24)) + Quote(text.substr(std::min<size_t>(24, text.size()))));
  braiddb_options_t* const base = api_.rocksdb_options_create();
  braiddb_options_t* const result = api_.rocksdb_options_create();
  Error error(api_);
  api_.rocksdb_get_options_from_string(base, text.c_str(), result, error.pointer());
  std::string told = error.Take();
  told += " " + std::to_string(api_.rocksdb_options_get_write_buffer_size(result));
  told += " " + std::to_string(api_.rocksdb_options_get_max_write_buffer_number(result));
  told += " " + std::to_string(api_.rocksdb_options_get_create_if_missing(result));
  told += " " + std::to_string(api_.rocksdb_options_get_num_levels(result));
  told += " " + std::to_string(api_.rocksdb_options_get_compression(result));
  told += " " + std::to_string(api_.rocksdb_options_get_max_open_files(result));
  told += " " + std::to_string(api_.rocksdb_options_get_compaction_style(result));
  told += " " + std::to_string(api_.rocksdb_options_get_target_file_size_base(result));
  told += " " + std::to_string(api_.rocksdb_options_get_max_bytes_for_level_multiplier(result));
  told += " " + std::to_string(api_.rocksdb_options_get_max_background_jobs(result));
  api_.rocksdb_options_destroy(base);
  api_.rocksdb_options_destroy(result);
  return told;
}

std::string Machine::Ingest(Draw& draw) {
  const Target target = PickFamily(draw);
  std::vector<std::string_view> keys = draw.Keys(draw.Below(12));
  if (is(Kind::kTransactions)) return "not here";
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  if (life_.reverse_order) std::reverse(keys.begin(), keys.end());
  if (keys.size() > 1 && draw.Chance(5)) {
    Say("out of order");
    std::swap(keys.front(), keys.back());
  }
  // Commits of RocksDB's optimistic transactions do not look into files: see KnownDifferences.
  for (OpenTransaction& each : transactions_) DestroyTransaction(&each);
  const std::string path = directory_ + "/file" + std::to_string(++files_);
  braiddb_envoptions_t* const environment = api_.rocksdb_envoptions_create();
  braiddb_sstfilewriter_t* const writer =
      life_.reverse_order ? api_.rocksdb_sstfilewriter_create_with_comparator(environment, options_, comparator_)
                          : api_.rocksdb_sstfilewriter_create(environment, options_);
  std::string result;
  {
    Error error(api_);
    api_.rocksdb_sstfilewriter_open(writer, path.c_str(), error.pointer());
    result += error.Take();
  }
  for (const std::string_view key : keys) {
    Error error(api_);
    const size_t kind = draw.Below(10);
    const std::string value = draw.Value();
    Say((kind < 7 ? "put " : kind < 9 ? "delete " : "merge ") + Quote(key) + "=" + Quote(value));
    if (kind < 7) {
      api_.rocksdb_sstfilewriter_put(writer, key.data(), key.size(), value.data(), value.size(), error.pointer());
    } else if (kind < 9) {
      api_.rocksdb_sstfilewriter_delete(writer, key.data(), key.size(), error.pointer());
    } else {
      api_.rocksdb_sstfilewriter_merge(writer, key.data(), key.size(), value.data(), value.size(), error.pointer());
    }
    result += " " + error.Take();
  }
  bool finished = false;
  {
    Error error(api_);
    api_.rocksdb_sstfilewriter_finish(writer, error.pointer());
    finished = !error.failed();
    result += ", finish " + error.Take();
  }
  api_.rocksdb_sstfilewriter_destroy(writer);
  api_.rocksdb_envoptions_destroy(environment);
  if (finished || draw.Chance(5)) {
    Error error(api_);
    braiddb_ingestexternalfileoptions_t* const options = api_.rocksdb_ingestexternalfileoptions_create();
    const char* const file = path.c_str();
    target.by_default ? api_.rocksdb_ingest_external_file(db_, &file, 1, options, error.pointer())
                      : api_.rocksdb_ingest_external_file_cf(db_, target.handle(), &file, 1, options, error.pointer());
    api_.rocksdb_ingestexternalfileoptions_destroy(options);
    result += ", ingest " + error.Take();
  }
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return result;
}

}  // namespace braiddb::test
