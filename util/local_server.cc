#include "util/local_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <utility>

#include "util/file.h"
#include "util/local_service.h"

namespace braiddb {

namespace {

constexpr int kBacklog = 128;
// Further attempts to create a socket file that another process creates at the same time.
constexpr int kMaxAttempts = 10;

// Removes a socket file. IOError if there is a file of another kind.
Status RemoveSocketFile(const LocalAddress& address) {
  struct stat found;
  if (fstatat(address.directory(), address.name().c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? Status::OK() : StatusFromErrno(errno, "cannot examine " + address.path());
  if (!S_ISSOCK(found.st_mode)) return Status::IOError(address.path() + " is not a socket; move it elsewhere");
  if (unlinkat(address.directory(), address.name().c_str(), 0) == 0 || errno == ENOENT) return Status::OK();
  return StatusFromErrno(errno, "cannot remove " + address.path());
}

}  // namespace

struct LocalServer::State {
  LocalAddress address;
  UnsharedDescriptor listener;
  bool has_file = false;
  // The socket file. The open listener keeps the inode, so that no other file gets its number.
  dev_t device = 0;
  ino_t inode = 0;
  LocalService* service = nullptr;
  LocalService::Server served;

  Status Listen();
  void RemoveOwnFile() const;
};

// Linux gives a socket file the permissions of its socket, less the umask. The file therefore never has wider permissions than
// 0600. The umask, which belongs to all threads, is not changed.
Status LocalServer::State::Listen() {
  constexpr mode_t kMode = S_IRUSR | S_IWUSR;
  listener = UnsharedDescriptor([] { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
  if (!listener.is_open()) return StatusFromErrno(errno, "cannot create a socket for " + address.path());
  if (fchmod(listener.get(), kMode) != 0) return StatusFromErrno(errno, "cannot set the permissions of " + address.path());
  for (int attempt = 1;; ++attempt) {
    if (Status status = RemoveSocketFile(address); !status.ok()) return status;
    if (bind(listener.get(), address.data(), LocalAddress::size()) == 0) break;
    if (errno != EADDRINUSE || attempt > kMaxAttempts) return address.Error(errno, "cannot create the socket file");
  }
  struct stat file;
  if (fstatat(address.directory(), address.name().c_str(), &file, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISSOCK(file.st_mode))
    return Status::IOError("the socket file " + address.path() + " was removed or replaced; retry");
  has_file = true;
  device = file.st_dev;
  inode = file.st_ino;
  if ((file.st_mode & ALLPERMS) != kMode && fchmodat(address.directory(), address.name().c_str(), kMode, 0) != 0)
    return StatusFromErrno(errno, "cannot set the permissions of " + address.path());
  if (listen(listener.get(), kBacklog) != 0) return StatusFromErrno(errno, "cannot listen at " + address.path());
  return Status::OK();
}

void LocalServer::State::RemoveOwnFile() const {
  struct stat found;
  if (!has_file || fstatat(address.directory(), address.name().c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (found.st_dev == device && found.st_ino == inode) (void)unlinkat(address.directory(), address.name().c_str(), 0);
}

LocalServer::LocalServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

Status LocalServer::Start(const std::string& directory, const std::string& name, Handler* handler,
                          std::unique_ptr<LocalServer>* server) {
  auto state = std::make_unique<State>();
  std::unique_ptr<LocalServer> result(new LocalServer(nullptr));
  Status status = LocalAddress::Resolve(directory, name, &state->address);
  if (!status.ok()) return status;
  state->service = &LocalService::OfThisProcess();
  const std::lock_guard lock(state->service->lifecycle());
  status = state->Listen();
  if (status.ok()) {
    state->served.handler = handler;
    state->served.owner = result.get();
    state->served.listener = state->listener.get();
    // The service thread may call the handler, which uses the server, before Add returns.
    result->state_ = std::move(state);
    // Without a state, the destructor has no server to end.
    const auto give_up = [&result] { std::exchange(result->state_, nullptr)->RemoveOwnFile(); };
    try {
      status = result->state_->service->Add(&result->state_->served);
    } catch (...) {
      give_up();
      throw;
    }
    if (!status.ok()) {
      give_up();
    } else {
      *server = std::move(result);
    }
    return status;
  }
  state->RemoveOwnFile();
  return status;
}

LocalServer::~LocalServer() {
  if (state_ == nullptr || !state_->service->is_of_this_process()) return;
  {
    const std::lock_guard lock(state_->service->lifecycle());
    state_->RemoveOwnFile();
  }
  state_->service->Remove(&state_->served);
  shutdown(state_->listener.get(), SHUT_RDWR);  // refuses connects also while a child, just forked, has a copy of the descriptor
}

bool LocalServer::Send(uint64_t connection, std::string_view message, std::span<const int> descriptors) {
  return state_->service->is_of_this_process() && state_->service->Send(state_->served, connection, message, descriptors);
}

void LocalServer::Disconnect(uint64_t connection) {
  if (state_->service->is_of_this_process()) state_->service->Disconnect(state_->served, connection);
}

uint32_t LocalServer::connections() const {
  return state_->service->is_of_this_process() ? state_->service->Connections(state_->served) : 0;
}

}  // namespace braiddb
