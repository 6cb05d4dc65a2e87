// Ingestion: writes the updates of external files as one batch.
#include <utility>

#include "backup/sorted_file.h"
#include "braiddb/write_batch.h"
#include "db/copied_database.h"
#include "db/db_impl.h"
#include "db/no_memory.h"
#include "db/timestamped_entry.h"
#include "util/comparator_name.h"
#include "util/file.h"

namespace braiddb {
namespace {

using Readers = std::vector<std::unique_ptr<SortedFileReader>>;

// Collects the updates of the batch.
class Updates final : public WriteBatch::Handler {
 public:
  explicit Updates(ColumnFamilyHandle* family) : family_(family) {}
  void Put(Slice key, Slice value) override {
    const size_t timestamp_size = family_->GetOptions().comparator->timestamp_size();
    if (timestamp_size == 0) return batch_.Put(family_, key, value);
    if (IsTimestamped(key, value, timestamp_size)) return AddVersion(SplitKey(key, timestamp_size), SplitValue(value));
    status_ = NotTimestamped();
  }
  void Delete(Slice key) override { batch_.Delete(family_, key); }
  void Merge(Slice key, Slice operand) override { batch_.Merge(family_, key, operand); }
  void DeleteRange(Slice start, Slice limit) {
    if (family_->GetOptions().comparator->Compare(start, limit) < 0) batch_.DeleteRange(family_, start, limit);
  }
  const WriteBatch& batch() const { return batch_; }
  const Status& status() const { return status_; }

 private:
  void AddVersion(const SplitKey& key, const SplitValue& value) {
    if (value.kind == VersionKind::kPut) {
      batch_.PutAt(family_, key.key, key.timestamp, value.value);
    } else {
      batch_.DeleteAt(family_, key.key, key.timestamp);
    }
  }

  ColumnFamilyHandle* const family_;
  WriteBatch batch_;
  Status status_;  // the file was not written for timestamps
};

Status OpenFile(const std::string& path, const IngestOptions& options, const Comparator* comparator, Readers* readers) {
  std::unique_ptr<SortedFileReader> reader;
  Status status = SortedFileReader::Open(path, &reader);
  if (!status.ok()) return status;
  // Versions have another form than other updates, so a file of the one is never ingested as a file of the other.
  const bool has_versions = HasTimestamps(comparator) || reader->comparator_name().find(kTimestampsInName) != std::string::npos;
  if ((!options.any_comparator || has_versions) && reader->comparator_name() != StoredName(*comparator)) {
    return Status::InvalidArgument(path + ": was made with the comparator " + reader->comparator_name() + ", not " +
                                   comparator->Name());
  }
  if (reader->comparator_name() != StoredName(*comparator) && reader->ranges().Count() > 0) {
    return Status::InvalidArgument(path + ": deletes ranges in the order of the comparator " + reader->comparator_name() +
                                   ", which are no ranges in that of " + comparator->Name());
  }
  readers->push_back(std::move(reader));
  return status;
}

Status DeleteRanges(const WriteBatch& ranges, Updates* updates) {
  struct Deleter : WriteBatch::Handler {
    void Put(Slice start, Slice limit) override { updates->DeleteRange(start, limit); }
    void Delete(Slice) override {}
    void Merge(Slice, Slice) override {}
    Updates* updates;
  } deleter;
  deleter.updates = updates;
  return ranges.Iterate(&deleter);
}

// The file's range deletions come first, because they apply to keys that existed before the file.
Status AddFile(SortedFileReader* reader, Updates* updates) {
  Status status = DeleteRanges(reader->ranges(), updates);
  WriteBatch block;
  do {
    if (status.ok()) status = reader->ReadBlock(&block);
    if (status.ok()) status = block.Iterate(updates);
    if (status.ok()) status = updates->status();
  } while (status.ok() && block.Count() > 0);
  return status;
}

}  // namespace

Status IngestExternalFiles(DB* db, const std::vector<std::string>& paths, const IngestOptions& options) try {
  ColumnFamilyHandle* const family = options.family == nullptr ? db->DefaultColumnFamily() : options.family;
  const DBImpl* const base = CopiedDatabase(db);
  if (base != nullptr && static_cast<const FamilyHandle*>(family)->db() != base)
    return Status::InvalidArgument("the column family handle is of another database");
  Readers readers;
  uint64_t bytes = 0;
  for (const std::string& path : paths) {
    if (Status status = OpenFile(path, options, family->GetOptions().comparator, &readers); !status.ok()) return status;
    bytes += readers.back()->file_bytes();
    if (bytes > kMaxBatchSize) return Status::InvalidArgument(path + ": more than 4 GiB at once; ingest fewer files at a time");
  }
  Updates updates(family);
  Status status;
  for (size_t i = 0; i < readers.size() && status.ok(); ++i) status = AddFile(readers[i].get(), &updates);
  if (status.ok()) status = options.write ? options.write(updates.batch()) : db->Write({}, updates.batch());
  for (size_t i = 0; i < paths.size() && status.ok() && options.remove_files; ++i) status = RemoveFile(paths[i]);
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

}  // namespace braiddb
