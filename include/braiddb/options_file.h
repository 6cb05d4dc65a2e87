// Options as text, and the options file: what a database was opened with.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braiddb/column_family.h"
#include "braiddb/options.h"
#include "braiddb/status.h"

#pragma GCC visibility push(default)
namespace braiddb {

// The text is that of RocksDB's options files: sections, and in them a line for each option. FORMAT.md has its grammar.
//   [DBOptions]                     create_if_missing, error_if_exists, Options::foreign_options
//   [CFOptions "default"]           comparator, prefix_extractor, Options::foreign_family_options
//   [TableOptions/BraidDB "default"]  all other fields of Options, by their names
//   [CFOptions "<name>"]            of each other column family: comparator, ColumnFamilyOptions::foreign_options
//   [TableOptions/BraidDB "<name>"]   its l1, nv_leaf_size
// What a program made is noted by its name, and cannot be loaded: comparators and prefix extractors of the user's own, and the
// receiver of the info log.
struct LoadedOptions {
  Options options;
  // The names of its comparator and its prefix extractor. If they are not built in, `options` has BytewiseComparator() and null
  // in their place: whoever loads them has to put their own there.
  std::string comparator;
  std::string prefix_extractor;  // "nullptr" if there was none
  // Column families but the default one, in the order of the file; `comparator` as above.
  struct Family {
    std::string name;
    ColumnFamilyOptions options;
    std::string comparator;
  };
  std::vector<Family> families;

  // What DB::Open takes: of all families, the default one first.
  std::vector<ColumnFamilyDescriptor> Descriptors() const;
};

// Each successful DB::Open writes the file OPTIONS in the database's directory, with the options as they were given, but for
// `regions`, which is as the database has them; so does each creation and each drop of a column family. A file that cannot be
// written is noted in the info log and fails nothing.
//
// Loads that file. region_paths stays empty: regions are of one database, and an open finds them by what is in its directory.
// NotFound if there is no file. InvalidArgument, which names the line, for values of the wrong form and, without
// `ignore_unknown_options`, for sections and fields that there are none of; other names in DBOptions and CFOptions are foreign
// options. Thread safety: may be called at any time, also while it is written.
Status LoadLatestOptions(const std::string& path, LoadedOptions* loaded, bool ignore_unknown_options = false);
// The same of another file, for instance one of RocksDB's.
Status LoadOptionsFromFile(const std::string& file, LoadedOptions* loaded, bool ignore_unknown_options = false);

// `families`: any of them; that of the default one is in `options`.
std::string OptionsToText(const Options& options, const std::vector<ColumnFamilyDescriptor>& families = {});
Status OptionsFromText(std::string_view text, LoadedOptions* loaded, bool ignore_unknown_options = false);

}  // namespace braiddb
#pragma GCC visibility pop
