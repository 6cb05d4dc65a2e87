// Iterators over the log.
#include "capi/batch.h"
#include "capi/objects.h"
#include "capi/options.h"
#include "capi/result.h"

using namespace braiddb::capi;

struct braiddb_wal_iterator_t final : OpenObject {
  std::unique_ptr<braiddb::TransactionLogIterator> rep;

 private:
  void EndBeforeClose() noexcept override { rep.reset(); }
};

// ---- The functions

// The options only concern checksum verification, which is always done.
braiddb_wal_iterator_t* braiddb_get_updates_since(braiddb_t* db, uint64_t sequence, const braiddb_wal_readoptions_t*,
                                                  char** errptr) {
  auto* result = new (std::nothrow) braiddb_wal_iterator_t;
  const bool failed = SaveError(
      errptr, Guarded([&] { return result == nullptr ? NoMemory() : db->db->GetUpdatesSince(sequence, &result->rep); }));
  if (!failed) {
    db->open_objects.Add(result);
    return result;
  }
  delete result;
  return nullptr;
}

void braiddb_wal_iter_destroy(const braiddb_wal_iterator_t* iterator) { delete iterator; }

braiddb_writebatch_t* braiddb_wal_iter_get_batch(const braiddb_wal_iterator_t* iterator, uint64_t* sequence) {
  auto* result = new (std::nothrow) braiddb_writebatch_t;
  if (result == nullptr) return nullptr;
  braiddb::LoggedBatch batch = iterator->rep->GetBatch();
  if (batch.updates == nullptr) return delete result, nullptr;  // the batch was returned already
  result->rep = std::move(*batch.updates);
  result->notes.sequence = batch.sequence;
  if (sequence != nullptr) *sequence = batch.sequence;
  return result;
}

void braiddb_wal_iter_next(braiddb_wal_iterator_t* iterator) { iterator->rep->Next(); }

void braiddb_wal_iter_status(const braiddb_wal_iterator_t* iterator, char** errptr) {
  SaveError(errptr, iterator->rep->status());
}

unsigned char braiddb_wal_iter_valid(const braiddb_wal_iterator_t* iterator) { return iterator->rep->Valid() ? 1 : 0; }
