#include "util/local_socket.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "util/file.h"

namespace braiddb {

Status LocalAddress::Resolve(const std::string& directory, const std::string& name, LocalAddress* address) {
  if (directory.empty()) return Status::InvalidArgument("the directory of a socket file has no name");
  if (name.empty() || name.size() > kMaxNameBytes || name.find('/') != std::string::npos)
    return Status::InvalidArgument("a socket file cannot have the name \"" + name + "\"");
  LocalAddress result;
  result.name_ = name;
  result.path_ = directory + "/" + name;
  result.directory_ = UnsharedDescriptor([&] { return open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC); });
  if (!result.directory_.is_open()) return StatusFromErrno(errno, "cannot open the directory " + directory);

  std::string path = result.path_;
  result.uses_proc_ = path.size() >= sizeof result.address_.sun_path;
  if (result.uses_proc_) path = "/proc/self/fd/" + std::to_string(result.directory()) + "/" + name;
  result.address_.sun_family = AF_UNIX;
  memcpy(result.address_.sun_path, path.c_str(), path.size() + 1);
  *address = std::move(result);
  return Status::OK();
}

Status LocalAddress::Error(int error, const char* what) const {
  const std::string message = std::string(what) + " " + path_;
  if (uses_proc_ && error == ENOENT && access("/proc/self/fd", X_OK) != 0)
    return Status::IOError(message + ": the path is long, and /proc is not mounted; mount /proc or use a shorter path");
  return StatusFromErrno(error, message);
}

}  // namespace braiddb
