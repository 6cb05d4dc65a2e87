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
  // the error of an earlier call, because functions that add to a batch have no errptr; the batch cannot be written
  braiddb::Status unfit;
  std::vector<SavePoint> save_points;  // one for each save point of rep
  braiddb::capi::WireNotes notes;
  std::string damaged;           // the source data, if they are malformed
  braiddb::capi::WireForm wire;  // RocksDB's form of the data

  // After the call the update is in the batch, or the batch is unfit.
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
  // At a timestamp.
  void PutAt(const braiddb_column_family_handle_t* family, braiddb::Slice key, braiddb::Slice timestamp,
             braiddb::Slice value) noexcept;
  void DeleteAt(const braiddb_column_family_handle_t* family, braiddb::Slice key, braiddb::Slice timestamp) noexcept;
  void SingleDeleteAt(const braiddb_column_family_handle_t* family, braiddb::Slice key, braiddb::Slice timestamp) noexcept;
  void Clear();
  void SetSavePoint() noexcept;
  // Return NotFound if no save point exists.
  braiddb::Status RollBack();
  braiddb::Status PopSavePoint();
};

namespace braiddb::capi {

// Concatenates the parts.
std::string Join(int count, const char* const* parts, const size_t* lengths);

// Whether key and value fit in a batch. The write would refuse longer ones, and the batch may be unable to store them.
Status Fits(Slice key, Slice value);
Status BoundsFit(Slice start, Slice limit);

// Writes several updates and tells a user's filter policy about them.
Status WriteUpdates(braiddb_t* db, const braiddb_writeoptions_t* options, const WriteBatch& updates);

// Writes the updates of the batch.
Status WriteBatchTo(braiddb_t* db, const braiddb_writeoptions_t* options, const braiddb_writebatch_t& batch);

// The updates of a batch with an index, or the reason why they cannot be written.
Status UpdatesOf(const braiddb_writebatch_wi_t& batch, const WriteBatch** updates);

// A read-only view of a transaction's batch. Valid until the transaction is destroyed, also if the transaction is restarted. The
// caller frees the view by braiddb_free, so no member may need a destructor; the transaction owns the encoded data. Returns null
// if memory is short.
braiddb_writebatch_wi_t* MakeView(braiddb_transaction_t* transaction);

// The error of a function that adds to a batch with a null family.
Status NoFamily() noexcept;

// Calls the C callbacks for each update, up to the first update of another family than the default, as RocksDB does.
void IterateBatch(const WriteBatch& batch, void* state, void (*put)(void*, const char*, size_t, const char*, size_t),
                  void (*deleted)(void*, const char*, size_t));

}  // namespace braiddb::capi
