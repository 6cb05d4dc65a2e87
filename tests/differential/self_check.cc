#include "tests/differential/self_check.h"

#include <cstdio>
#include <cstdlib>

#include "tests/differential/child.h"
#include "tests/differential/known_differences.h"

namespace braiddb::test {

namespace {

constexpr size_t kSequences = 2;
constexpr size_t kCalls = 80;
constexpr uint64_t kMostSeeds = 100;

// The library as it is, for functions that give wrong answers.
Api* right;

void DeletesNothing(braiddb_t*, const braiddb_writeoptions_t*, const char*, size_t, char**) {}

char* GivesOneByteLess(braiddb_t* db, const braiddb_readoptions_t* options, const char* key, size_t key_length, size_t* length,
                       char** error) {
  char* const value = right->rocksdb_get(db, options, key, key_length, length, error);
  if (value != nullptr && *length > 100) --*length;
  return value;
}

void PassesByOne(braiddb_iterator_t* iterator) {
  right->rocksdb_iter_next(iterator);
  if (right->rocksdb_iter_valid(iterator) != 0) right->rocksdb_iter_next(iterator);
}

void IgnoresRollback(braiddb_transaction_t* transaction, char** error) {
  right->rocksdb_transaction_rollback_to_savepoint(transaction, error);
  free(*error);
  *error = nullptr;
}

void Crashes(braiddb_writebatch_t*) { std::abort(); }

struct Fault {
  const char* name;
  void (*put_into)(Api* api);
};
constexpr Fault kFaults[] = {
    {"a deletion that does nothing", [](Api* api) { api->rocksdb_delete = DeletesNothing; }},
    {"a long value without its last byte", [](Api* api) { api->rocksdb_get = GivesOneByteLess; }},
    {"an iterator that passes a key by", [](Api* api) { api->rocksdb_iter_next = PassesByOne; }},
    {"a rollback that hides its error", [](Api* api) { api->rocksdb_transaction_rollback_to_savepoint = IgnoresRollback; }},
    {"a crash", [](Api* api) { api->rocksdb_writebatch_clear = Crashes; }},
};

}  // namespace

int SelfTest(const Api& library, const std::string& directory, const std::string& source_directory) {
  int failures = 0;
  const auto check = [&](bool good, const std::string& what) {
    if (good) return;
    ++failures;
    std::printf("differential_test: self-test: %s\n", what.c_str());
  };
  const std::string missing = CheckKnownDifferences(source_directory);
  check(missing.empty(), missing);
  Api original = library;
  right = &original;
  Libraries libraries{library, library};
  const Life life = DrawLife(1, kSequences, kCalls);
  const ChildResult same = RunInChild(libraries, life, directory, false);
  check(!same.failed(), "a library differs from itself: " + (same.crash.empty() ? "" : same.crash));
  check(same.life.sequences == kSequences, "sequences are missing");
  for (const Fault& fault : kFaults) {
    libraries.tested = library;
    fault.put_into(&libraries.tested);
    bool found = false;
    for (uint64_t seed = 1; seed <= kMostSeeds && !found; ++seed) {
      const Life tried = DrawLife(seed, kSequences, kCalls);
      const ChildResult result = RunInChild(libraries, tried, directory, false);
      found = result.failed();
      // Shrinking takes long: once is enough.
      if (!found || &fault != &kFaults[0]) continue;
      const Life shorter = Shrink(libraries, tried, result, directory);
      check(RunInChild(libraries, shorter, directory, false).failed(),
            std::string("shrunk to one that does not fail: ") + fault.name);
      check(shorter.calls.size() <= 12,
            std::string("not shrunk: ") + fault.name + ", " + std::to_string(shorter.calls.size()) + " calls");
    }
    check(found, std::string("does not find ") + fault.name);
  }
  std::printf("differential_test: self-test: %d failures\n", failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace braiddb::test
