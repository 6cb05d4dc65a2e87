// Options as text, and the options file, which holds the options that a database was opened with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braiddb/column_family.h"
#include "braiddb/options.h"
#include "braiddb/status.h"

#pragma GCC visibility push(default)
namespace braiddb {

// The text has the form of RocksDB's options files: sections with one line per option. FORMAT.md has the grammar.
//
//   section                           options
//   [DBOptions]                       create_if_missing, create_missing_column_families, error_if_exists,
//                                     Options::foreign_options
//   [CFOptions "default"]             comparator, prefix_extractor, Options::foreign_family_options
//   [TableOptions/BraidDB "default"]  all other fields of Options, by their names
//   [TableOptions/BlockBasedTable "default"]  Options::foreign_table_options
//   [CFOptions "<name>"]              of each other family: comparator, ColumnFamilyOptions::foreign_options
//   [TableOptions/BraidDB "<name>"]   of each other family: l1, nv_leaf_size
//   [TableOptions/BlockBasedTable "<name>"]   of each other family: ColumnFamilyOptions::foreign_table_options
//
// Objects of the program are stored by name and cannot be loaded: the user's own comparators and prefix extractors, and the
// receiver of the info log.
struct LoadedOptions {
  Options options;
  // The stored names of the comparator and the prefix extractor. If a name is not built in, `options` has BytewiseComparator() or
  // null instead, and the caller must set its own object.
  std::string comparator;
  std::string prefix_extractor;  // "nullptr" if there is none
  // The column families without the default one, in the order of the file. `comparator` is the stored name, as above.
  struct Family {
    std::string name;
    ColumnFamilyOptions options;
    std::string comparator;
  };
  std::vector<Family> families;

  // The argument for DB::Open: all families, the default one first.
  std::vector<ColumnFamilyDescriptor> Descriptors() const;
};

// Loads the file OPTIONS of the database in `path`. Each successful DB::Open, and each creation and drop of a column family,
// writes this file with the options of the open; only `regions` is the actual number. If the file cannot be written, the info log
// says so and the call succeeds. region_paths stays empty: an open finds the regions by the files in the database directory.
//   NotFound         there is no file
//   InvalidArgument  a value has the wrong form, or without `ignore_unknown_options` a section or a field is unknown; the message
//                    names the line. Unknown names in DBOptions and CFOptions are foreign options, and allowed
// Thread safety: may be called at any time, also while the file is being written.
Status LoadLatestOptions(const std::string& path, LoadedOptions* loaded, bool ignore_unknown_options = false);
// The same for any options file, for example one of RocksDB's.
Status LoadOptionsFromFile(const std::string& file, LoadedOptions* loaded, bool ignore_unknown_options = false);

// `families` may be any families; the options of the default one are in `options`.
std::string OptionsToText(const Options& options, const std::vector<ColumnFamilyDescriptor>& families = {});
Status OptionsFromText(std::string_view text, LoadedOptions* loaded, bool ignore_unknown_options = false);

}  // namespace braiddb
#pragma GCC visibility pop
