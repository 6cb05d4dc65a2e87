// Column families: separate key spaces of one database. They share its log, so a batch is atomic across them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "braiddb/comparator.h"
#include "braiddb/merge_operator.h"
#include "braiddb/options.h"

#pragma GCC visibility push(default)
namespace braiddb {

// The family that every database has, and that calls without a handle use.
inline constexpr const char* kDefaultColumnFamilyName = "default";
// Column families per database, including the default one and dropped families whose space is not yet released. Three are
// reserved, for prepared transactions, deleted ranges and limits of history: users have at most 1,020 families beside the default
// one. A batch that names a reserved family is InvalidArgument.
inline constexpr uint32_t kMaxColumnFamilies = 1024;

// Options of one family; all other options belong to the database. Each field is the one of that name in Options. Stored: fixed
// when the family is created, unless the field says otherwise.
struct ColumnFamilyOptions {
  ColumnFamilyOptions() = default;
  explicit ColumnFamilyOptions(const Options& options)
      : comparator(options.comparator),
        merge_operator(options.merge_operator),
        l1(options.l1),
        nv_leaf_size(options.nv_leaf_size),
        compaction_filter(options.compaction_filter),
        compaction_filter_factory(options.compaction_filter_factory),
        foreign_options(options.foreign_family_options),
        foreign_table_options(options.foreign_table_options) {}

  const Comparator* comparator = BytewiseComparator();
  std::shared_ptr<const MergeOperator> merge_operator;  // not stored: any open may choose another
  L1Kind l1 = L1Kind::kBraidedSkipList;
  uint32_t nv_leaf_size = Options().nv_leaf_size;
  // Not stored: any open may choose others.
  const CompactionFilter* compaction_filter = nullptr;
  std::shared_ptr<CompactionFilterFactory> compaction_filter_factory;
  // As Options::foreign_family_options.
  std::map<std::string, std::string> foreign_options;
  // As Options::foreign_table_options.
  std::map<std::string, std::string> foreign_table_options;
};

// A family to open, and its options.
struct ColumnFamilyDescriptor {
  std::string name;
  ColumnFamilyOptions options;
};

// A family of an open database. The owner destroys the handle before the database is closed. Handles of a dropped family still
// read it; its space is released when the last handle is destroyed.
// Thread safety: const methods may be called concurrently.
class ColumnFamilyHandle {
 public:
  virtual ~ColumnFamilyHandle() = default;
  ColumnFamilyHandle(const ColumnFamilyHandle&) = delete;
  ColumnFamilyHandle& operator=(const ColumnFamilyHandle&) = delete;

  virtual const std::string& GetName() const = 0;
  // 0 is the default family.
  virtual uint32_t GetID() const = 0;
  virtual const ColumnFamilyOptions& GetOptions() const = 0;

 protected:
  ColumnFamilyHandle() = default;
};

}  // namespace braiddb
#pragma GCC visibility pop
