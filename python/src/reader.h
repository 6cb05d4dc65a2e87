// Table: the keys of one column family, as of now or as of a snapshot. Database, ColumnFamily and Snapshot are made of it.
#pragma once

#include <memory>
#include <optional>

#include "core.h"

namespace braiddb::python {

// Released by its End or by the last reader that has it.
class SnapshotHold final : public Child {
 public:
  explicit SnapshotHold(std::shared_ptr<Core> core);
  ~SnapshotHold() override;
  // With the GIL held. If reads are under way, the last of them releases the snapshot.
  void Release();
  void End() override;
  const Snapshot* get() const;
  void BeginRead() { ++reads_; }
  void EndRead();
  uint64_t sequence() const { return sequence_; }

 private:
  std::shared_ptr<Core> core_;
  const Snapshot* snapshot_ = nullptr;
  uint64_t sequence_ = 0;
  uint32_t reads_ = 0;  // guarded by the GIL, as the next one
  bool is_released_ = false;
};

class TransactionHold;

// Where a read goes: a family of a database, and a snapshot or a transaction of it.
struct Source {
  std::shared_ptr<Core> core;
  ColumnFamilyHandle* family = nullptr;  // owned by the core
  std::shared_ptr<SnapshotHold> snapshot;
  std::shared_ptr<TransactionHold> transaction;

  ReadOptions options() const;
  // The transaction's; null without one.
  Mark* mark() const;
  void Try(Slice key) const { core->Try(family, key); }
};

// Keeps the snapshot of a source during one read. Begins before the Use and ends behind it, so with the GIL held.
class SnapshotRead {
 public:
  explicit SnapshotRead(const Source& source) : snapshot_(source.snapshot.get()) {
    if (snapshot_ != nullptr) snapshot_->BeginRead();
  }
  ~SnapshotRead() {
    if (snapshot_ != nullptr) snapshot_->EndRead();
  }
  SnapshotRead(const SnapshotRead&) = delete;
  SnapshotRead& operator=(const SnapshotRead&) = delete;

 private:
  SnapshotHold* const snapshot_;
};

class TransactionHold final : public Child {
 public:
  TransactionHold(std::shared_ptr<Core> core, std::unique_ptr<Transaction> transaction);
  ~TransactionHold() override;
  void End() override;
  // Raises an error if the transaction is over, or if a call of it is under way.
  Transaction* get() const;
  Mark* mark() { return &mark_; }

 private:
  std::shared_ptr<Core> core_;
  std::unique_ptr<Transaction> transaction_;
  Mark mark_{false, "the transaction"};
};

// Common operations of Table and Transaction.
nb::object Get(const Source& source, nb::handle key, nb::handle missing);
bool Contains(const Source& source, nb::handle key);
nb::list MultiGet(const Source& source, nb::iterable keys, nb::handle missing);

enum class Shows { kKeys, kValues, kItems };
nb::object Iterate(const Source& source, Shows shows, nb::handle prefix, nb::handle start, nb::handle stop, bool reverse,
                   std::optional<int64_t> limit);

// The family's handle for a name; raises NotFoundError.
ColumnFamilyHandle* FindFamily(const Core& core, const std::string& name);

struct Table {
  Source source;
};
struct Database : Table {};
struct Family : Table {};
struct SnapshotView : Table {};

}  // namespace braiddb::python
