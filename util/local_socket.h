// What both ends of a local connection share: limits and the address of a socket file.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <string>

#include "braiddb/status.h"
#include "util/unshared_descriptor.h"

namespace braiddb {

inline constexpr size_t kMaxLocalMessageBytes = 4096;
// Per message. Linux refuses more (SCM_MAX_FD).
inline constexpr size_t kMaxLocalDescriptors = 253;

// The address of the socket file `name` in `directory`. A path that is too long for a socket address (more than 107 bytes)
// becomes /proc/self/fd/<descriptor of the directory>/<name>, which needs a mounted /proc.
class LocalAddress {
 public:
  LocalAddress() = default;

  // InvalidArgument for an empty directory or a name that is empty, contains a slash, or has more than kMaxNameBytes bytes.
  // NotFound if the directory does not exist.
  static Status Resolve(const std::string& directory, const std::string& name, LocalAddress* address);

  const sockaddr* data() const { return static_cast<const sockaddr*>(static_cast<const void*>(&address_)); }
  static constexpr socklen_t size() { return sizeof(sockaddr_un); }
  // For fstatat(2) and unlinkat(2).
  int directory() const { return directory_.get(); }
  const std::string& name() const { return name_; }
  // The full path, for messages.
  const std::string& path() const { return path_; }
  // The status of a failed bind(2) or connect(2). `what`: "cannot listen at", for example.
  Status Error(int error, const char* what) const;

 private:
  static constexpr size_t kMaxNameBytes = 64;

  UnsharedDescriptor directory_;
  std::string name_;
  std::string path_;
  bool uses_proc_ = false;
  sockaddr_un address_ = {};
};

}  // namespace braiddb
