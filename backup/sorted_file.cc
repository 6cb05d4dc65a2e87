#include "backup/sorted_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "db/no_memory.h"
#include "util/comparator_name.h"
#include "util/file.h"

namespace braiddb {
namespace {

constexpr uint64_t kMagic = 0x3154535344415242;     // "BRADSST1"
constexpr uint64_t kEndMagic = 0x31444e4544415242;  // "BRADEND1"
constexpr size_t kBlockBytes = 64ull << 10;

struct Header {
  uint64_t magic;
  char comparator[kMaxComparatorName + 1];
  uint64_t checksum;
};
struct BlockHeader {
  uint32_t bytes;
  uint32_t count;
  uint64_t checksum;
};
static_assert(sizeof(Header) == 80 && sizeof(BlockHeader) == 16);

uint64_t CheckOf(const Header& header) { return XXH3_64bits(&header, offsetof(Header, checksum)); }
uint64_t CheckOf(Slice ranges, Slice metadata) {
  return XXH3_64bits_withSeed(metadata.data(), metadata.size(), XXH3_64bits(ranges.data(), ranges.size()));
}
uint64_t CheckOf(const SortedFileFooter& footer) { return XXH3_64bits(&footer, offsetof(SortedFileFooter, checksum)); }

// Whether `path` has no file, or only the unfinished output of an interrupted writer.
bool IsLeftover(const std::string& path) {
  std::error_code error;
  const auto kind = std::filesystem::symlink_status(path, error).type();
  if (kind == std::filesystem::file_type::not_found) return true;
  uint64_t magic = 0;
  std::ifstream file(path, std::ios::binary);
  if (kind != std::filesystem::file_type::regular || !file) return false;
  file.read(reinterpret_cast<char*>(&magic), sizeof magic);
  return file.gcount() == 0 || magic == kMagic;
}

}  // namespace

// ---- Writing

Status SortedFileWriterImpl::Create(const std::string& path, const Comparator* comparator,
                                    std::unique_ptr<SortedFileWriterImpl>* writer) {
  std::unique_ptr<SortedFileWriterImpl> result(new SortedFileWriterImpl(path, comparator));
  Header header{};
  header.magic = kMagic;
  const std::string name = StoredName(*comparator);
  std::memcpy(header.comparator, name.data(), name.size());
  header.checksum = CheckOf(header);
  const std::string temporary = result->TemporaryPath();
  if (!IsLeftover(temporary)) {
    return Status::InvalidArgument(temporary + " is in the way, and is no sorted file that was cut short; move it elsewhere");
  }
  if (Status status = RemoveFile(temporary); !status.ok()) return status;
  const int fd = OpenOwnFile(temporary, O_WRONLY | O_CREAT | O_EXCL);
  if (fd < 0) return StatusFromErrno(errno, temporary);
  result->is_made_ = true;
  result->file_.reset(fdopen(fd, "wb"));
  if (result->file_ == nullptr) {
    close(fd);
    return StatusFromErrno(errno, temporary);
  }
  Status status = result->WriteBytes(&header, sizeof header);
  if (status.ok()) *writer = std::move(result);
  return status;
}

Status SortedFileWriter::Create(const std::string& path, const Comparator* comparator,
                                std::unique_ptr<SortedFileWriter>* writer) {
  std::unique_ptr<SortedFileWriterImpl> result;
  Status status = SortedFileWriterImpl::Create(path, comparator, &result);
  if (status.ok()) result->is_users_ = true;
  *writer = std::move(result);
  return status;
}

SortedFileWriterImpl::~SortedFileWriterImpl() {
  if (finished_ || !is_made_) return;
  file_.reset();
  (void)RemoveFile(TemporaryPath());
}

void SortedFileWriterImpl::BeginFamily(const ColumnFamilyHandle& family) {
  comparator_ = family.GetOptions().comparator;
  family_ = family.GetID();
  has_last_ = false;
}

Status SortedFileWriterImpl::CheckKey(Slice key, Slice value) {
  if (finished_) return Status::InvalidArgument("the file is finished");
  if (key.size() > kMaxKeySize) return Status::InvalidArgument("a key of more than 65536 bytes");
  if (value.size() > kMaxValueSize) return Status::InvalidArgument("a value of more than 1 GiB");
  if (has_last_ && comparator_->Compare(last_key_, key) >= 0) {
    return Status::InvalidArgument("keys must be added in ascending order, each once");
  }
  return status_;
}

Status SortedFileWriterImpl::CheckUser() const {
  if (!is_users_ || !HasTimestamps(comparator_)) return Status::OK();
  return Status::InvalidArgument("the comparator has timestamps; use PutAt and DeleteAt");
}

Status SortedFileWriterImpl::Put(Slice key, Slice value) {
  const Status status = CheckUser();
  return status.ok() ? AddPut(key, value) : status;
}

Status SortedFileWriterImpl::AddVersion(Slice key, Slice timestamp, Slice value, VersionKind kind) try {
  if (!HasTimestamps(comparator_)) return Status::InvalidArgument("the comparator has no timestamps; use Put and Delete");
  const Status status = CheckTimestampSize(*comparator_, timestamp);
  return status.ok() ? AddPut(StoredKey(key, timestamp), StoredValue(value, kind)) : status;
} catch (const std::bad_alloc&) {
  return status_ = NoMemory();
}

Status SortedFileWriterImpl::AddPut(Slice key, Slice value) try {
  Status status = CheckKey(key, value);
  if (!status.ok()) return status;
  block_.PutCF(family_, key, value);
  return Added(key);
} catch (const std::bad_alloc&) {
  return status_ = NoMemory();
}

Status SortedFileWriterImpl::Delete(Slice key) try {
  Status status = CheckUser();
  if (status.ok()) status = CheckKey(key, Slice());
  if (!status.ok()) return status;
  block_.Delete(key);
  return Added(key);
} catch (const std::bad_alloc&) {
  return status_ = NoMemory();
}

Status SortedFileWriterImpl::DeleteRange(Slice start, Slice limit) try {
  if (finished_) return Status::InvalidArgument("the file is finished");
  if (Status status = CheckUser(); !status.ok()) return status;
  if (start.size() > kMaxKeySize || limit.size() > kMaxKeySize)
    return Status::InvalidArgument("a range with a key of more than 65536 bytes");
  const int order = comparator_->Compare(start, limit);
  if (order > 0) return Status::InvalidArgument("a range whose limit is before its start");
  if (order < 0) ranges_.Put(start, limit);
  return status_;
} catch (const std::bad_alloc&) {
  return status_ = NoMemory();
}

Status SortedFileWriterImpl::Merge(Slice key, Slice operand) try {
  Status status = CheckUser();
  if (status.ok()) status = CheckKey(key, operand);
  if (!status.ok()) return status;
  block_.Merge(key, operand);
  return Added(key);
} catch (const std::bad_alloc&) {
  return status_ = NoMemory();
}

Status SortedFileWriterImpl::Added(Slice key) {
  last_key_.assign(key);
  has_last_ = true;
  ++entries_;
  return block_.ApproximateSize() < kBlockBytes ? Status::OK() : WriteBlock();
}

Status SortedFileWriterImpl::WriteBlock() {
  const std::string& data = block_.Data();
  BlockHeader header{static_cast<uint32_t>(data.size()), block_.Count(), XXH3_64bits_withSeed(data.data(), data.size(), blocks_)};
  Status status = WriteBytes(&header, sizeof header);
  if (status.ok()) status = WriteBytes(data.data(), data.size());
  ++blocks_;
  block_.Clear();
  return status;
}

Status SortedFileWriterImpl::WriteBytes(const void* data, size_t bytes) {
  if (status_.ok() && bytes != 0 && std::fwrite(data, 1, bytes, file_.get()) != bytes) {
    status_ = StatusFromErrno(errno, TemporaryPath());
  }
  bytes_ += bytes;
  return status_;
}

Status SortedFileWriterImpl::Finish() {
  if (entries_ == 0 && ranges_.Count() == 0 && !finished_)
    return Status::InvalidArgument("a file without updates; add some, or make none");
  return FinishWith(Slice());
}

// ORDER: 1 the bytes are durable  2 the file gets its name  3 the name is durable.
Status SortedFileWriterImpl::FinishWith(Slice metadata) {
  if (finished_) return Status::InvalidArgument("the file is finished");
  if (block_.Count() > 0) (void)WriteBlock();
  const std::string& ranges = ranges_.Data();
  SortedFileFooter footer{kEndMagic, entries_, blocks_, bytes_, ranges.size(), metadata.size(), CheckOf(ranges, metadata), 0};
  footer.checksum = CheckOf(footer);
  (void)WriteBytes(ranges.data(), ranges.size());
  (void)WriteBytes(metadata.data(), metadata.size());
  Status status = WriteBytes(&footer, sizeof footer);
  if (status.ok() && (std::fflush(file_.get()) != 0 || fsync(fileno(file_.get())) != 0)) {
    status = status_ = StatusFromErrno(errno, "cannot write " + TemporaryPath());
  }
  if (!status.ok()) return status;
  file_.reset();
  if (std::rename(TemporaryPath().c_str(), path_.c_str()) != 0)
    return status_ = StatusFromErrno(errno, "cannot rename " + TemporaryPath() + " to " + path_);
  finished_ = true;
  const std::string parent = std::filesystem::path(path_).parent_path();
  status = SyncDir(parent.empty() ? "." : parent);
  if (!status.ok()) (void)RemoveFile(path_);  // its name may be gone after a power cut
  return status;
}

// ---- Reading

Status SortedFileReader::Damaged(const char* what) const {
  return Status::Corruption(path_ + ": " + what + "; it is not whole, or no file of this kind");
}

Status SortedFileReader::ReadBytes(void* data, size_t bytes) {
  if (bytes == 0 || std::fread(data, 1, bytes, file_.get()) == bytes) {
    position_ += bytes;
    return Status::OK();
  }
  return std::ferror(file_.get()) != 0 ? StatusFromErrno(errno, path_) : Damaged("the file ends too early");
}

Status SortedFileReader::Open(const std::string& path, std::unique_ptr<SortedFileReader>* reader) {
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  if (kind != std::filesystem::file_type::regular && kind != std::filesystem::file_type::not_found) {
    return Status::IOError(path + ": " + (error ? error.message() : "not a regular file"));
  }
  std::unique_ptr<SortedFileReader> result(new SortedFileReader(path));
  result->file_.reset(std::fopen(path.c_str(), "rb"));
  if (result->file_ == nullptr) return StatusFromErrno(errno, path);
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error) return Status::IOError(path + ": " + error.message());
  Status status = result->ReadEnd(size);
  if (status.ok()) status = result->ReadHeader();
  if (status.ok()) *reader = std::move(result);
  return status;
}

