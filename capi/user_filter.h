// UserFilter: filters of the user's own filter policy, as in LevelDB.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "braiddb/c.h"
#include "braiddb/db.h"

struct braiddb_filterpolicy_t {
  // A Bloom or ribbon filter is translated to a number of bits per key for the engine's own filter.
  double bits_per_key = 0;
  // A user's own policy has functions.
  void* state = nullptr;
  void (*destructor)(void*) = nullptr;
  char* (*create_filter)(void*, const char* const*, const size_t*, int, size_t*) = nullptr;
  unsigned char (*key_may_match)(void*, const char*, size_t, const char*, size_t) = nullptr;
  const char* (*name)(void*) = nullptr;

  bool is_users_own() const { return create_filter != nullptr; }
  ~braiddb_filterpolicy_t() {
    if (destructor != nullptr) destructor(state);
  }
};

namespace braiddb::capi {

// LevelDB builds a filter for each part of a table file, and a get checks the filter of the part that could have its key. A merge
// of BraidDB writes no file. So Build, which a full compaction calls, iterates over the database and builds one filter for each
// kKeysPerFilter keys. The filters lie in DRAM and end with the handle.
//
// WHY NO FILTER HIDES A KEY  A filter covers the keys from its first key up to the first key of the next filter. A write marks
//                            the filter of its key stale before it begins (Writing), and a get ignores stale filters. A write
//                            that begins during the walk is noted, and marks the new filters that cover it stale. Reads of a
//                            snapshot use no filter.
// Thread safety: all methods. Writes wait while filters are exchanged, but not while they are built.
class UserFilter {
 public:
  static constexpr int kKeysPerFilter = 1024;

  // `policy` is not owned. It is not used after the last get has returned.
  UserFilter(const braiddb_filterpolicy_t* policy, const Comparator* comparator) : policy_(policy), comparator_(comparator) {}

  // Held during a write of one or several keys.
  class Writing {
   public:
    explicit Writing(UserFilter* filter) : filter_(filter), lock_(filter->exchange_) {}
    void Touch(Slice key) { filter_->Touch(key); }

   private:
    UserFilter* const filter_;
    std::shared_lock<std::shared_mutex> lock_;
  };

  // Returns false if the policy excludes the key.
  bool MayContain(Slice key);
  // Rebuilds the filters. A filter that could not be built is not used.
  Status Build(DB* db);

 private:
  struct Filter {
    std::string first_key;
    std::string bytes;
    std::atomic<bool> stale{false};
  };
  using Filters = std::vector<std::unique_ptr<Filter>>;

  void Touch(Slice key);
  // The filter that covers the key, or null.
  Filter* Find(const Filters& filters, Slice key) const;
  std::unique_ptr<Filter> Make(const std::vector<std::string>& keys) const;
  Status Walk(DB* db, const Snapshot* snapshot, Filters* filters) const;

  const braiddb_filterpolicy_t* const policy_;
  const Comparator* const comparator_;
  std::mutex building_;         // allows one Build at a time
  std::shared_mutex exchange_;  // guards filters_ and the notes of a walk
  Filters filters_;
  bool noting_ = false;
  std::mutex noted_mutex_;
  std::vector<std::string> noted_;  // keys written during the walk
};

}  // namespace braiddb::capi
