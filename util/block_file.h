// BlockFile: a file of blocks with checksums, for data that a process can also make anew.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace braiddb {

// Writes a new file from its beginning to its end. Nothing is synced: a reader finds out that a block is not as it was written.
// LAYOUT  A block is its number of bytes u64, the XXH3 of its bytes u64, and the bytes. Bytes without a block (Append) may lie
//         between blocks; their checksums are the writer's matter.
// Thread safety: none.
class BlockFileWriter {
 public:
  // Creates the file, or empties it. Null, and errno, if the system refuses.
  static std::unique_ptr<BlockFileWriter> Create(const std::string& path);
  // Opens a file that exists, for ReplaceBlock only. Null, and errno, if the system refuses.
  static std::unique_ptr<BlockFileWriter> Open(const std::string& path);
  ~BlockFileWriter();
  BlockFileWriter(const BlockFileWriter&) = delete;
  BlockFileWriter& operator=(const BlockFileWriter&) = delete;

  void Append(const void* data, uint64_t bytes);
  void AppendBlock(const void* data, uint64_t bytes);
  template <class T>
  void AppendBlock(const std::vector<T>& array) {
    AppendBlock(array.data(), array.size() * sizeof(T));
  }
  // Replaces a block of the same size that was written before.
  void ReplaceBlock(uint64_t offset, const void* data, uint64_t bytes);
  // Where the next byte will lie.
  uint64_t offset() const { return offset_; }
  // Writes what is buffered. Returns 0, or the errno of the first call that failed.
  int Finish();

 private:
  explicit BlockFileWriter(int fd) : fd_(fd) {}
  void WriteAt(uint64_t offset, const void* data, uint64_t bytes);
  void WriteBuffer();

  const int fd_;
  uint64_t offset_ = 0;  // the buffer's bytes included
  std::vector<char> buffer_;
  int error_ = 0;
};

// Reads such a file. Sizes in the file are not trusted.
// Thread safety: all methods may be called concurrently.
class BlockFileReader {
 public:
  // Null if there is no such file, or if the system refuses.
  static std::unique_ptr<BlockFileReader> Open(const std::string& path);
  ~BlockFileReader();
  BlockFileReader(const BlockFileReader&) = delete;
  BlockFileReader& operator=(const BlockFileReader&) = delete;

  uint64_t bytes() const { return bytes_; }
  // Reads these bytes. False: the file ends before, or the system refuses.
  bool Read(uint64_t offset, void* data, uint64_t bytes) const;
  // The same of a block with exactly so many bytes, whose checksum must be right. Then *offset is behind the block.
  bool ReadBlock(uint64_t* offset, void* data, uint64_t bytes) const;
  // The same of a block of elements, however many. May throw std::bad_alloc.
  template <class T>
  bool ReadBlock(uint64_t* offset, std::vector<T>* array) const {
    uint64_t bytes = 0;
    if (!SizeOf(*offset, &bytes) || bytes % sizeof(T) != 0) return false;
    array->resize(bytes / sizeof(T));
    return ReadBlock(offset, array->data(), bytes);
  }

 private:
  BlockFileReader(int fd, uint64_t bytes) : fd_(fd), bytes_(bytes) {}
  // The size of the block there. False: no block of this size fits into the file.
  bool SizeOf(uint64_t offset, uint64_t* bytes) const;

  const int fd_;
  const uint64_t bytes_;
};

}  // namespace braiddb
