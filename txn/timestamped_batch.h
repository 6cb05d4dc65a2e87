// Batches of databases with timestamps: from the user's form to stored entries, and back.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "txn/timestamped_family.h"

namespace braiddb {

// Returns the family with this id, or null if it has no timestamps.
using FindTimestamped = std::function<std::shared_ptr<TimestampedFamily>(uint32_t family)>;

// What a batch has. Iterate a batch over it.
class BatchSurvey final : public WriteBatch::Handler {
 public:
  explicit BatchSurvey(const FindTimestamped& find) : find_(find) {}

  // Whether there is an update at a timestamp, or of a family with timestamps.
  bool needs_conversion() const { return needs_conversion_; }
  bool deletes_range() const { return deletes_range_; }

  void Put(Slice, Slice) override {}
  void Delete(Slice) override {}
  void Merge(Slice, Slice) override {}
  Status PutCF(uint32_t family, Slice, Slice) override { return Note(family); }
  Status DeleteCF(uint32_t family, Slice) override { return Note(family); }
  Status MergeCF(uint32_t family, Slice, Slice) override { return Note(family); }
  Status DeleteRangeCF(uint32_t family, Slice, Slice) override { return Note(family); }
  Status PutAtCF(uint32_t, Slice, Slice, Slice) override { return NoteTimestamp(); }
  Status DeleteAtCF(uint32_t, Slice, Slice) override { return NoteTimestamp(); }
  Status SingleDeleteAtCF(uint32_t, Slice, Slice) override { return NoteTimestamp(); }
  Status DeleteRangeAtCF(uint32_t, Slice, Slice, Slice) override {
    deletes_range_ = true;
    return NoteTimestamp();
  }

 private:
  Status Note(uint32_t family) {
    needs_conversion_ |= find_(family) != nullptr;
    return Status::OK();
  }
  Status NoteTimestamp() {
    needs_conversion_ = true;
    return Status::OK();
  }

  const FindTimestamped& find_;
  bool needs_conversion_ = false;
  bool deletes_range_ = false;
};

// Converts a batch of the user to stored entries.
class StoredBatch final : public WriteBatch::Handler {
 public:
  // `scan`: a new iterator over the family's keys in [begin, end) that have a value at the timestamp.
  using Scan = std::function<std::unique_ptr<Iterator>(const TimestampedFamily&, uint32_t family, Slice begin, Slice end,
                                                       Slice timestamp)>;
  StoredBatch(const FindTimestamped& find, Scan scan) : find_(find), scan_(std::move(scan)) {}

  const WriteBatch& stored() const { return stored_; }

  void Put(Slice, Slice) override {}  // the batch calls only the family variants below
  void Delete(Slice) override {}
  void Merge(Slice, Slice) override {}
  Status PutCF(uint32_t family, Slice key, Slice value) override;
  Status DeleteCF(uint32_t family, Slice key) override;
  Status MergeCF(uint32_t family, Slice key, Slice operand) override;
  Status DeleteRangeCF(uint32_t family, Slice begin, Slice end) override;
  Status PutAtCF(uint32_t family, Slice key, Slice timestamp, Slice value) override;
  Status DeleteAtCF(uint32_t family, Slice key, Slice timestamp) override;
  Status SingleDeleteAtCF(uint32_t family, Slice key, Slice timestamp) override;
  Status DeleteRangeAtCF(uint32_t family, Slice begin, Slice end, Slice timestamp) override;

 private:
  struct Version {
    uint32_t family;
    std::string key;
    std::string timestamp;
  };

  // An error if the family has timestamps.
  Status CheckPlain(uint32_t family) const;
  // An error, or the family with timestamps.
  Status Find(uint32_t family, Slice timestamp, std::shared_ptr<TimestampedFamily>* found) const;
  void AddDeletion(uint32_t family, Slice key, Slice timestamp);

  const FindTimestamped& find_;
  const Scan scan_;
  WriteBatch stored_;
  std::vector<Version> puts_;  // the earlier puts of the batch that a range may delete
};

// The log's history in the form of the user. Removals by the compaction filter are not shown.
std::unique_ptr<TransactionLogIterator> NewTimestampedLog(std::unique_ptr<TransactionLogIterator> base, FindTimestamped find);

}  // namespace braiddb