Status SortedFileReader::ReadEnd(uint64_t size) {
  if (size < sizeof(Header) + sizeof footer_) return Damaged("it is too short");
  if (std::fseek(file_.get(), -static_cast<long>(sizeof footer_), SEEK_END) != 0) return StatusFromErrno(errno, path_);
  if (Status status = ReadBytes(&footer_, sizeof footer_); !status.ok()) return status;
  if (footer_.magic != kEndMagic || footer_.checksum != CheckOf(footer_)) return Damaged("its end is damaged");
  // Checks each value separately first, because the sum may overflow.
  if (footer_.ranges_at < sizeof(Header) || footer_.ranges_at > size || footer_.ranges_bytes > size ||
      footer_.metadata_bytes > size || file_bytes() != size) {
    return Damaged("its length is wrong");
  }
  if (std::fseek(file_.get(), static_cast<long>(footer_.ranges_at), SEEK_SET) != 0) return StatusFromErrno(errno, path_);
  data_.resize(footer_.ranges_bytes);
  metadata_.resize(footer_.metadata_bytes);
  Status status = ReadBytes(data_.data(), data_.size());
  if (status.ok()) status = ReadBytes(metadata_.data(), metadata_.size());
  if (!status.ok()) return status;
  if (CheckOf(data_, metadata_) != footer_.metadata_check) return Damaged("its metadata is damaged");
  return WriteBatch::FromData(data_, &ranges_);
}

