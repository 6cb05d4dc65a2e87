#include "util/local_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <utility>

#include "util/file.h"

namespace braiddb {

namespace {

// Appends the descriptors of a received message.
void TakeDescriptors(msghdr* header, std::vector<int>* descriptors) {
  for (cmsghdr* part = CMSG_FIRSTHDR(header); part != nullptr; part = CMSG_NXTHDR(header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      descriptors->push_back(fd);
    }
  }
}

void CloseAll(std::vector<int>* descriptors) {
  for (const int fd : *descriptors) close(fd);
  descriptors->clear();
}

// Calls `attempt`, which returns 0 or -1, again if a signal interrupts the call. Returns 0 or an errno; EAGAIN if signals have
// interrupted the calls for longer than `patience`.
template <class Attempt>
int RetryInterrupted(std::chrono::seconds patience, const Attempt& attempt) {
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    if (attempt() == 0) return 0;
    if (errno != EINTR) return errno;
    if (std::chrono::steady_clock::now() >= end) return EAGAIN;
  }
}

}  // namespace

Status LocalClient::Connect(const std::string& directory, const std::string& name, std::unique_ptr<LocalClient>* client) {
  LocalAddress address;
  if (Status status = LocalAddress::Resolve(directory, name, &address); !status.ok()) return status;
  UnsharedDescriptor connection([] { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0); });
  if (!connection.is_open()) return StatusFromErrno(errno, "cannot create a socket for " + address.path());
  // Limits connect(2) and sendmsg(2).
  const timeval patience = {kPatienceSeconds, 0};
  if (setsockopt(connection.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0)
    return StatusFromErrno(errno, "cannot set up the socket for " + address.path());
  const int error = RetryInterrupted(std::chrono::seconds(kPatienceSeconds),
                                     [&] { return connect(connection.get(), address.data(), LocalAddress::size()); });
  if (error == ECONNREFUSED) return Status::NotFound("no process listens at " + address.path());
  if (error == EACCES || error == EPERM)
    return Status::Busy("the process that listens at " + address.path() + " belongs to another user; run as that user");
  if (error == EAGAIN)
    return Status::Busy("the process that listens at " + address.path() + " accepts no connection; retry later");
  if (error != 0) return address.Error(error, "cannot connect to");
  client->reset(new LocalClient(std::move(connection), address.path()));
  return Status::OK();
}

Status LocalClient::Gone() const {
  return Status::Aborted("the process that listened at " + path_ + " has closed the connection");
}

Status LocalClient::Send(std::string_view message, Waits waits) {
  if (message.empty() || message.size() > kMaxMessage)
    return Status::InvalidArgument("a message cannot have " + std::to_string(message.size()) + " bytes");
  const int fd = connection_.get();
  if (fd < 0) return Gone();
  const int flags = MSG_NOSIGNAL | (waits == Waits::kNo ? MSG_DONTWAIT : 0);
  const int error = RetryInterrupted(std::chrono::seconds(kPatienceSeconds),
                                     [&] { return send(fd, message.data(), message.size(), flags) < 0 ? -1 : 0; });
  if (error == EPIPE || error == ECONNRESET) return Gone();
  if (error == EAGAIN) return Status::TimedOut("the process that listens at " + path_ + " reads no messages; retry later");
  return error == 0 ? Status::OK() : StatusFromErrno(error, "cannot send to " + path_);
}

Status LocalClient::Receive(int timeout_ms, std::string* message, std::vector<int>* descriptors) {
  message->clear();
  std::vector<int> received;
  if (descriptors != nullptr) received.reserve(kMaxLocalDescriptors);
  if (descriptors != nullptr) descriptors->clear();
  const int fd = connection_.get();
  if (fd < 0) return Gone();

  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(std::max(timeout_ms, 0));
  char buffer[kMaxMessage];
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxLocalDescriptors * sizeof(int))];
  for (;;) {
    iovec data = {buffer, sizeof buffer};
    msghdr header = {};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t bytes = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (bytes >= 0) {
      TakeDescriptors(&header, &received);
      if (descriptors == nullptr || bytes == 0 || (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) CloseAll(&received);
      if (bytes == 0) return Gone();  // a server sends no empty message
      if ((header.msg_flags & MSG_TRUNC) != 0) return Status::Corruption("a message from " + path_ + " is too long");
      if ((header.msg_flags & MSG_CTRUNC) != 0)
        return Status::IOError("cannot receive the open files from " + path_ +
                               ": too many open files; raise the limit (ulimit -n)");
      message->assign(buffer, static_cast<size_t>(bytes));
      if (descriptors != nullptr) descriptors->swap(received);
      return Status::OK();
    }
    if (errno == EINTR) continue;
    if (errno == ECONNRESET) return Gone();
    if (errno != EAGAIN) return StatusFromErrno(errno, "cannot receive from " + path_);

    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (timeout_ms >= 0 && left <= 0) return Status::TimedOut("no message came from " + path_);
    pollfd readable = {fd, POLLIN, 0};
    const int ready = poll(&readable, 1, timeout_ms < 0 ? -1 : static_cast<int>(std::min<long long>(left, INT_MAX)));
    if (ready < 0 && errno != EINTR) return StatusFromErrno(errno, "cannot wait for a message from " + path_);
  }
}

void LocalClient::Shutdown() {
  if (const int fd = connection_.get(); fd >= 0) (void)shutdown(fd, SHUT_RDWR);
}

bool LocalClient::IsClosed() const {
  const int fd = connection_.get();
  if (fd < 0) return true;
  pollfd state = {fd, POLLRDHUP, 0};
  int ready;
  do ready = poll(&state, 1, 0);
  while (ready < 0 && errno == EINTR);
  return ready != 0;
}

}  // namespace braiddb
