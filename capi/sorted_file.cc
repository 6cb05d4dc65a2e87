// Sorted files and their ingestion, by braiddb/backup.h. RocksDB's own files are not supported.
#include "braiddb/backup.h"
#include "capi/batch.h"
#include "capi/objects.h"
#include "capi/options.h"
#include "capi/result.h"

using braiddb::ColumnFamilyHandle;
using braiddb::Slice;
using braiddb::Status;
using namespace braiddb::capi;

struct braiddb_ingestexternalfileoptions_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_INGEST_OPTIONS)
};

struct braiddb_sstfilewriter_t {
  const braiddb::Comparator* comparator = braiddb::BytewiseComparator();
  std::unique_ptr<braiddb::SortedFileWriter> rep;  // null before the first open
  bool is_open = false;
};

namespace {

// RocksDB reports a missing file as an IO error.
Status AsIOError(Status status) { return status.IsNotFound() ? Status::IOError(status.message()) : status; }

template <class Work>
void IfOpen(braiddb_sstfilewriter_t* writer, char** errptr, const Work& work) {
  SaveError(errptr,
            Guarded([&] { return writer->is_open ? work(writer->rep.get()) : Status::InvalidArgument("no file is open"); }));
}

// Ingests all files or none.
Status Ingest(braiddb_t* db, ColumnFamilyHandle* family, const char* const* paths, size_t count,
              const braiddb_ingestexternalfileoptions_t* options) {
  if (options->ingest_behind != 0) return Status::NotSupported("taking in files behind all that is there");
  braiddb::IngestOptions ingest;
  ingest.remove_files = options->move_files != 0;
  ingest.any_comparator = true;  // RocksDB ignores the comparator's name, too
  ingest.family = family;
  braiddb_writeoptions_t synced;
  synced.sync = 1;
  ingest.write = [db, synced](const braiddb::WriteBatch& updates) { return WriteUpdates(db, &synced, updates); };
  return AsIOError(braiddb::IngestExternalFiles(db->db.get(), {paths, paths + count}, ingest));
}

}  // namespace

// ---- Write

braiddb_sstfilewriter_t* braiddb_sstfilewriter_create(const braiddb_envoptions_t*, const braiddb_options_t* options) {
  auto* const writer = Make<braiddb_sstfilewriter_t>();
  if (writer == nullptr) return nullptr;
  writer->comparator = options->comparator != nullptr ? options->comparator : options->own.comparator;
  return writer;
}

braiddb_sstfilewriter_t* braiddb_sstfilewriter_create_with_comparator(const braiddb_envoptions_t* env_options,
                                                                      const braiddb_options_t* options,
                                                                      const braiddb_comparator_t* comparator) {
  braiddb_sstfilewriter_t* const writer = braiddb_sstfilewriter_create(env_options, options);
  if (writer != nullptr && comparator != nullptr) writer->comparator = comparator;
  return writer;
}

void braiddb_sstfilewriter_destroy(braiddb_sstfilewriter_t* writer) { delete writer; }

// Discards an earlier file that is not finished.
void braiddb_sstfilewriter_open(braiddb_sstfilewriter_t* writer, const char* path, char** errptr) {
  writer->is_open = false;
  const Status status = Guarded([&] {
    writer->rep.reset();
    return AsIOError(braiddb::SortedFileWriter::Create(path, writer->comparator, &writer->rep));
  });
  writer->is_open = !SaveError(errptr, status);
}

void braiddb_sstfilewriter_put(braiddb_sstfilewriter_t* writer, const char* key, size_t key_length, const char* value,
                               size_t value_length, char** errptr) {
  IfOpen(writer, errptr, [&](braiddb::SortedFileWriter* file) { return file->Put({key, key_length}, {value, value_length}); });
}

void braiddb_sstfilewriter_add(braiddb_sstfilewriter_t* writer, const char* key, size_t key_length, const char* value,
                               size_t value_length, char** errptr) {
  braiddb_sstfilewriter_put(writer, key, key_length, value, value_length, errptr);
}

