// Files of sorted keys, and taking them in.
//
// LAYOUT  of a file: kMagic · the lengths of the next two, 8 bytes little-endian each · the ranges that are deleted, as updates
//         that put their limit under their start · the updates, both as WriteBatch::Data() · XXH64 of all that.
// A file is written when it is finished, so keys and values are in DRAM until then. RocksDB's own files are not understood.
#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "capi/batch.h"
#include "capi/objects.h"
#include "capi/options.h"
#include "capi/result.h"

using braiddb::Slice;
using braiddb::Status;
using braiddb::WriteBatch;
using namespace braiddb::capi;

struct braiddb_ingestexternalfileoptions_t {
  BRAIDDB_C_MEMBERS(BRAIDDB_C_INGEST_OPTIONS)
};

struct braiddb_sstfilewriter_t {
  const braiddb::Comparator* comparator = braiddb::BytewiseComparator();
  std::string path;  // empty: no file is open
  WriteBatch updates;
  WriteBatch ranges;
  std::optional<std::string> last_key;
  uint64_t file_bytes = 0;  // of the last one that was finished
};

namespace {

constexpr char kMagic[8] = {'B', 'R', 'D', 'B', 'S', 'R', 'T', '1'};
constexpr size_t kHeaderBytes = sizeof kMagic + 2 * sizeof(uint64_t);

Status FileError(const std::string& path) { return Status::IOError(path + ": " + std::strerror(errno)); }

Status WriteFile(const std::string& path, Slice bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return FileError(path);
  Status status;
  while (status.ok() && !bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      status = FileError(path);
    }
  }
  if (status.ok() && fsync(fd) != 0) status = FileError(path);
  if (close(fd) != 0 && status.ok()) status = FileError(path);
  return status;
}

void AppendNumber(std::string* to, uint64_t number) { to->append(reinterpret_cast<const char*>(&number), sizeof number); }

uint64_t ReadNumber(const char* at) {
  uint64_t number;
  std::memcpy(&number, at, sizeof number);
  return number;
}

Status Add(braiddb_sstfilewriter_t* writer, Slice key, const Slice* value) {
  if (writer->path.empty()) return Status::InvalidArgument("no file is open");
  if (writer->last_key.has_value() && writer->comparator->Compare(*writer->last_key, key) >= 0)
    return Status::InvalidArgument("Keys must be added in strict ascending order.");
  if (key.size() > braiddb::kMaxKeySize || (value != nullptr && value->size() > braiddb::kMaxValueSize))
    return Status::InvalidArgument("a key or value is too long");
  return Guarded([&] {
    if (value != nullptr) {
      writer->updates.Put(key, *value);
    } else {
      writer->updates.Delete(key);
    }
    writer->last_key = std::string(key);
    return Status::OK();
  });
}

Status Finish(braiddb_sstfilewriter_t* writer) {
  if (writer->path.empty()) return Status::InvalidArgument("no file is open");
  if (writer->updates.Count() + writer->ranges.Count() == 0)
    return Status::InvalidArgument("Cannot create sst file with no entries");
  std::string bytes(kMagic, sizeof kMagic);
  AppendNumber(&bytes, writer->ranges.Data().size());
  AppendNumber(&bytes, writer->updates.Data().size());
  bytes += writer->ranges.Data();
  bytes += writer->updates.Data();
  AppendNumber(&bytes, XXH64(bytes.data(), bytes.size(), 0));
  const std::string path = std::exchange(writer->path, {});
  writer->file_bytes = bytes.size();
  return WriteFile(path, bytes);
}

// Adds what is in the file to the batch: its deletions of ranges do not touch its own keys.
Status ReadFile(const std::string& path, braiddb_writebatch_t* batch) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return FileError(path);
  if (!std::filesystem::is_regular_file(path)) return Status::IOError(path + ": not a regular file");
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (bytes.size() < kHeaderBytes + sizeof(uint64_t) || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
    return Status::Corruption(path + " is not a file of sorted keys of this program");
  const Slice checked = Slice(bytes).substr(0, bytes.size() - sizeof(uint64_t));
  if (XXH64(checked.data(), checked.size(), 0) != ReadNumber(bytes.data() + checked.size()))
    return Status::Corruption(path + ": its checksum does not match");
  const uint64_t ranges_length = ReadNumber(bytes.data() + sizeof kMagic);
  if (ranges_length > checked.size() - kHeaderBytes) return Status::Corruption(path + ": its lengths are wrong");
  WriteBatch ranges;
  WriteBatch updates;
  Status status = WriteBatch::FromData(checked.substr(kHeaderBytes, ranges_length), &ranges);
  if (status.ok()) status = WriteBatch::FromData(checked.substr(kHeaderBytes + ranges_length), &updates);
  if (!status.ok()) return status;

  struct AddRanges : WriteBatch::Handler {
    braiddb_writebatch_t* to;
    void Put(Slice start, Slice limit) override { to->DeleteRange(start, limit); }
    void Delete(Slice) override {}
  } add_ranges;
  add_ranges.to = batch;
  struct AddUpdates : WriteBatch::Handler {
    braiddb_writebatch_t* to;
    void Put(Slice key, Slice value) override { to->Put(key, value); }
    void Delete(Slice key) override { to->Delete(key); }
  } add_updates;
  add_updates.to = batch;
  status = ranges.Iterate(&add_ranges);
  return status.ok() ? updates.Iterate(&add_updates) : status;
}

