// Ingestion: files that were made elsewhere become one batch.
#include "backup/sorted_file.h"
#include "db/no_memory.h"
#include "util/file.h"

namespace braiddb {
namespace {

Status AddFile(const std::string& path, const Comparator* comparator, WriteBatch* all) {
  struct Adder : WriteBatch::Handler {
    void Put(Slice key, Slice value) override { to->Put(key, value); }
    void Delete(Slice key) override { to->Delete(key); }
    WriteBatch* to;
  } adder;
  adder.to = all;
  std::unique_ptr<SortedFileReader> reader;
  Status status = SortedFileReader::Open(path, &reader);
  if (!status.ok()) return status;
  if (reader->comparator_name() != comparator->Name()) {
    return Status::InvalidArgument(path + ": was made with the comparator " + reader->comparator_name() + ", not " +
                                   comparator->Name());
  }
  if (all->ApproximateSize() + reader->file_bytes() > kMaxBatchSize) {
    return Status::InvalidArgument(path + ": more than 4 GiB at once; ingest fewer files at a time");
  }
  WriteBatch block;
  do {
    status = reader->ReadBlock(&block);
    if (status.ok()) status = block.Iterate(&adder);
  } while (status.ok() && block.Count() > 0);
  return status;
}

}  // namespace

Status IngestExternalFiles(DB* db, const std::vector<std::string>& paths, const IngestOptions& options) try {
  WriteBatch all;
  Status status;
  for (size_t i = 0; i < paths.size() && status.ok(); ++i) status = AddFile(paths[i], db->GetOptions().comparator, &all);
  if (status.ok()) status = db->Write({}, all);
  for (size_t i = 0; i < paths.size() && status.ok() && options.remove_files; ++i) status = RemoveFile(paths[i]);
  return status;
} catch (const std::bad_alloc&) {
  return NoMemory();
}

}  // namespace braiddb
