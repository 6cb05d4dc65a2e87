// ReadOnlyDB: base class of databases that refuse every change.
#pragma once

#include <memory>
#include <string>

#include "braiddb/db.h"
#include "braiddb/write_batch.h"

namespace braiddb {

class ReadOnlyDB : public DB {
 public:
  Status Put(const WriteOptions&, Slice, Slice) override { return Refusal(); }
  Status Delete(const WriteOptions&, Slice) override { return Refusal(); }
  Status Merge(const WriteOptions&, Slice, Slice) override { return Refusal(); }
  Status DeleteRange(const WriteOptions&, ColumnFamilyHandle*, Slice, Slice) override { return Refusal(); }
  Status Write(const WriteOptions&, const WriteBatch&) override { return Refusal(); }
  Status Put(const WriteOptions&, ColumnFamilyHandle*, Slice, Slice) override { return Refusal(); }
  Status Delete(const WriteOptions&, ColumnFamilyHandle*, Slice) override { return Refusal(); }
  Status Merge(const WriteOptions&, ColumnFamilyHandle*, Slice, Slice) override { return Refusal(); }
  Status CreateColumnFamily(const ColumnFamilyOptions&, const std::string&, std::unique_ptr<ColumnFamilyHandle>*) override {
    return Refusal();
  }
  Status DropColumnFamily(ColumnFamilyHandle*) override { return Refusal(); }
  Status SetOptions(ColumnFamilyHandle*, const ChangedOptions&) override { return Refusal(); }
  Status Flush() override { return Refusal(); }
  Status CompactRange(const CompactRangeOptions&, const Slice*, const Slice*) override { return Refusal(); }
  Status CompactRange(const CompactRangeOptions&, ColumnFamilyHandle*, const Slice*, const Slice*) override { return Refusal(); }
  Status WaitForCompaction() override { return Refusal(); }
  Statistics GetStatistics() const override { return Statistics(); }

 private:
  static Status Refusal() { return Status::NotSupported("Not supported operation in read only mode."); }  // RocksDB's text
};

}  // namespace braiddb
