// Column families: key spaces of one database that share its log, so that a batch is atomic across them.
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

// The one that every database has, and that calls without a handle mean.
inline constexpr const char* kDefaultColumnFamilyName = "default";
// Column families that a database can have. The default family and dropped families whose space is not yet released count. Two
// are reserved, for prepared transactions and deleted ranges: users have at most 1,021 families beside the default one.
// A batch that names one of the reserved families is refused with InvalidArgument.
inline constexpr uint32_t kMaxColumnFamilies = 1024;

// What each family has for itself; the rest of Options is the database's. Fixed at the family's creation unless said otherwise.
struct ColumnFamilyOptions {
  ColumnFamilyOptions() = default;
  explicit ColumnFamilyOptions(const Options& options)
      : comparator(options.comparator),
        merge_operator(options.merge_operator),
        l1(options.l1),
        nv_leaf_size(options.nv_leaf_size),
        compaction_filter(options.compaction_filter),
        compaction_filter_factory(options.compaction_filter_factory),
        foreign_options(options.foreign_family_options) {}

  // As in Options.
  const Comparator* comparator = BytewiseComparator();
  std::shared_ptr<const MergeOperator> merge_operator;  // any open may give another one
  L1Kind l1 = L1Kind::kBraidedSkipList;
  uint32_t nv_leaf_size = Options().nv_leaf_size;
  // As in Options; any open may choose others.
  const CompactionFilter* compaction_filter = nullptr;
  std::shared_ptr<CompactionFilterFactory> compaction_filter_factory;
  // As Options::foreign_family_options.
  std::map<std::string, std::string> foreign_options;
};

// For DB::Open: which family, and with what options.
struct ColumnFamilyDescriptor {
  std::string name;
  ColumnFamilyOptions options;
};

// A family of an open database. Its owner destroys it before the database is closed. When a family was dropped, reads through
// handles of it go on; its space comes back when the last is gone.
// Thread safety: const methods may be called concurrently.
class ColumnFamilyHandle {
 public:
  virtual ~ColumnFamilyHandle() = default;
  ColumnFamilyHandle(const ColumnFamilyHandle&) = delete;
  ColumnFamilyHandle& operator=(const ColumnFamilyHandle&) = delete;

  virtual const std::string& GetName() const = 0;
  // 0: the default family.
  virtual uint32_t GetID() const = 0;
  virtual const ColumnFamilyOptions& GetOptions() const = 0;

 protected:
  ColumnFamilyHandle() = default;
};

}  // namespace braiddb
#pragma GCC visibility pop
