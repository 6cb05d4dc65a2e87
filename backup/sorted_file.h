// Sorted file: a file of updates in key order. Backups and ingested files have this format.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "braiddb/backup.h"
#include "db/timestamped_entry.h"

namespace braiddb {

// LAYOUT (little endian)
//   header    magic u64 "BRADSST1", comparator's name [64] zero-terminated, checksum u64 of both
//   blocks    bytes u32, count u32, checksum u64 of the updates, seeded with the block's number; then the updates, in the form of
//             WriteBatch::Data
//   ranges    deleted ranges, as updates that put the end of the range under its start
//   metadata  any bytes
//   footer    magic u64 "BRADEND1", entries u64, blocks u64, ranges_at u64, ranges_bytes u64, metadata_bytes u64, checksum u64 of
//             ranges and metadata, checksum u64 of the footer before it
// COMMIT POINT  The file is written under a temporary name and renamed when it is durable. All checksums are 64-bit XXH3.
struct SortedFileFooter {
  uint64_t magic;
  uint64_t entries;
  uint64_t blocks;
  uint64_t ranges_at;
  uint64_t ranges_bytes;
  uint64_t metadata_bytes;
  uint64_t metadata_check;
  uint64_t checksum;
};
static_assert(sizeof(SortedFileFooter) == 64);

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FileHandle = std::unique_ptr<std::FILE, FileCloser>;

class SortedFileWriterImpl final : public SortedFileWriter {
 public:
  static Status Create(const std::string& path, const Comparator* comparator, std::unique_ptr<SortedFileWriterImpl>* writer);
  ~SortedFileWriterImpl() override;

  Status Put(Slice key, Slice value) override;
  Status Delete(Slice key) override;
  Status DeleteRange(Slice start, Slice limit) override;
  Status Merge(Slice key, Slice operand) override;
  Status Finish() override;
  uint64_t FileSize() const override { return bytes_; }
  Status PutAt(Slice key, Slice timestamp, Slice value) override { return AddVersion(key, timestamp, value, VersionKind::kPut); }
  Status DeleteAt(Slice key, Slice timestamp) override { return AddVersion(key, timestamp, Slice(), VersionKind::kDelete); }

  // Later updates belong to another column family, and its keys start from the smallest again. Used only in backups.
  void BeginFamily(const ColumnFamilyHandle& family);
  // Finishes the file. The file may have no updates.
  Status FinishWith(Slice metadata);

 private:
  friend class SortedFileWriter;
  SortedFileWriterImpl(const std::string& path, const Comparator* comparator) : path_(path), comparator_(comparator) {}

  std::string TemporaryPath() const { return path_ + ".tmp"; }
  Status CheckKey(Slice key, Slice value);
  // Adds a put of the engine.
  Status AddPut(Slice key, Slice value);
  // Adds an entry of a family with timestamps.
  Status AddVersion(Slice key, Slice timestamp, Slice value, VersionKind kind);
  // An error if the user has to give timestamps.
  Status CheckUser() const;
  Status Added(Slice key);
  Status WriteBlock();
  Status WriteBytes(const void* data, size_t bytes);

  const std::string path_;
  const Comparator* comparator_;
  bool is_users_ = false;  // a user adds updates; else a backup adds stored entries
  uint32_t family_ = 0;
  FileHandle file_;
  bool is_made_ = false;  // this writer has created the temporary file
  WriteBatch block_;
  WriteBatch ranges_;
  std::string last_key_;
  bool has_last_ = false;  // last_key_ is a key of the current family
  uint64_t entries_ = 0;
  uint64_t blocks_ = 0;
  uint64_t bytes_ = 0;
  Status status_;  // first error of the writes
  bool finished_ = false;
};

class SortedFileReader {
 public:
  // Reads header, footer, and metadata. Returns Corruption if the file is not a complete sorted file.
  static Status Open(const std::string& path, std::unique_ptr<SortedFileReader>* reader);

  const std::string& comparator_name() const { return comparator_name_; }
  // Deleted ranges, each as an update that puts the range's end under its start.
  const WriteBatch& ranges() const { return ranges_; }
  const std::string& metadata() const { return metadata_; }
  uint64_t entries() const { return footer_.entries; }
  uint64_t file_bytes() const { return footer_.ranges_at + footer_.ranges_bytes + footer_.metadata_bytes + sizeof footer_; }
  // Reads the updates of the next block. At the end *batch is empty.
  Status ReadBlock(WriteBatch* batch);

 private:
  explicit SortedFileReader(const std::string& path) : path_(path) {}

  Status ReadBytes(void* data, size_t bytes);
  Status ReadEnd(uint64_t size);
  Status ReadHeader();
  Status Damaged(const char* what) const;

  const std::string path_;
  FileHandle file_;
  SortedFileFooter footer_{};
  std::string comparator_name_;
  WriteBatch ranges_;
  std::string metadata_;
  std::string data_;
  uint64_t position_ = 0;
  uint64_t blocks_ = 0;
  uint64_t entries_ = 0;
};

}  // namespace braiddb
