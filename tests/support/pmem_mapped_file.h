// Test support: a small file, mapped shared.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace braiddb::test {

inline constexpr size_t kFileBytes = 1 << 20;

// A file of kFileBytes, mapped shared.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) : fd_(open(path.c_str(), O_RDWR | O_CREAT, 0600)) {
    if (ftruncate(fd_, kFileBytes) != 0) abort();
    data_ = static_cast<char*>(mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
  }
  ~MappedFile() {
    munmap(data_, kFileBytes);
    close(fd_);
  }
  char* data() const { return data_; }

 private:
  int fd_;
  char* data_;
};

}  // namespace braiddb::test
