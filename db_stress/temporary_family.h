// TemporaryFamily: a column family of one thread, which writes to it, drops it, and recreates it, while other threads work.
#pragma once

#include "db_stress/content.h"
#include "db_stress/store.h"
#include "util/random.h"

namespace braiddb::stress {

// All keys are always written in one batch, with one common value. So either all keys have the value, or none exists.
class TemporaryFamily {
 public:
  // REQUIRES: store->has_accounts().
  TemporaryFamily(Store* store, uint32_t number) : store_(store), number_(number) {}

  // Verifies the family. Then writes to it, merges it, or drops it; a dropped family is verified again and recreated.
  Violation Use(const ReadOptions& read, const WriteOptions& write, Random* random, bool* renewed);
  // All keys have one value, or none exists.
  Violation Verify(const ReadOptions& read) const;

 private:
  static constexpr uint32_t kKeys = 16;

  Violation Renew(const ReadOptions& read);

  Store* const store_;
  const uint32_t number_;
};

}  // namespace braiddb::stress
