// Batches of the C API.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braiddb/c.h"
#include "braiddb/db.h"
#include "braiddb/write_batch.h"
#include "braiddb/write_batch_with_index.h"
#include "capi/wire_batch.h"

struct braiddb_writebatch_t {
  struct SavePoint {
    bool fit;
    size_t notes;
  };

  braiddb::WriteBatch rep;
  braiddb::Status unfit;               // why it cannot be written, if not OK: functions that add to a batch have no errptr
  std::vector<SavePoint> save_points;  // for each of rep's
  braiddb::capi::WireNotes notes;
  std::string damaged;           // what it was made from, if that is not well formed
  braiddb::capi::WireForm wire;  // its data

  // What was added is in the batch, or the batch is unfit.
  void Put(braiddb::Slice key, braiddb::Slice value) noexcept { PutCF(0, key, value); }
  void Delete(braiddb::Slice key) noexcept { DeleteCF(0, key); }
  void Merge(braiddb::Slice key, braiddb::Slice operand) noexcept { MergeCF(0, key, operand); }
  void DeleteRange(braiddb::Slice start, braiddb::Slice limit) noexcept { DeleteRangeCF(0, start, limit); }
  void Put(const braiddb_column_family_handle_t* family, braiddb::Slice key, braiddb::Slice value) noexcept;
  void Delete(const braiddb_column_family_handle_t* family, braiddb::Slice key) noexcept;
  void SingleDelete(const braiddb_column_family_handle_t* family, braiddb::Slice key) noexcept;
  void Merge(const braiddb_column_family_handle_t* family, braiddb::Slice key, braiddb::Slice operand) noexcept;
  void DeleteRange(const braiddb_column_family_handle_t* family, braiddb::Slice start, braiddb::Slice limit) noexcept;
  void PutCF(uint32_t family, braiddb::Slice key, braiddb::Slice value) noexcept;
  void DeleteCF(uint32_t family, braiddb::Slice key) noexcept;
  void SingleDeleteCF(uint32_t family, braiddb::Slice key) noexcept;
  void MergeCF(uint32_t family, braiddb::Slice key, braiddb::Slice operand) noexcept;
  void DeleteRangeCF(uint32_t family, braiddb::Slice start, braiddb::Slice limit) noexcept;
  void Refuse(const char* function, const char* missing) noexcept;
  void Clear();
  void SetSavePoint() noexcept;
  // NotFound if there is none.
  braiddb::Status RollBack();
  braiddb::Status PopSavePoint();
};

namespace braiddb::capi {

// Several parts as one.
std::string Join(int count, const char* const* parts, const size_t* lengths);

// Whether they can be in a batch; longer ones would be refused by the write, and may be too long to be kept.
Status Fits(Slice key, Slice value);
Status BoundsFit(Slice start, Slice limit);

// Every write of several updates: a filter of the user's own gets to know of them.
Status WriteUpdates(braiddb_t* db, const braiddb_writeoptions_t* options, const WriteBatch& updates);

// Writes what is in the batch.
Status WriteBatchTo(braiddb_t* db, const braiddb_writeoptions_t* options, const braiddb_writebatch_t& batch);

// The updates of a batch with an index; the error why they cannot be written.
Status UpdatesOf(const braiddb_writebatch_wi_t& batch, const WriteBatch** updates);

// The batch of a transaction, to be read until the transaction is destroyed, also when the transaction is begun anew. The result
// is for braiddb_free, so no member may need a destructor: the transaction owns the form of the data, too. Null without memory.
braiddb_writebatch_wi_t* MakeView(braiddb_transaction_t* transaction);

// Of functions that add to a batch without a family.
Status NoFamily() noexcept;

// Calls the functions of C for each update, up to the first one of another family than the default one, as RocksDB does.
void IterateBatch(const WriteBatch& batch, void* state, void (*put)(void*, const char*, size_t, const char*, size_t),
                  void (*deleted)(void*, const char*, size_t));

}  // namespace braiddb::capi
