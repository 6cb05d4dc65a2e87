#include "db/options_file.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <span>
#include <variant>

#include "db/no_memory.h"
#include "db/options_text.h"
#include "lsm/memtable_type.h"
#include "pmem/list_kind.h"
#include "pmem/persist_mode.h"
#include "util/comparator_name.h"
#include "util/file.h"
#include "util/format.h"

namespace braiddb {
namespace {

constexpr std::string_view kHeader =
    "# The options that this database was opened with. Each open writes this file; LoadLatestOptions reads it. To change an\n"
    "# option, open the database with another value. The form is that of RocksDB's options files. Options in DBOptions and\n"
    "# CFOptions have RocksDB's meaning; braiddb/options.h explains those in TableOptions/BraidDB.\n";
constexpr std::string_view kVersion = "Version";
constexpr std::string_view kDatabase = "DBOptions";
constexpr std::string_view kFamily = "CFOptions";
constexpr std::string_view kAnyTable = "TableOptions/";
constexpr std::string_view kOwnTable = "TableOptions/BraidDB";
constexpr std::string_view kForeignTable = "TableOptions/BlockBasedTable";
constexpr std::string_view kDefaultFamily = "default";
constexpr std::string_view kNone = "nullptr";

// ---- Values

struct MemtableName {
  MemtableKind kind;
  std::string_view name;
};
std::vector<L1KindName> NamesOf(L1Kind) { return L1KindNames(); }
std::span<const ListKindName> NamesOf(ListKind) { return ListKindNames(); }
std::vector<MemtableName> NamesOf(MemtableKind) {
  std::vector<MemtableName> names;
  for (const MemtableType& type : MemtableTypes()) names.push_back({type.kind, type.name});
  return names;
}
std::span<const PersistModeName> NamesOf(PersistMode) { return PersistModeNames(); }

template <class Number>
std::string Print(Number value) {
  char text[32];
  return {text, std::to_chars(std::begin(text), std::end(text), value).ptr};
}
std::string Print(bool value) { return value ? "true" : "false"; }
std::string Print(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& element : list) text += (text.empty() ? "" : ":") + EscapeOption(element);
  return text;
}
std::string Print(const std::vector<int>& list) {
  std::string text;
  for (const int element : list) text += (text.empty() ? "" : ":") + std::to_string(element);
  return text;
}
template <class Kind>
requires std::is_enum_v<Kind> std::string Print(Kind value) {
  for (const auto& [kind, name] : NamesOf(value)) {
    if (kind == value) return std::string(name);
  }
  return "unknown";
}

// False if the text is no value of the type.
template <class Number>
bool Parse(std::string_view text, Number* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}
bool Parse(std::string_view text, bool* value) {
  *value = text == "true" || text == "1";
  return *value || text == "false" || text == "0";
}
bool Parse(std::string_view text, std::vector<std::string>* list) {
  list->clear();
  size_t begin = 0;
  for (size_t i = 0; i <= text.size() && !text.empty(); ++i) {
    if (i < text.size() && text[i] == '\\') {
      ++i;
    } else if (i == text.size() || text[i] == ':') {
      list->push_back(UnescapeOption(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  return true;
}
bool Parse(std::string_view text, std::vector<int>* list) {
  list->clear();
  while (!text.empty()) {
    const size_t end = std::min(text.find(':'), text.size());
    list->emplace_back();
    if (!Parse(text.substr(0, end), &list->back()) || end + 1 == text.size()) return false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}
template <class Kind>
requires std::is_enum_v<Kind>
bool Parse(std::string_view text, Kind* value) {
  for (const auto& [kind, name] : NamesOf(*value)) {
    if (name == text) {
      *value = kind;
      return true;
    }
  }
  return false;
}

// ---- Fields of Options

using Member =
    std::variant<bool Options::*, uint32_t Options::*, uint64_t Options::*, double Options::*, L1Kind Options::*,
                 ListKind Options::*, MemtableKind Options::*, PersistMode Options::*, std::vector<std::string> Options::*,
                 std::vector<int> Options::*, uint32_t EmulationOptions::*, bool EmulationOptions::*>;
struct Field {
  std::string_view name;
  Member member;
};

constexpr Field kDatabaseFields[] = {
    {"create_if_missing", &Options::create_if_missing},
    {"create_missing_column_families", &Options::create_missing_column_families},
    {"error_if_exists", &Options::error_if_exists},
};
// Options that each column family has for itself.
constexpr Field kOwnFamilyFields[] = {
    {"l1", &Options::l1},
    {"nv_leaf_size", &Options::nv_leaf_size},
};
constexpr Field kOwnFields[] = {
    {"l1", &Options::l1},
    {"nv_leaf_size", &Options::nv_leaf_size},
    {"regions", &Options::regions},
    {"list_kind", &Options::list_kind},
    {"region_paths", &Options::region_paths},
    {"region_nodes", &Options::region_nodes},
    {"max_region_size", &Options::max_region_size},
    {"initial_region_size", &Options::initial_region_size},
    {"segment_size", &Options::segment_size},
    {"persist_mode", &Options::persist_mode},
    {"emulation.write_latency_ns", &EmulationOptions::write_latency_ns},
    {"emulation.read_latency_ns", &EmulationOptions::read_latency_ns},
    {"emulation.remote_latency_ns", &EmulationOptions::remote_latency_ns},
    {"emulation.flush_invalidates", &EmulationOptions::flush_invalidates},
    {"dram_budget", &Options::dram_budget},
    {"memtable", &Options::memtable},
    {"memtable_size", &Options::memtable_size},
    {"memtable_max_entries", &Options::memtable_max_entries},
    {"max_immutable_memtables", &Options::max_immutable_memtables},
    {"checkpoint_tables", &Options::checkpoint_tables},
    {"index_unified_logging", &Options::index_unified_logging},
    {"l0_slowdown_writes_trigger", &Options::l0_slowdown_writes_trigger},
    {"l1_index_size", &Options::l1_index_size},
    {"lookup_cache_size", &Options::lookup_cache_size},
    {"filter_bits_per_key", &Options::filter_bits_per_key},
    {"compaction_threads", &Options::compaction_threads},
    {"l0_compaction_trigger", &Options::l0_compaction_trigger},
    {"max_space_amplification", &Options::max_space_amplification},
    {"space_slack", &Options::space_slack},
    {"kept_free_space", &Options::kept_free_space},
    {"bound_space", &Options::bound_space},
    {"no_space_timeout_ms", &Options::no_space_timeout_ms},
    {"recovery_threads", &Options::recovery_threads},
    {"disable_auto_compaction", &Options::disable_auto_compaction},
    {"verify_at_open", &Options::verify_at_open},
    {"histograms", &Options::histograms},
    {"count_pm_writes", &Options::count_pm_writes},
    {"refresh_live_readers", &Options::refresh_live_readers},
};

template <class AnyOptions, class Of, class Type>
auto& FieldOf(AnyOptions& options, Type Of::*member) {
  if constexpr (std::is_same_v<Of, EmulationOptions>) {
    return options.emulation.*member;
  } else {
    return options.*member;
  }
}

std::string Print(const Options& options, const Field& field) {
  return std::visit([&](auto member) { return Print(FieldOf(options, member)); }, field.member);
}

const Field* FindField(std::span<const Field> fields, std::string_view name) {
  for (const Field& field : fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

Status SetField(const Field& field, std::string_view value, Options* options) {
  if (std::visit([&](auto member) { return Parse(value, &FieldOf(*options, member)); }, field.member)) return Status::OK();
  return Status::InvalidArgument(std::string(field.name) + " cannot be '" + std::string(value) + "'");
}

// ---- Comparators, prefix extractors

// Null if no built-in transform has this name.
std::shared_ptr<const SliceTransform> BuiltInTransform(std::string_view name) {
  if (name == NewNoopTransform()->Name()) return NewNoopTransform();
  size_t length = 0;
  const auto begins_with = [&](std::string_view prefix) {
    return name.starts_with(prefix) && Parse(name.substr(prefix.size()), &length);
  };
  if (begins_with("rocksdb.FixedPrefix.")) return NewFixedPrefixTransform(length);
  if (begins_with("rocksdb.CappedPrefix.")) return NewCappedPrefixTransform(length);
  return nullptr;
}

// A comparator that is not built in is only named: *comparator becomes the bytewise one.
void SetComparator(std::string name, const Comparator** comparator, std::string* loaded_name) {
  const Comparator* const built_in = BuiltInComparator(name);
  *comparator = built_in != nullptr ? built_in : BytewiseComparator();
  *loaded_name = std::move(name);
}

// False if `name` is neither the comparator nor the prefix extractor.
bool SetNamed(std::string_view name, std::string value, LoadedOptions* loaded) {
  if (name == "comparator") {
    SetComparator(std::move(value), &loaded->options.comparator, &loaded->comparator);
  } else if (name == "prefix_extractor") {
    loaded->options.prefix_extractor = BuiltInTransform(value);
    loaded->prefix_extractor = std::move(value);
  } else {
    return false;
  }
  return true;
}

// ---- Text

void AppendSection(std::string_view title, std::string_view argument, std::string* text) {
  text->append("\n[").append(title);
  if (!argument.empty()) text->append(" \"").append(EscapeArgument(argument)).append("\"");
  text->append("]\n");
}

// REQUIRES: `value` is escaped.
void AppendOption(std::string_view name, std::string_view value, std::string* text) {
  text->append("  ").append(name).append("=").append(value).append("\n");
}

void AppendForeign(const std::map<std::string, std::string>& foreign, std::span<const Field> own, std::string* text) {
  for (const auto& [name, value] : foreign) {
    if (FindField(own, name) == nullptr) AppendOption(name, EscapeOption(value), text);
  }
}

void AppendForeignTable(const std::map<std::string, std::string>& foreign, std::string_view family, std::string* text) {
  if (foreign.empty()) return;
  AppendSection(kForeignTable, family, text);
  AppendForeign(foreign, {}, text);
}

class Reader {
 public:
  Reader(LoadedOptions* loaded, bool ignore_unknown) : loaded_(loaded), ignore_unknown_(ignore_unknown) {}

  Status Read(const OptionLine& line) {
    if (line.name.empty()) return ReadSection(line);
    if (line.title == kVersion || is_ignored_) return Status::OK();
    if (line.title == kDatabase) {
      if (const Field* field = FindField(kDatabaseFields, line.name)) return SetField(*field, line.value, &loaded_->options);
      loaded_->options.foreign_options[line.name] = UnescapeOption(line.value);
      return Status::OK();
    }
    if (line.title == kForeignTable) {
      auto& foreign = family_ != nullptr ? family_->options.foreign_table_options : loaded_->options.foreign_table_options;
      if (IsOptionName(line.name)) foreign[line.name] = UnescapeOption(line.value);
      return Status::OK();
    }
    if (family_ != nullptr) return ReadFamily(line);
    if (line.title == kFamily) {
      if (!SetNamed(line.name, UnescapeOption(line.value), loaded_)) {
        loaded_->options.foreign_family_options[line.name] = UnescapeOption(line.value);
      }
      return Status::OK();
    }
    if (const Field* field = FindField(kOwnFields, line.name)) return SetField(*field, line.value, &loaded_->options);
    return ignore_unknown_ ? Status::OK() : Status::InvalidArgument("there is no option " + line.name);
  }

  Status CheckWhole() const {
    if (has_database_ && has_family_) return Status::OK();
    return Status::InvalidArgument("the options have no section DBOptions, or no section CFOptions \"default\"");
  }

 private:
  Status ReadFamily(const OptionLine& line) {
    if (line.title == kFamily) {
      if (line.name == "comparator") {
        SetComparator(UnescapeOption(line.value), &family_->options.comparator, &family_->comparator);
      } else if (line.name != "prefix_extractor") {  // families use the database's extractor
        family_->options.foreign_options[line.name] = UnescapeOption(line.value);
      }
      return Status::OK();
    }
    const Field* const field = FindField(kOwnFamilyFields, line.name);
    if (field == nullptr) {
      return ignore_unknown_ ? Status::OK() : Status::InvalidArgument("a column family has no option " + line.name);
    }
    Options options;
    options.l1 = family_->options.l1;
    options.nv_leaf_size = family_->options.nv_leaf_size;
    Status status = SetField(*field, line.value, &options);
    family_->options.l1 = options.l1;
    family_->options.nv_leaf_size = options.nv_leaf_size;
    return status;
  }

  // The family of the section; the first section of a family creates it.
  LoadedOptions::Family* FamilyOf(const OptionLine& line) {
    for (LoadedOptions::Family& family : loaded_->families) {
      if (family.name == line.argument) return &family;
    }
    if (line.title != kFamily) return nullptr;
    loaded_->families.push_back({line.argument, ColumnFamilyOptions(), std::string(FamiliarName(BytewiseComparator()->Name()))});
    return &loaded_->families.back();
  }

  Status ReadSection(const OptionLine& line) {
    const bool is_default = line.argument == kDefaultFamily;
    family_ = nullptr;
    has_database_ = has_database_ || line.title == kDatabase;
    has_family_ = has_family_ || (line.title == kFamily && is_default);
    const bool is_table = line.title == kOwnTable || line.title == kForeignTable;
    is_ignored_ = line.title.starts_with(kAnyTable) && !is_table;  // other tables of RocksDB mean nothing here
    if (line.title == kVersion || line.title == kDatabase || is_ignored_) return Status::OK();
    if (line.title == kFamily || is_table) {
      if (!is_default && !line.argument.empty()) family_ = FamilyOf(line);
      if (is_default || family_ != nullptr) return Status::OK();
    }
    is_ignored_ = ignore_unknown_ || line.title == kForeignTable;
    return is_ignored_ ? Status::OK() : Status::InvalidArgument("there is no section " + line.title + " of " + line.argument);
  }

  LoadedOptions* const loaded_;
  LoadedOptions::Family* family_ = nullptr;  // the family of the section; null: the default family, or none
  const bool ignore_unknown_;
  bool is_ignored_ = false;
  bool has_database_ = false;
  bool has_family_ = false;
};

}  // namespace

std::vector<ColumnFamilyDescriptor> LoadedOptions::Descriptors() const {
  std::vector<ColumnFamilyDescriptor> descriptors{{kDefaultColumnFamilyName, ColumnFamilyOptions(options)}};
  for (const Family& family : families) descriptors.push_back({family.name, family.options});
  return descriptors;
}

Status CheckForeignOptions(const std::map<std::string, std::string>& foreign) {
  for (const auto& [name, value] : foreign) {
    if (!IsOptionName(name))
      return Status::InvalidArgument("the name of a foreign option is '" + Escaped(name) +
                                     "'; it must have one character or more, no blank and none of = # [ ] : \\ and \"");
    if (name == "comparator" || name == "prefix_extractor")
      return Status::InvalidArgument("the foreign option '" + name +
                                     "' has the name of an option of BraidDB; choose another name");
  }
  return Status::OK();
}

std::string OptionsToText(const Options& options, const std::vector<ColumnFamilyDescriptor>& families) {
  std::string text(kHeader);
  AppendSection(kVersion, {}, &text);
  AppendOption("options_file_version", "1.1", &text);
  AppendSection(kDatabase, {}, &text);
  for (const Field& field : kDatabaseFields) AppendOption(field.name, Print(options, field), &text);
  AppendForeign(options.foreign_options, kDatabaseFields, &text);
  AppendSection(kFamily, kDefaultFamily, &text);
  AppendOption("comparator", EscapeOption(FamiliarName(options.comparator->Name())), &text);
  const auto& extractor = options.prefix_extractor;
  AppendOption("prefix_extractor", extractor == nullptr ? std::string(kNone) : EscapeOption(extractor->Name()), &text);
  AppendForeign(options.foreign_family_options, {}, &text);
  AppendSection(kOwnTable, kDefaultFamily, &text);
  for (const Field& field : kOwnFields) AppendOption(field.name, Print(options, field), &text);
  AppendForeignTable(options.foreign_table_options, kDefaultFamily, &text);
  for (const ColumnFamilyDescriptor& family : families) {
    if (family.name == kDefaultFamily) continue;
    AppendSection(kFamily, family.name, &text);
    AppendOption("comparator", EscapeOption(FamiliarName(family.options.comparator->Name())), &text);
    AppendForeign(family.options.foreign_options, {}, &text);
    AppendSection(kOwnTable, family.name, &text);
    Options own;
    own.l1 = family.options.l1;
    own.nv_leaf_size = family.options.nv_leaf_size;
    for (const Field& field : kOwnFamilyFields) AppendOption(field.name, Print(own, field), &text);
    AppendForeignTable(family.options.foreign_table_options, family.name, &text);
  }
  return text;
}

Status OptionsFromText(std::string_view text, LoadedOptions* loaded, bool ignore_unknown_options) try {
  LoadedOptions result;
  result.comparator = FamiliarName(BytewiseComparator()->Name());
  result.prefix_extractor = kNone;
  Reader reader(&result, ignore_unknown_options);
  Status status = ForEachOptionLine(text, [&](const OptionLine& line) { return reader.Read(line); });
  if (status.ok()) status = reader.CheckWhole();
  if (status.ok()) *loaded = std::move(result);
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

namespace {

Status ReadOptionsOf(const std::string& file, LoadedOptions* loaded, bool ignore_unknown_options) {
  constexpr size_t kMaxBytes = 16 << 20;
  std::string text;
  Status status = ReadSmallFile(file, kMaxBytes, &text);
  return status.ok() ? OptionsFromText(text, loaded, ignore_unknown_options) : status;
}

}  // namespace

bool NotedRegionPaths(const std::string& path, std::vector<std::string>* paths) {
  LoadedOptions noted;
  if (!ReadOptionsOf(path + kOptionsFile, &noted, true).ok()) return false;
  *paths = noted.options.region_paths;
  return true;
}

// The region paths belong to the database that wrote the file, and to no other, so they are not loaded. An open finds the regions
// by the files in its directory.
Status LoadOptionsFromFile(const std::string& file, LoadedOptions* loaded, bool ignore_unknown_options) try {
  const Status status = ReadOptionsOf(file, loaded, ignore_unknown_options);
  if (status.ok()) loaded->options.region_paths.clear();
  return status.IsInvalidArgument() ? Status::InvalidArgument(file + ": " + std::string(status.message())) : status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status LoadLatestOptions(const std::string& path, LoadedOptions* loaded, bool ignore_unknown_options) {
  return LoadOptionsFromFile(path + kOptionsFile, loaded, ignore_unknown_options);
}

Status WriteOptionsFile(const Options& options, const std::vector<ColumnFamilyDescriptor>& families, const std::string& path) {
  const std::string text = OptionsToText(options, families);
  std::string present;
  if (ReadSmallFile(path + kOptionsFile, text.size(), &present).ok() && present == text) return Status::OK();
  return WriteSmallFile(path + kOptionsFile, text);
}

std::vector<OptionsLogMessage> OptionsAsLogMessages(const Options& options, const std::vector<ColumnFamilyDescriptor>& families) {
  const std::string text = OptionsToText(options, families);
  const std::string family_section = "[" + std::string(kFamily) + " \"";
  std::vector<OptionsLogMessage> messages;
  bool is_foreign_table = false;
  size_t end = 0;
  for (size_t begin = text.find("[" + std::string(kDatabase)); begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const size_t equals = line.find('=');
    if (line.starts_with(family_section)) {
      line.remove_prefix(family_section.size());
      messages.push_back({"--------------- Options for column family [" + std::string(line.substr(0, line.rfind('"'))) + "]:"});
      is_foreign_table = false;
    } else if (line.starts_with('[')) {
      is_foreign_table = line.starts_with("[" + std::string(kForeignTable) + " ");
      if (!is_foreign_table) continue;
      messages.push_back({"Options.table_factory: BlockBasedTable"});
      messages.push_back({"table_factory options:"});
    } else if (equals != std::string_view::npos) {
      const std::string name(line.substr(0, equals));
      const std::string_view given = line.substr(equals + 1);
      const std::string value(given == "true" ? "1" : given == "false" ? "0" : given);
      if (!is_foreign_table) {
        messages.push_back({"Options." + name + ": " + value});
      } else if (name == "block_cache") {
        for (const std::string& detail : {std::string("block_cache_options:"), "  capacity : " + value})
          messages.back().details.push_back(detail);
      } else {
        messages.back().details.push_back(name + ": " + value);
      }
    }
  }
  return messages;
}

}  // namespace braiddb
