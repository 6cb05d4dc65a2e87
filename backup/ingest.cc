// Ingestion: files that were made elsewhere become one batch.
#include <optional>
#include <utility>

#include "backup/sorted_file.h"
#include "braiddb/write_batch_with_index.h"
#include "db/no_memory.h"
#include "util/file.h"

namespace braiddb {
namespace {

using Readers = std::vector<std::unique_ptr<SortedFileReader>>;

// What the batch will have. The index is for deletions of ranges, which have to know what files before them put.
class Updates final : public WriteBatch::Handler {
 public:
  Updates(ColumnFamilyHandle* family, bool with_index) : family_(family) {
    if (with_index) indexed_.emplace(family->GetOptions().comparator);
  }
  void Put(Slice key, Slice value) override { indexed_ ? indexed_->Put(family_, key, value) : plain_.Put(family_, key, value); }
  void Delete(Slice key) override { indexed_ ? indexed_->Delete(family_, key) : plain_.Delete(family_, key); }
  void Merge(Slice key, Slice operand) override {
    indexed_ ? indexed_->Merge(family_, key, operand) : plain_.Merge(family_, key, operand);
  }
  const WriteBatch& batch() const { return indexed_ ? indexed_->GetWriteBatch() : plain_; }

  // Deletes what is in [start, limit), here and in `db`. REQUIRES: with_index.
  Status DeleteRange(DB* db, Slice start, Slice limit) {
    ReadOptions bounds;
    bounds.iterate_lower_bound = start;
    bounds.iterate_upper_bound = limit;
    std::vector<std::string> keys;
    const auto iterator = indexed_->NewIteratorWithBase(family_, db->NewIterator(bounds, family_), bounds);
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) keys.emplace_back(iterator->key());
    for (const std::string& key : keys) indexed_->Delete(family_, key);
    return iterator->status();
  }

  const Comparator* comparator() const { return family_->GetOptions().comparator; }

 private:
  ColumnFamilyHandle* const family_;
  WriteBatch plain_;
  std::optional<WriteBatchWithIndex> indexed_;
};

Status OpenFile(const std::string& path, const IngestOptions& options, const Comparator* comparator, Readers* readers) {
  std::unique_ptr<SortedFileReader> reader;
  Status status = SortedFileReader::Open(path, &reader);
  if (!status.ok()) return status;
  if (!options.any_comparator && reader->comparator_name() != comparator->Name()) {
    return Status::InvalidArgument(path + ": was made with the comparator " + reader->comparator_name() + ", not " +
                                   comparator->Name());
  }
  readers->push_back(std::move(reader));
  return status;
}

Status DeleteRanges(DB* db, const WriteBatch& ranges, Updates* updates) {
  struct Deleter : WriteBatch::Handler {
    void Put(Slice start, Slice limit) override {
      if (status.ok() && updates->comparator()->Compare(start, limit) < 0) status = updates->DeleteRange(db, start, limit);
    }
    void Delete(Slice) override {}
    void Merge(Slice, Slice) override {}
    DB* db;
    Updates* updates;
    Status status;
  } deleter;
  deleter.db = db;
  deleter.updates = updates;
  Status status = ranges.Iterate(&deleter);
  return status.ok() ? deleter.status : status;
}

// Its ranges come first: they are about what was there before it.
Status AddFile(DB* db, SortedFileReader* reader, Updates* updates) {
  Status status = DeleteRanges(db, reader->ranges(), updates);
  WriteBatch block;
  do {
    if (status.ok()) status = reader->ReadBlock(&block);
    if (status.ok()) status = block.Iterate(updates);
  } while (status.ok() && block.Count() > 0);
  return status;
}

}  // namespace

Status IngestExternalFiles(DB* db, const std::vector<std::string>& paths, const IngestOptions& options) try {
  ColumnFamilyHandle* const family = options.family == nullptr ? db->DefaultColumnFamily() : options.family;
  Readers readers;
  uint64_t bytes = 0;
  bool has_ranges = false;
  for (const std::string& path : paths) {
    if (Status status = OpenFile(path, options, family->GetOptions().comparator, &readers); !status.ok()) return status;
    has_ranges = has_ranges || readers.back()->ranges().Count() > 0;
    bytes += readers.back()->file_bytes();
    if (bytes > kMaxBatchSize) return Status::InvalidArgument(path + ": more than 4 GiB at once; ingest fewer files at a time");
  }
  Updates updates(family, has_ranges);
  Status status;
  for (size_t i = 0; i < readers.size() && status.ok(); ++i) status = AddFile(db, readers[i].get(), &updates);
  if (status.ok()) status = options.write ? options.write(updates.batch()) : db->Write({}, updates.batch());
  for (size_t i = 0; i < paths.size() && status.ok() && options.remove_files; ++i) status = RemoveFile(paths[i]);
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

}  // namespace braiddb
