#include "tools/stored_families.h"

#include <map>
#include <utility>

#include "braiddb/options_file.h"
#include "util/comparator_name.h"

namespace braiddb::tools {
namespace {

Status ForeignComparator(const std::string& family, const std::string& name) {
  return Status::NotSupported("the column family '" + family + "' orders its keys by " + name +
                              ", a comparator of its program; open the database by that program");
}

bool IsBuiltIn(const std::string& comparator) { return comparator.empty() || BuiltInComparator(comparator) != nullptr; }

}  // namespace

Status LoadStoredFamilies(const std::string& path, const std::vector<std::string>& region_paths, const Comparator* comparator,
                          Options* options, std::vector<ColumnFamilyDescriptor>* families) {
  LoadedOptions loaded;
  Status status = LoadLatestOptions(path, &loaded, true);
  if (!status.ok() && !status.IsNotFound()) return status;
  Options& own = loaded.options;
  own.create_if_missing = own.error_if_exists = own.create_missing_column_families = false;
  own.region_paths = region_paths;
  if (comparator != nullptr) own.comparator = comparator;
  std::vector<std::string> names;
  status = DB::ListColumnFamilies(own, path, &names);
  if (!status.ok()) return status;
  if (comparator == nullptr && !IsBuiltIn(loaded.comparator))
    return ForeignComparator(kDefaultColumnFamilyName, loaded.comparator);
  std::map<std::string, const LoadedOptions::Family*> known;
  for (const LoadedOptions::Family& family : loaded.families) known[family.name] = &family;
  std::vector<ColumnFamilyDescriptor> found;
  for (const std::string& name : names) {
    const auto stored = known.find(name);
    if (name == kDefaultColumnFamilyName) {
      found.push_back({name, ColumnFamilyOptions(own)});
    } else if (stored == known.end()) {
      found.push_back({name, ColumnFamilyOptions()});
    } else if (!IsBuiltIn(stored->second->comparator)) {
      return ForeignComparator(name, stored->second->comparator);
    } else {
      found.push_back({name, stored->second->options});
    }
  }
  *options = own;
  *families = std::move(found);
  return Status::OK();
}

}  // namespace braiddb::tools
