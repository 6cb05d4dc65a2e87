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
  // Time from a key's newest write until it expires; seconds. Default: 0. Range: any; 0 or less is never.
  int32_t ttl_seconds = 0;
  // The same for each column family of the open, in their order. ttl_seconds then applies to families created later, and to the
  // default family if it is not named. InvalidArgument if the sizes differ. Default: empty, ttl_seconds for all families.
  std::vector<int32_t> family_ttl_seconds;
  // Returns the time in seconds since 1970 (UTC), for tests. Must be thread-safe. Default: empty, the system's clock.
  std::function<int64_t()> clock;
};

// As RocksDB's: each value is stored with the time of its write, in four more bytes that reads strip.
//
//   expired keys   are removed by a compaction filter, and readable until then. A merge checks the keys that leave L0;
//                  CompactRange checks all keys. A program that writes little must call CompactRange from time to time
//   user filter    the user's own compaction filter sees keys that have not expired, with the user's value; a changed value keeps
//                  its time
//   next opens     must use this class, with any ttl_seconds: DB::Open shows values with their times
//   Corruption     a read finds a value that is too short to have a time
//   copies         contain the times (backup.h)
//
// Thread safety: as DB.
class DBWithTTL : public DB {
 public:
  static Status Open(const Options& options, const TtlOptions& ttl_options, const std::string& path,
                     std::unique_ptr<DBWithTTL>* db);
  // With column families, as DB::Open. TtlOptions has the time of each.
  static Status Open(const Options& options, const TtlOptions& ttl_options, const std::string& path,
                     const std::vector<ColumnFamilyDescriptor>& families,
                     std::vector<std::unique_ptr<ColumnFamilyHandle>>* handles, std::unique_ptr<DBWithTTL>* db);
  // As CreateColumnFamily, which uses the ttl_seconds of the open, with a time of the family's own.
  virtual Status CreateColumnFamilyWithTtl(const ColumnFamilyOptions& options, const std::string& name, int32_t ttl_seconds,
                                           std::unique_ptr<ColumnFamilyHandle>* handle) = 0;
  // Sets the time of one family, or of all existing and later families. Applies to all keys, existing ones included.
  // Does nothing for a null handle or one of another database.
  virtual void SetTtl(ColumnFamilyHandle* family, int32_t ttl_seconds) = 0;
  virtual void SetTtl(int32_t ttl_seconds) = 0;
};

}  // namespace braiddb
#pragma GCC visibility pop