void braiddb_sstfilewriter_delete(braiddb_sstfilewriter_t* writer, const char* key, size_t key_length, char** errptr) {
  IfOpen(writer, errptr, [&](braiddb::SortedFileWriter* file) { return file->Delete({key, key_length}); });
}

void braiddb_sstfilewriter_delete_range(braiddb_sstfilewriter_t* writer, const char* start_key, size_t start_key_length,
                                        const char* limit_key, size_t limit_key_length, char** errptr) {
  IfOpen(writer, errptr, [&](braiddb::SortedFileWriter* file) {
    return file->DeleteRange({start_key, start_key_length}, {limit_key, limit_key_length});
  });
}

void braiddb_sstfilewriter_merge(braiddb_sstfilewriter_t* writer, const char* key, size_t key_length, const char* value,
                                 size_t value_length, char** errptr) {
  IfOpen(writer, errptr, [&](braiddb::SortedFileWriter* file) { return file->Merge({key, key_length}, {value, value_length}); });
}

void braiddb_sstfilewriter_put_with_ts(braiddb_sstfilewriter_t* writer, const char* key, size_t key_length, const char* timestamp,
                                       size_t timestamp_length, const char* value, size_t value_length, char** errptr) {
  IfOpen(writer, errptr, [&](braiddb::SortedFileWriter* file) {
    return file->PutAt({key, key_length}, {timestamp, timestamp_length}, {value, value_length});
  });
}

void braiddb_sstfilewriter_delete_with_ts(braiddb_sstfilewriter_t* writer, const char* key, size_t key_length,
                                          const char* timestamp, size_t timestamp_length, char** errptr) {
  IfOpen(writer, errptr, [&](braiddb::SortedFileWriter* file) {
    return file->DeleteAt({key, key_length}, {timestamp, timestamp_length});
  });
}

void braiddb_sstfilewriter_finish(braiddb_sstfilewriter_t* writer, char** errptr) {
  IfOpen(writer, errptr, [&](braiddb::SortedFileWriter* file) {
    Status status = file->Finish();
    writer->is_open = !status.ok();
    return status;
  });
}

// The size of the open file, or of the file that was finished last.
void braiddb_sstfilewriter_file_size(braiddb_sstfilewriter_t* writer, uint64_t* size) {
  *size = writer->rep == nullptr ? 0 : writer->rep->FileSize();
}

// ---- Ingest

braiddb_ingestexternalfileoptions_t* braiddb_ingestexternalfileoptions_create() {
  return Make<braiddb_ingestexternalfileoptions_t>();
}
void braiddb_ingestexternalfileoptions_destroy(braiddb_ingestexternalfileoptions_t* options) { delete options; }

#define DEFINE_BOTH(set_type, get_type, name, initial)
#define DEFINE_SET(type, name, initial) \
  BRAIDDB_C_DEFINE_SET(ingestexternalfileoptions, braiddb_ingestexternalfileoptions_t, type, type, name)
BRAIDDB_C_INGEST_OPTIONS(DEFINE_BOTH, DEFINE_SET)
#undef DEFINE_BOTH
#undef DEFINE_SET

void braiddb_ingest_external_file(braiddb_t* db, const char* const* paths, size_t count,
                                  const braiddb_ingestexternalfileoptions_t* options, char** errptr) {
  SaveError(errptr, Guarded([&] { return Ingest(db, nullptr, paths, count, options); }));
}

void braiddb_ingest_external_file_cf(braiddb_t* db, braiddb_column_family_handle_t* column_family, const char* const* paths,
                                     size_t count, const braiddb_ingestexternalfileoptions_t* options, char** errptr) {
  SaveError(errptr, Guarded([&] {
              if (column_family == nullptr) return NoFamily();
              return Ingest(db, FamilyOf(column_family), paths, count, options);
            }));
}
