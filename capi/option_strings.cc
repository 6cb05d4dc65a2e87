// braiddb_get_options_from_string.
#include "capi/option_strings.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "braiddb/comparator.h"
#include "braiddb/merge_operator.h"
#include "braiddb/slice_transform.h"
#include "capi/option_names.h"
#include "capi/result.h"

namespace braiddb::capi {
namespace {

// ---- Options with one value

const OptionKind* KindOf(std::span<const OptionNames> known, std::string_view name) {
  for (const OptionNames& names : known) {
    for (size_t at = names.names.find(name); at != std::string_view::npos; at = names.names.find(name, at + 1)) {
      const size_t end = at + name.size();
      const bool begins = at == 0 || names.names[at - 1] == ' ';
      if (begins && (end == names.names.size() || names.names[end] == ' ')) return &names.kind;
    }
  }
  return nullptr;
}

// Returns false if RocksDB has no option with this name in `known`.
bool ParseKnown(std::span<const OptionNames> known, const NamedText& option, OptionValue* value, OptionKind* kind,
                Status* status) {
  const OptionKind* const found = KindOf(known, option.name);
  if (found == nullptr) return false;
  *kind = *found;
  *status = ParseValue(*found, option.name, option.text, value);
  return true;
}

// Calls store(name, value) for each option in the text. `unknown` returns the error for an unknown name.
template <class Store, class Unknown>
Status ParseEach(std::span<const OptionNames> known, std::string_view text, const Store& store, const Unknown& unknown) {
  std::vector<NamedText> options;
  if (Status status = SplitOptions(text, &options); !status.ok()) return status;
  for (const NamedText& option : options) {
    OptionValue value;
    OptionKind kind{};
    Status status;
    if (!ParseKnown(known, option, &value, &kind, &status)) return unknown(option);
    if (!status.ok()) return status;
    if (kind != OptionKind::kText) store(option.name, value);
  }
  return Status::OK();
}

Status Unrecognized(std::string_view structure, const NamedText& option) {
  return Status::InvalidArgument("Unrecognized option: " + std::string(structure) + "." + std::string(option.name));
}

// Sets the member with the option's name in a table. No effect if no such member exists.
#define STORE_BOTH(set_type, get_type, member, initial) STORE_SET(get_type, member, initial)
#define STORE_SET(type, member, initial) \
  if (name == #member) options->member = As<type>(value);
#define DEFINE_STORE(function, table, object) \
  void function(std::string_view name, const OptionValue& value, object* options) { table(STORE_BOTH, STORE_SET) }
DEFINE_STORE(StoreOption, BRAIDDB_C_OPTIONS, braiddb_options_t)
DEFINE_STORE(StoreBlockOption, BRAIDDB_C_BLOCK_OPTIONS, braiddb_block_based_table_options_t)
DEFINE_STORE(StoreUniversalOption, BRAIDDB_C_UNIVERSAL_OPTIONS, braiddb_universal_compaction_options_t)
DEFINE_STORE(StoreFifoOption, BRAIDDB_C_FIFO_OPTIONS, braiddb_fifo_compaction_options_t)
DEFINE_STORE(StoreCuckooOption, BRAIDDB_C_CUCKOO_OPTIONS, braiddb_cuckoo_table_options_t)
#undef DEFINE_STORE
#undef STORE_SET
#undef STORE_BOTH

// Maps option names to setter names where the two differ.
std::string_view SetterOf(std::string_view name) {
  if (name == "enable_blob_garbage_collection") return "enable_blob_gc";
  if (name == "blob_garbage_collection_age_cutoff") return "blob_gc_age_cutoff";
  if (name == "blob_garbage_collection_force_threshold") return "blob_gc_force_threshold";
  return name;
}

// ---- Options that are lists or structures

using Text = std::string_view;

std::vector<Text> SplitList(Text text, size_t most = SIZE_MAX) {
  std::vector<Text> parts;
  while (!text.empty()) {
    const size_t end = parts.size() + 1 == most ? text.size() : std::min(text.find(':'), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

Status ParseList(OptionKind kind, Text name, Text text, std::vector<int>* list) {
  std::vector<int> parsed;
  for (const Text part : SplitList(text)) {
    OptionValue value;
    if (Status status = ParseValue(kind, name, part, &value); !status.ok()) return status;
    parsed.push_back(As<int>(value));
  }
  *list = std::move(parsed);
  return Status::OK();
}

// Stores one value in one of the two sets of compression options.
void StoreCompression(Text name, const OptionValue& value, bool bottommost, braiddb_options_t* options) {
  std::vector<int>& numbers = bottommost ? options->bottommost_compression_options : options->compression_options;
  constexpr Text kNumbers[] = {"window_bits", "level", "strategy", "max_dict_bytes"};
  const size_t number = std::find(std::begin(kNumbers), std::end(kNumbers), name) - std::begin(kNumbers);
  if (number < std::size(kNumbers)) numbers[number] = As<int>(value);
  if (name == "zstd_max_train_bytes") {
    (bottommost ? options->bottommost_compression_options_zstd_max_train_bytes
                : options->compression_options_zstd_max_train_bytes) = As<int>(value);
  } else if (name == "max_dict_buffer_bytes") {
    (bottommost ? options->bottommost_compression_options_max_dict_buffer_bytes
                : options->compression_options_max_dict_buffer_bytes) = As<uint64_t>(value);
  } else if (name == "use_zstd_dict_trainer") {
    (bottommost ? options->bottommost_compression_options_use_zstd_dict_trainer
                : options->compression_options_use_zstd_dict_trainer) = As<unsigned char>(value);
  } else if (name == "parallel_threads" && !bottommost) {
    options->compression_options_parallel_threads = As<int>(value);
  } else if (name == "enabled" && bottommost) {
    options->bottommost_compression_options_enabled = As<bool>(value);
  }
}

// Accepts a structure, or three to nine values separated by colons.
Status SetCompression(Text option, Text text, bool bottommost, braiddb_options_t* options) {
  const auto store = [&](Text name, const OptionValue& value) { StoreCompression(name, value, bottommost, options); };
  if (text.find('=') != Text::npos) {
    return ParseEach(kNamedCompressionOptions, text, store,
                     [&](const NamedText& unknown) { return Unrecognized(option, unknown); });
  }
  struct Field {
    OptionKind kind;
    Text name;
  };
  constexpr Field kFields[] = {{OptionKind::kInt32, "window_bits"},
                               {OptionKind::kInt32, "level"},
                               {OptionKind::kInt32, "strategy"},
                               {OptionKind::kInt32, "max_dict_bytes"},
                               {OptionKind::kInt32, "zstd_max_train_bytes"},
                               {OptionKind::kInt32, "parallel_threads"},
                               {OptionKind::kBool, "enabled"},
                               {OptionKind::kUint64, "max_dict_buffer_bytes"},
                               {OptionKind::kBool, "use_zstd_dict_trainer"}};
  const std::vector<Text> parts = SplitList(text, std::size(kFields));
  Status status;
  for (size_t i = 0; i < parts.size() && status.ok(); ++i) {
    OptionValue value;
    status = ParseValue(kFields[i].kind, option, parts[i], &value);
    if (status.ok()) store(kFields[i].name, value);
  }
  if (status.ok() && parts.size() < 3) {
    return Status::InvalidArgument("unable to parse the specified CF option " + std::string(option));
  }
  return status;
}

Status SetFifo(Text option, Text text, braiddb_options_t* options) {
  if (text.find('=') == Text::npos) {  // the size only
    OptionValue value;
    Status status = ParseValue(OptionKind::kUint64, option, text, &value);
    if (status.ok()) options->fifo.max_table_files_size = As<uint64_t>(value);
    return status;
  }
  const auto store = [&](Text name, const OptionValue& value) { StoreFifoOption(name, value, &options->fifo); };
  return ParseEach(kNamedFifoOptions, text, store, [&](const NamedText& unknown) { return Unrecognized(option, unknown); });
}

Status SetUniversal(Text option, Text text, braiddb_options_t* options) {
  const auto store = [&](Text name, const OptionValue& value) { StoreUniversalOption(name, value, &options->universal); };
  return ParseEach(kNamedUniversalOptions, text, store, [&](const NamedText& unknown) { return Unrecognized(option, unknown); });
}

// ---- Tables

// Accepts a size, or a structure with a size.
Status MakeCache(Text option, Text text, std::shared_ptr<braiddb_cache_t::Capacity>* cache) {
  OptionValue capacity = uint64_t{0};
  Status status;
  if (text.find('=') == Text::npos) {
    status = ParseValue(OptionKind::kUint64, option, text, &capacity);
  } else {
    const auto store = [&](Text name, const OptionValue& value) {
      if (name == "capacity") capacity = value;
    };
    status = ParseEach(kNamedCacheOptions, text, store, [](const NamedText& unknown) { return Unrecognized("", unknown); });
  }
  if (status.ok()) *cache = std::make_shared<braiddb_cache_t::Capacity>(As<size_t>(capacity));
  return status;
}

// Accepts "bloomfilter:10:false", "ribbonfilter:10:1", and RocksDB's other names for these. Other texts have no effect.
void SetFilterPolicy(Text text, braiddb_block_based_table_options_t* table) {
  if (text.empty() || text == "nullptr") table->filter_policy = nullptr;
  Text bits;
  if (text.find('=') != Text::npos) {
    std::vector<NamedText> options;
    if (!SplitOptions(text, &options).ok()) return;
    for (const NamedText& option : options) {
      if (option.name == "id") text = option.text;
      if (option.name == "bits_per_key" || option.name == "bloom_equivalent_bits_per_key") bits = option.text;
    }
  } else if (const std::vector<Text> parts = SplitList(text); parts.size() > 1) {
    text = parts[0];
    bits = parts[1];
  }
  constexpr Text kNames[] = {"bloomfilter",
                             "rocksdb.BloomFilter",
                             "ribbonfilter",
                             "rocksdb.RibbonFilter",
                             "rocksdb.BuiltinBloomFilter",
                             "rocksdb.internal.FastLocalBloomFilter",
                             "rocksdb.internal.Standard128RibbonFilter"};
  OptionValue value;
  if (std::find(std::begin(kNames), std::end(kNames), text) == std::end(kNames)) return;
  if (!ParseValue(OptionKind::kDouble, "bits_per_key", bits, &value).ok()) return;
  table->filter_policy = std::make_shared<braiddb_filterpolicy_t>();
  table->filter_policy->bits_per_key = As<double>(value);
}

}  // namespace

bool SetBlockOption(const NamedText& option, braiddb_block_based_table_options_t* table, Status* status) {
  OptionValue value;
  OptionKind kind{};
  if (option.name == "block_cache") {
    *status = MakeCache(option.name, option.text, &table->block_cache);
  } else if (option.name == "block_cache_compressed") {
    *status = MakeCache(option.name, option.text, &table->block_cache_compressed);
  } else if (option.name == "filter_policy") {
    SetFilterPolicy(option.text, table);
  } else if (option.name == "metadata_cache_options") {
    const auto unknown = [&](const NamedText& wrong) { return Unrecognized(option.name, wrong); };
    *status = ParseEach(
        kNamedMetadataOptions, option.text, [](Text, const OptionValue&) {}, unknown);
  } else if (!ParseKnown(kNamedBlockOptions, option, &value, &kind, status)) {
    return false;
  } else if (status->ok() && kind != OptionKind::kText) {
    StoreBlockOption(option.name == "data_block_hash_table_util_ratio" ? "data_block_hash_ratio" : option.name, value, table);
  }
  return true;
}

namespace {

Status SetBlockTable(Text factory, Text text, braiddb_options_t* options) {
  std::vector<NamedText> all;
  if (text.find('=') == Text::npos) return Status::OK();  // only the name of a table format
  Status status = SplitOptions(text, &all);
  for (const NamedText& option : all) {
    if (!status.ok()) break;
    if (option.name != "id" && !SetBlockOption(option, &options->table, &status)) return OptionNotFound(factory);
  }
  return status;
}

// Checks the options of a table format that has no effect here.
Status CheckTable(std::span<const OptionNames> known, Text factory, Text text) {
  if (text.find('=') == Text::npos) return Status::OK();
  return ParseEach(
      known, text, [](Text, const OptionValue&) {}, [&](const NamedText&) { return OptionNotFound(factory); });
}

// Accepts "BlockBasedTable" or "id=BlockBasedTable;block_size=…".
Status SetTable(Text factory, Text text, braiddb_options_t* options) {
  if (text.find('=') == Text::npos) return Status::OK();
  std::vector<NamedText> all;
  if (Status status = SplitOptions(text, &all); !status.ok()) return status;
  Text id = "BlockBasedTable";
  std::string others;
  for (const NamedText& option : all) {
    if (option.name == "id") {
      id = option.text;
    } else {
      others.append(option.name).append("={").append(option.text).append("};");
    }
  }
  if (id == "BlockBasedTable") return SetBlockTable(factory, others, options);
  if (id == "PlainTable") return CheckTable(kNamedPlainOptions, factory, others);
  if (id != "CuckooTable") return Status::OK();
  const auto store = [&](Text name, const OptionValue& value) {
    StoreCuckooOption(name == "hash_table_ratio" ? "hash_ratio" : name, value, &options->cuckoo);
  };
  return ParseEach(kNamedCuckooOptions, others, store, [&](const NamedText&) { return OptionNotFound(factory); });
}

// ---- Built-in objects. RocksDB ignores unknown names.

void SetPrefixExtractor(Text text, braiddb_options_t* options) {
  const bool is_none = text.empty() || text == "nullptr";
  if (is_none) options->own.prefix_extractor = nullptr;
  if (text == "rocksdb.Noop") options->own.prefix_extractor = NewNoopTransform();
  struct Form {
    Text beginning;
    bool is_fixed;
  };
  for (const auto& [beginning, is_fixed] :
       {Form{"fixed:", true}, Form{"capped:", false}, Form{"rocksdb.FixedPrefix.", true}, Form{"rocksdb.CappedPrefix.", false}}) {
    if (!text.starts_with(beginning)) continue;
    const Text digits = text.substr(beginning.size());
    size_t length = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
    if (error != std::errc() || end != digits.data() + digits.size()) return;
    options->own.prefix_extractor = is_fixed ? NewFixedPrefixTransform(length) : NewCappedPrefixTransform(length);
  }
}

Status SetComparator(Text name, Text text, braiddb_options_t* options) {
  if (text.empty()) return Status::InvalidArgument("Missing configurable object: " + std::string(name));
  const Comparator* built_in = nullptr;
  if (text == "leveldb.BytewiseComparator") built_in = BytewiseComparator();
  if (text == "rocksdb.ReverseBytewiseComparator") built_in = ReverseBytewiseComparator();
  if (text == "rocksdb.BytewiseComparator.u64ts") built_in = BytewiseComparatorWithU64Ts();
  if (text == "rocksdb.ReverseBytewiseComparator.u64ts") built_in = ReverseBytewiseComparatorWithU64Ts();
  if (built_in == nullptr) return Status::OK();
  options->comparator = nullptr;
  options->own.comparator = built_in;
  return Status::OK();
}

// Refuses a merge operator that RocksDB has and BraidDB lacks. Merges with another operator would give wrong results.
Status SetMergeOperator(Text text, braiddb_options_t* options) {
  if (text.empty() || text == "nullptr") options->own.merge_operator = nullptr;
  if (text == "uint64add" || text == "UInt64AddOperator") options->own.merge_operator = UInt64AddOperator();
  constexpr Text kOthers[] = {"put",
                              "put_v1",
                              "PutOperator",
                              "max",
                              "MaxOperator",
                              "stringappend",
                              "StringAppendOperator",
                              "stringappendtest",
                              "bytesxor",
                              "BytesXOR",
                              "sortlist",
                              "MergeSortOperator",
                              "StringAppendTESTOperator"};
  if (std::find(std::begin(kOthers), std::end(kOthers), text) == std::end(kOthers)) return Status::OK();
  return Status::NotSupported("get_options_from_string: the merge operator " + std::string(text));
}

// Sets an option with more than one value. Returns false if `name` is not such an option.
bool SetStructure(Text name, Text text, braiddb_options_t* options, Status* status) {
  if (name == "compression_opts" || name == "bottommost_compression_opts") {
    *status = SetCompression(name, text, name != "compression_opts", options);
  } else if (name == "compaction_options_fifo") {
    *status = SetFifo(name, text, options);
  } else if (name == "compaction_options_universal") {
    *status = SetUniversal(name, text, options);
  } else if (name == "block_based_table_factory") {
    *status = SetBlockTable(name, text, options);
  } else if (name == "plain_table_factory") {
    *status = CheckTable(kNamedPlainOptions, name, text);
  } else if (name == "table_factory") {
    *status = SetTable(name, text, options);
  } else if (name == "blob_cache") {
    *status = MakeCache(name, text, &options->blob_cache);
  } else if (name == "compression_per_level") {
    *status = ParseList(OptionKind::kWord, name, text, &options->compression_per_level);
  } else if (name == "max_bytes_for_level_multiplier_additional") {
    *status = ParseList(OptionKind::kInt32, name, text, &options->max_bytes_for_level_multiplier_additional);
  } else if (name == "prefix_extractor") {
    SetPrefixExtractor(text, options);
  } else if (name == "comparator") {
    *status = SetComparator(name, text, options);
  } else if (name == "merge_operator") {
    *status = SetMergeOperator(text, options);
  } else {
    return false;
  }
  return true;
}

}  // namespace

Status SetNamedOption(std::string_view name, std::string_view text, braiddb_options_t* options) {
  Status status;
  if (SetStructure(name, text, options, &status)) return status;
  OptionValue value;
  OptionKind kind{};
  if (!ParseKnown(kNamedOptions, {name, text}, &value, &kind, &status)) return Status::NotFound(name);
  if (!status.ok()) return status;
  if (name == "db_log_dir") options->db_log_dir = text;
  if (name == "wal_dir") options->wal_dir = text;
  if (kind == OptionKind::kText) return status;
  if (name == "compaction_readahead_size") options->compaction_readahead_size = As<uint64_t>(value);
  if (name == "rate_limiter_bytes_per_sec") options->ratelimiter.bytes_per_second = As<int64_t>(value);
  StoreOption(SetterOf(name), value, options);
  return status;
}

Status SetOptionsFromString(std::string_view text, braiddb_options_t* options) {
  std::vector<NamedText> all;
  Status status = SplitOptions(text, &all);
  std::string_view unknown;
  for (const NamedText& option : all) {
    if (!status.ok()) return status;
    status = SetNamedOption(option.name, option.text, options);
    if (!status.IsNotFound()) continue;
    if (unknown.empty()) unknown = option.name;
    status = Status::OK();
  }
  if (!status.ok() || unknown.empty()) return status;
  return OptionNotFound(unknown);  // errors in values of known options come first
}

}  // namespace braiddb::capi

using namespace braiddb::capi;
using braiddb::Status;

// As RocksDB's: after an error `result` is a copy of `base`.
void braiddb_get_options_from_string(const braiddb_options_t* base, const char* text, braiddb_options_t* result, char** errptr) {
  SaveError(errptr, Guarded([&] {
              braiddb_options_t changed = *base;
              Status status = SetOptionsFromString(text, &changed);
              *result = status.ok() ? std::move(changed) : *base;
              return status;
            }));
}