Status SortedFileReader::ReadHeader() {
  std::rewind(file_.get());
  position_ = 0;
  Header header;
  if (Status status = ReadBytes(&header, sizeof header); !status.ok()) return status;
  if (header.magic != kMagic || header.checksum != CheckOf(header)) return Damaged("its head is damaged");
  comparator_name_.assign(header.comparator, strnlen(header.comparator, sizeof header.comparator));
  return Status::OK();
}

Status SortedFileReader::ReadBlock(WriteBatch* batch) {
  batch->Clear();
  if (position_ == footer_.ranges_at) {
    return blocks_ == footer_.blocks && entries_ == footer_.entries ? Status::OK() : Damaged("blocks are missing");
  }
  BlockHeader header;
  if (Status status = ReadBytes(&header, sizeof header); !status.ok()) return status;
  if (position_ > footer_.ranges_at || header.bytes > footer_.ranges_at - position_) return Damaged("a block is damaged");
  data_.resize(header.bytes);
  if (Status status = ReadBytes(data_.data(), data_.size()); !status.ok()) return status;
  if (XXH3_64bits_withSeed(data_.data(), data_.size(), blocks_) != header.checksum) return Damaged("a block is damaged");
  Status status = WriteBatch::FromData(data_, batch);
  if (status.ok() && (batch->Count() != header.count || batch->Count() == 0)) status = Damaged("a block is damaged");
  ++blocks_;
  entries_ += header.count;
  return status;
}

}  // namespace braiddb
