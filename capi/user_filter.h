// Filters by a policy of the user's own, LevelDB's way.
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
  // A Bloom or ribbon filter is a number of bits per key for the engine's own filter.
  double bits_per_key = 0;
  // A policy of the user's own has functions.
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

// LevelDB makes a filter for each stretch of a table that it writes, and a get asks the filter where its key would be. Here a
// merge writes no table, so Build, which a compaction of everything calls, walks along the database and makes a filter for each
// kKeysPerFilter keys. They are in DRAM and end with the handle.
//
// WHY NO FILTER HIDES A KEY  A filter answers for the keys from its first one to before the first one of the next filter, and
//                            only while nothing was written among them since: a write makes the filter of its key stale before
//                            it begins (Writing), and then a get does not ask that filter. A write that begins during the walk
//                            is noted, and makes the new filters stale that it falls among. Reads of a snapshot ask none.
// Thread safety: all methods. Writes wait while filters are exchanged, not while they are made.
class UserFilter {
 public:
  static constexpr int kKeysPerFilter = 1024;

  // `policy` is not owned, and no longer used when the last get has returned.
  UserFilter(const braiddb_filterpolicy_t* policy, const Comparator* comparator) : policy_(policy), comparator_(comparator) {}

  // Held during a write of one key, or of many.
  class Writing {
   public:
    explicit Writing(UserFilter* filter) : filter_(filter), lock_(filter->exchange_) {}
    void Touch(Slice key) { filter_->Touch(key); }

   private:
    UserFilter* const filter_;
    std::shared_lock<std::shared_mutex> lock_;
  };

  // False: the key is not there, the policy says.
  bool MayContain(Slice key);
  // Makes the filters anew. What could not be made is not asked.
  Status Build(DB* db);

 private:
  struct Filter {
    std::string first_key;
    std::string bytes;
    std::atomic<bool> stale{false};
  };
  using Filters = std::vector<std::unique_ptr<Filter>>;

  void Touch(Slice key);
  // The one that answers for the key; null if there is none.
  Filter* Find(const Filters& filters, Slice key) const;
  std::unique_ptr<Filter> Make(const std::vector<std::string>& keys) const;
  Status Walk(DB* db, const Snapshot* snapshot, Filters* filters) const;

  const braiddb_filterpolicy_t* const policy_;
  const Comparator* const comparator_;
  std::mutex building_;         // one at a time
  std::shared_mutex exchange_;  // of filters_, and of what a walk takes note of
  Filters filters_;
  bool noting_ = false;
  std::mutex noted_mutex_;
  std::vector<std::string> noted_;  // keys that were written during the walk
};

}  // namespace braiddb::capi
