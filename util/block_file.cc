#include "util/block_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>

#include "util/file.h"

namespace braiddb {
namespace {

constexpr uint64_t kBufferBytes = 1 << 20;

struct BlockHeader {
  uint64_t bytes;
  uint64_t checksum;
};

}  // namespace

std::unique_ptr<BlockFileWriter> BlockFileWriter::Create(const std::string& path) {
  const int fd = OpenOwnFile(path, O_WRONLY | O_CREAT | O_TRUNC);
  return fd < 0 ? nullptr : std::unique_ptr<BlockFileWriter>(new BlockFileWriter(fd));
}

std::unique_ptr<BlockFileWriter> BlockFileWriter::Open(const std::string& path) {
  const int fd = OpenOwnFile(path, O_WRONLY);
  return fd < 0 ? nullptr : std::unique_ptr<BlockFileWriter>(new BlockFileWriter(fd));
}

BlockFileWriter::~BlockFileWriter() { close(fd_); }

void BlockFileWriter::WriteAt(uint64_t offset, const void* data, uint64_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0 && error_ == 0) {
    const ssize_t written = pwrite(fd_, from, bytes, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      error_ = written < 0 ? errno : EIO;
      return;
    }
    from += written;
    offset += static_cast<uint64_t>(written);
    bytes -= static_cast<uint64_t>(written);
  }
}

void BlockFileWriter::WriteBuffer() {
  WriteAt(offset_ - buffer_.size(), buffer_.data(), buffer_.size());
  buffer_.clear();
}

void BlockFileWriter::Append(const void* data, uint64_t bytes) {
  if (buffer_.size() + bytes > kBufferBytes) WriteBuffer();
  if (bytes > kBufferBytes) {
    WriteAt(offset_, data, bytes);
  } else if (bytes > 0) {
    buffer_.insert(buffer_.end(), static_cast<const char*>(data), static_cast<const char*>(data) + bytes);
  }
  offset_ += bytes;
}

void BlockFileWriter::AppendBlock(const void* data, uint64_t bytes) {
  const BlockHeader header{bytes, XXH3_64bits(data, bytes)};
  Append(&header, sizeof header);
  Append(data, bytes);
}

void BlockFileWriter::ReplaceBlock(uint64_t offset, const void* data, uint64_t bytes) {
  WriteBuffer();
  const BlockHeader header{bytes, XXH3_64bits(data, bytes)};
  WriteAt(offset, &header, sizeof header);
  WriteAt(offset + sizeof header, data, bytes);
}

int BlockFileWriter::Finish() {
  WriteBuffer();
  return error_;
}

std::unique_ptr<BlockFileReader> BlockFileReader::Open(const std::string& path) {
  const int fd = OpenOwnFile(path, O_RDONLY);
  if (fd < 0) return nullptr;
  struct stat file;
  if (fstat(fd, &file) == 0)
    return std::unique_ptr<BlockFileReader>(new BlockFileReader(fd, static_cast<uint64_t>(file.st_size)));
  close(fd);
  return nullptr;
}

BlockFileReader::~BlockFileReader() { close(fd_); }

bool BlockFileReader::Read(uint64_t offset, void* data, uint64_t bytes) const {
  auto* to = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t read = pread(fd_, to, bytes, static_cast<off_t>(offset));
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) return false;
    to += read;
    offset += static_cast<uint64_t>(read);
    bytes -= static_cast<uint64_t>(read);
  }
  return true;
}

bool BlockFileReader::SizeOf(uint64_t offset, uint64_t* bytes) const {
  BlockHeader header;
  if (!Read(offset, &header, sizeof header)) return false;
  *bytes = header.bytes;
  return header.bytes <= bytes_ - std::min(bytes_, offset + sizeof header);
}

bool BlockFileReader::ReadBlock(uint64_t* offset, void* data, uint64_t bytes) const {
  BlockHeader header;
  if (!Read(*offset, &header, sizeof header) || header.bytes != bytes || !Read(*offset + sizeof header, data, bytes))
    return false;
  *offset += sizeof header + bytes;
  return XXH3_64bits(data, bytes) == header.checksum;
}

}  // namespace braiddb
