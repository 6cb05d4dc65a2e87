// DBWithTTL: a database whose keys expire.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/db.h"

#pragma GCC visibility push(default)
namespace braiddb {

struct TtlOptions {
  // How long a key lives after its newest write; seconds. 0 or less: for ever. Default: 0.
  int32_t ttl_seconds = 0;
  // … of the column families of an open, in their order, in place of ttl_seconds, which then is of the default family if it is
  // not among them, and of those that are created. Empty: ttl_seconds for all. Another number than of families is
  // InvalidArgument.
  std::vector<int32_t> family_ttl_seconds;
  // Seconds since 1970 (UTC). Empty: the system's. Must be thread-safe. For tests.
  std::function<int64_t()> clock;
};

// As RocksDB's: each value is stored with the time of its write, four bytes more, which reads leave out. A key whose time is over
// goes when it is compacted, by a compaction filter; until then it is there. A merge comes to it when it leaves L0, CompactRange
// to all. Nothing else sweeps: whoever writes little calls CompactRange now and then.
// The user's own compaction filter (Options) is asked about what has not expired, with the value as it was put; a value that it
// changes keeps its time.
//
// A database that was written to through this class must be opened with it again, whatever ttl_seconds: DB::Open shows values
// with their times. A value too short to have one is Corruption. Copies (backup.h) have the times, too.
// Thread safety: as DB.
class DBWithTTL : public DB {
 public:
  static Status Open(const Options& options, const TtlOptions& ttl_options, const std::string& path,
                     std::unique_ptr<DBWithTTL>* db);
  // With column families, see DB::Open; each has the time to live that TtlOptions gives it.
  static Status Open(const Options& options, const TtlOptions& ttl_options, const std::string& path,
                     const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles, std::unique_ptr<DBWithTTL>* db);
  // As CreateColumnFamily, which takes ttl_seconds of the open, with a time of the family's own.
  virtual Status CreateColumnFamilyWithTtl(const ColumnFamilyOptions& options, const std::string& name, int32_t ttl_seconds,
                                           std::unique_ptr<ColumnFamilyHandle>* handle) = 0;
  // From now on, for all keys, those that are there too; of one family, and of all that there are or will be.
  virtual void SetTtl(ColumnFamilyHandle* family, int32_t ttl_seconds) = 0;
  virtual void SetTtl(int32_t ttl_seconds) = 0;
};

}  // namespace braiddb
#pragma GCC visibility pop
