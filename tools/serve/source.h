// Source: a database that `braiddb serve` and `braiddb top` show.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/db.h"
#include "braiddb/metrics.h"
#include "braiddb/status.h"

namespace braiddb::tools {

struct SourceOptions {
  std::string path;
  std::vector<std::string> region_paths;   // as Options::region_paths
  const Comparator* comparator = nullptr;  // of the default family; null: as the options file says
  // Where the copy of a database that is open elsewhere lies. Empty: a temporary directory, which is removed at the end.
  std::string secondary_path;
  std::chrono::milliseconds catch_up_interval{5000};  // of that copy
  // Count the dead entries of a closed database in the background, which reads its log once. An open for writing does this too.
  bool counts_dead = false;
};

// A closed database is opened for reading only. Of a database that a process has open for writing this is a secondary, a copy
// that follows at intervals.
// Thread safety: const methods may be called concurrently.
class Source {
 public:
  // Busy, with what to do, if the database is open elsewhere and a secondary cannot be opened.
  static Status Open(const SourceOptions& options, std::unique_ptr<Source>* source);
  ~Source();
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const std::string& path() const { return options_.path; }
  bool is_secondary() const { return is_secondary_; }
  DB* db() const { return db_.get(); }
  // All families that users see, the default one first.
  const std::vector<std::unique_ptr<ColumnFamilyHandle>>& families() const { return families_; }
  // Null if there is no such family.
  ColumnFamilyHandle* FindFamily(const std::string& name) const;
  // The error of the last attempt to follow the primary.
  Status catch_up_status() const;
  // The last lines of the file LOG of the database, the oldest first, at most `count`; lines are cut at 1,000 bytes.
  std::vector<std::string> LogLines(size_t count) const;

 private:
  explicit Source(SourceOptions options) : options_(std::move(options)) {}
  // `busy`: why the database could not be opened for reading only.
  Status OpenSecondary(Options options, const std::vector<ColumnFamilyDescriptor>& descriptors, const Status& busy);
  void Follow();
  void CountDead();

  const SourceOptions options_;
  std::string temporary_path_;  // removed at the end; empty: there is none
  bool is_secondary_ = false;
  std::unique_ptr<DB> db_;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> families_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  Status catch_up_status_;
  std::atomic<bool> stops_counting_{false};
  std::thread worker_;  // follows the primary, or counts
};

}  // namespace braiddb::tools
