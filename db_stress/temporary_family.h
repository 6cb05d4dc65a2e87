// TemporaryFamily: a column family of one thread, which writes to it, drops it, and makes it anew, while the others go on.
#pragma once

#include "db_stress/content.h"
#include "db_stress/store.h"
#include "util/random.h"

namespace braiddb::stress {

// Its keys are always written in one batch, with one value for all: so all of them have it, or none is there.
class TemporaryFamily {
 public:
  // REQUIRES: store->has_accounts().
  TemporaryFamily(Store* store, uint32_t number) : store_(store), number_(number) {}

  // Looks at it; then writes to it, merges it, or drops it, looks at it once more, and makes it anew.
  Violation Use(const ReadOptions& read, const WriteOptions& write, Random* random, bool* renewed);
  // All keys have one value, or none is there.
  Violation Verify(const ReadOptions& read) const;

 private:
  static constexpr uint32_t kKeys = 16;

  Violation Renew(const ReadOptions& read);

  Store* const store_;
  const uint32_t number_;
};

}  // namespace braiddb::stress
