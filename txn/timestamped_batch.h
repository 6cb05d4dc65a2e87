// Batches of databases with timestamps: from the user's form to stored entries, and back.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "braiddb/db.h"
#include "db/timestamped_entry.h"
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
  // Whether the family exists: it was created and not dropped.
  using Exists = std::function<bool(uint32_t family)>;
  // `deletes_range`: as BatchSurvey found it. `skips_missing`: as WriteOptions::ignore_missing_column_families.
  StoredBatch(const FindTimestamped& find, Scan scan, Exists exists, bool deletes_range, bool skips_missing)
      : find_(find),
        scan_(std::move(scan)),
        exists_(std::move(exists)),
        deletes_range_(deletes_range),
        skips_missing_(skips_missing) {}

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
  struct ByStoredKey {
    const Comparator* comparator;
    bool operator()(const std::string& a, const std::string& b) const { return comparator->Compare(a, b) < 0; }
  };
  using Versions = std::map<std::string, VersionKind, ByStoredKey>;

  // Whether updates of the family are skipped, because it does not exist.
  bool IsSkipped(uint32_t family) const { return skips_missing_ && !exists_(family); }
  // An error if the family has timestamps and is not skipped.
  Status CheckPlain(uint32_t family) const;
  // An error, or the family with timestamps.
  Status Find(uint32_t family, Slice timestamp, std::shared_ptr<TimestampedFamily>* found) const;
  Status AddDeletion(uint32_t family, Slice key, Slice timestamp, VersionKind kind);
  void AddVersion(const TimestampedFamily& found, uint32_t family, Slice key, Slice timestamp, Slice value, VersionKind kind);
  Status DeleteExistingRange(const TimestampedFamily& found, uint32_t family, Slice begin, Slice end, Slice timestamp);

  const FindTimestamped& find_;
  const Scan scan_;
  const Exists exists_;
  const bool deletes_range_;
  const bool skips_missing_;
  WriteBatch stored_;
  // The batch's own versions by family, for deletions of ranges; empty if the batch deletes no range.
  std::map<uint32_t, Versions> own_;
};

// The log's history in the form of the user. Removals by the compaction filter are not shown.
std::unique_ptr<TransactionLogIterator> NewTimestampedLog(std::unique_ptr<TransactionLogIterator> base, FindTimestamped find);

}  // namespace braiddb