// All files or none.
Status Ingest(braiddb_t* db, const char* const* paths, size_t count, const braiddb_ingestexternalfileoptions_t* options) {
  if (options->ingest_behind != 0) return Status::NotSupported("taking in files behind all that is there");
  braiddb_writebatch_t batch;
  for (size_t i = 0; i < count; ++i) {
    if (Status status = ReadFile(paths[i], &batch); !status.ok()) return status;
  }
  braiddb::WriteOptions write;
  if (Status status = WriteBatchTo(db, write, batch); !status.ok()) return status;
  for (size_t i = 0; options->move_files != 0 && i < count; ++i) (void)std::remove(paths[i]);
  return Status::OK();
}

}  // namespace

// ---- Writing

braiddb_sstfilewriter_t* braiddb_sstfilewriter_create(const braiddb_envoptions_t*, const braiddb_options_t* options) {
  auto* const writer = new braiddb_sstfilewriter_t;
  if (options->comparator != nullptr) writer->comparator = options->comparator;
  return writer;
}

braiddb_sstfilewriter_t* braiddb_sstfilewriter_create_with_comparator(const braiddb_envoptions_t* env_options,
                                                                      const braiddb_options_t* options,
                                                                      const braiddb_comparator_t* comparator) {
  braiddb_sstfilewriter_t* const writer = braiddb_sstfilewriter_create(env_options, options);
  if (comparator != nullptr) writer->comparator = comparator;
  return writer;
}

void braiddb_sstfilewriter_destroy(braiddb_sstfilewriter_t* writer) { delete writer; }

void braiddb_sstfilewriter_open(braiddb_sstfilewriter_t* writer, const char* path, char** errptr) {
  writer->updates.Clear();
  writer->ranges.Clear();
  writer->last_key.reset();
  SaveError(errptr, Guarded([&] {
              writer->path = path;
              return WriteFile(writer->path, {});  // what cannot be written is told now
            }));
}

void braiddb_sstfilewriter_put(braiddb_sstfilewriter_t* writer, const char* key, size_t key_length, const char* value,
                               size_t value_length, char** errptr) {
  const Slice bytes(value, value_length);
  SaveError(errptr, Add(writer, {key, key_length}, &bytes));
}

void braiddb_sstfilewriter_add(braiddb_sstfilewriter_t* writer, const char* key, size_t key_length, const char* value,
                               size_t value_length, char** errptr) {
  braiddb_sstfilewriter_put(writer, key, key_length, value, value_length, errptr);
}

void braiddb_sstfilewriter_delete(braiddb_sstfilewriter_t* writer, const char* key, size_t key_length, char** errptr) {
  SaveError(errptr, Add(writer, {key, key_length}, nullptr));
}

void braiddb_sstfilewriter_delete_range(braiddb_sstfilewriter_t* writer, const char* start_key, size_t start_key_length,
                                        const char* limit_key, size_t limit_key_length, char** errptr) {
  SaveError(errptr, Guarded([&] {
              if (writer->path.empty()) return Status::InvalidArgument("no file is open");
              writer->ranges.Put({start_key, start_key_length}, {limit_key, limit_key_length});
              return Status::OK();
            }));
}

void braiddb_sstfilewriter_merge(braiddb_sstfilewriter_t*, const char*, size_t, const char*, size_t, char** errptr) {
  SaveNotImplemented(errptr, __func__, kNoMerge);
}

void braiddb_sstfilewriter_finish(braiddb_sstfilewriter_t* writer, char** errptr) {
  SaveError(errptr, Guarded([&] { return Finish(writer); }));
}

void braiddb_sstfilewriter_file_size(braiddb_sstfilewriter_t* writer, uint64_t* size) {
  *size = writer->path.empty() ? writer->file_bytes : kHeaderBytes + writer->ranges.Data().size() + writer->updates.Data().size();
}

// ---- Taking in

braiddb_ingestexternalfileoptions_t* braiddb_ingestexternalfileoptions_create() {
  return new braiddb_ingestexternalfileoptions_t;
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
  SaveError(errptr, Guarded([&] { return Ingest(db, paths, count, options); }));
}
