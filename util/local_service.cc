#include "util/local_service.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "util/check.h"
#include "util/file.h"

namespace braiddb {

namespace {

using std::chrono::steady_clock;

constexpr uint64_t kEventId = 0;
constexpr int kEventsPerWait = 64;
// A flood of connections to one server delays the messages of others by this number of accepts.
constexpr int kAcceptsPerEvent = 16;
// How long a server accepts no connection after the process ran out of descriptors or memory.
constexpr std::chrono::milliseconds kAcceptPause(100);

std::atomic<LocalService*> current_service{nullptr};

// Blocks all signals in the calling thread, and so in the threads that it creates, except those that a thread raises itself by a
// fault.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t signals;
    sigfillset(&signals);
    for (const int fault : {SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP}) sigdelset(&signals, fault);
    pthread_sigmask(SIG_SETMASK, &signals, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

int ControlEvents(int epoll, int operation, int fd, uint64_t id, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = id;
  return epoll_ctl(epoll, operation, fd, &event) == 0 ? 0 : errno;
}

// Returns 0 or an errno.
int SendWithDescriptors(int socket, std::string_view message, std::span<const int> descriptors) {
  if (message.empty() || message.size() > kMaxLocalMessageBytes || descriptors.size() > kMaxLocalDescriptors) return EMSGSIZE;
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxLocalDescriptors * sizeof(int))] = {};
  iovec data = {const_cast<char*>(message.data()), message.size()};
  msghdr header = {};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    memcpy(CMSG_DATA(part), descriptors.data(), descriptors.size_bytes());
  }
  while (sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

LocalService::LocalService(LocalService* parents) : parents_(parents) {}

LocalService& LocalService::OfThisProcess() {
  LocalService* found = current_service.load(std::memory_order_acquire);  // pairs with the exchange
  while (found == nullptr || !found->is_of_this_process()) {
    auto* const created = new LocalService(found);
    if (current_service.compare_exchange_strong(found, created, std::memory_order_acq_rel)) return *created;
    delete created;
  }
  return *found;
}

Status LocalService::StartThread() {
  epoll_ = UnsharedDescriptor([] { return epoll_create1(EPOLL_CLOEXEC); });
  if (!epoll_.is_open()) return StatusFromErrno(errno, "cannot create an epoll instance");
  event_ = UnsharedDescriptor([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
  if (!event_.is_open()) return StatusFromErrno(errno, "cannot create an eventfd");
  if (const int error = ControlEvents(epoll_.get(), EPOLL_CTL_ADD, event_.get(), kEventId, EPOLLIN); error != 0)
    return StatusFromErrno(error, "cannot wait for an eventfd");
  stops_ = false;
  const BlockedSignals blocked;
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error& error) {
    return StatusFromErrno(error.code().value(), "cannot start the thread that serves connections");
  }
  return Status::OK();
}

void LocalService::StopThread() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stops_ = true;
    }
    Wake();
    thread_.join();
  }
  event_.Close();
  epoll_.Close();
}

Status LocalService::Add(Server* server) try {
  Status status;
  if (servers_with_thread_ == 0) status = StartThread();
  if (status.ok()) status = AddToThread(server);
  if (status.ok()) {
    ++servers_with_thread_;
  } else if (servers_with_thread_ == 0) {
    StopThread();
  }
  return status;
} catch (...) {
  if (servers_with_thread_ == 0) StopThread();
  throw;
}

Status LocalService::AddToThread(Server* server) {
  const std::lock_guard lock(mutex_);
  servers_.emplace(last_id_ + 1, server);
  server->id = ++last_id_;
  const int error = ControlEvents(epoll_.get(), EPOLL_CTL_ADD, server->listener, server->id, EPOLLIN);
  if (error == 0) return Status::OK();
  servers_.erase(std::exchange(server->id, 0));
  return StatusFromErrno(error, "cannot wait for connections");
}

void LocalService::Remove(Server* server) {
  BRAIDDB_CHECK(!IsServiceThread());
  {
    std::unique_lock lock(mutex_);
    server->is_closing = true;
    Wake();
    server_removed_.wait(lock, [server] { return server->id == 0; });
  }
  const std::lock_guard lock(lifecycle_);
  if (--servers_with_thread_ == 0) StopThread();
}

void LocalService::Wake() {
  const uint64_t one = 1;
  // Fails only if the counter is full; then the thread wakes as well.
  [[maybe_unused]] const ssize_t written = write(event_.get(), &one, sizeof one);
}

bool LocalService::Send(const Server& server, uint64_t id, std::string_view message, std::span<const int> descriptors) {
  const std::lock_guard lock(mutex_);
  const auto found = connections_.find(id);
  if (found == connections_.end() || found->second.server != &server || found->second.is_ending) return false;
  Connection& connection = found->second;
  if (SendWithDescriptors(connection.socket.get(), message, descriptors) == 0) return true;
  connection.is_ending = true;
  shutdown(connection.socket.get(), SHUT_RDWR);
  return false;
}

void LocalService::Disconnect(const Server& server, uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = connections_.find(id);
  if (found == connections_.end() || found->second.server != &server) return;
  found->second.is_ending = true;
  shutdown(found->second.socket.get(), SHUT_RDWR);
}

uint32_t LocalService::Connections(const Server& server) {
  const std::lock_guard lock(mutex_);
  return server.connections;
}

void LocalService::Run() {
  pthread_setname_np(pthread_self(), "braid-serve");
  thread_id_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  epoll_event events[kEventsPerWait];
  while (CloseServers()) {
    int timeout_ms = -1;
    if (has_paused_) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(resume_at_ - steady_clock::now()).count();
      timeout_ms = static_cast<int>(std::clamp<int64_t>(left, 0, kAcceptPause.count()));
    }
    const int count = epoll_wait(epoll_.get(), events, kEventsPerWait, timeout_ms);
    // The program may have closed descriptors that it did not open. The thread then still handles requests.
    if (count < 0 && errno != EINTR) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    for (int i = 0; i < count; ++i) HandleEvent(events[i].data.u64);
    if (has_paused_ && steady_clock::now() >= resume_at_) ResumeAccepting();
  }
  thread_id_.store(std::thread::id(), std::memory_order_relaxed);
}

// An event may name a connection or a server that was closed after epoll_wait.
void LocalService::HandleEvent(uint64_t id) {
  if (id == kEventId) {
    uint64_t count;
    [[maybe_unused]] const ssize_t bytes = read(event_.get(), &count, sizeof count);
    return;
  }
  if (const auto connection = connections_.find(id); connection != connections_.end()) {
    Read(&connection->second);
    return;
  }
  Server* server = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = servers_.find(id); found != servers_.end() && !found->second->is_closing) server = found->second;
  }
  if (server != nullptr) Accept(server);
}

void LocalService::Accept(Server* server) {
  for (int i = 0; i < kAcceptsPerEvent; ++i) {
    UnsharedDescriptor socket([server] { return accept4(server->listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); });
    if (socket.is_open()) {
      AddConnection(server, std::move(socket));
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      PauseAccepting(server);
      return;
    }
  }
}

// Without memory, the connection is closed.
void LocalService::AddConnection(Server* server, UnsharedDescriptor socket) {
  ucred peer = {};
  socklen_t bytes = sizeof peer;
  const int fd = socket.get();
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return;
  const std::lock_guard lock(mutex_);
  if (server->connections >= LocalServer::kMaxConnections) return;
  const uint64_t id = ++last_id_;
  try {
    connections_.emplace(id, Connection{std::move(socket), server, {server->owner, id, peer.pid, peer.uid}});
  } catch (const std::bad_alloc&) {
    return;
  }
  if (ControlEvents(epoll_.get(), EPOLL_CTL_ADD, fd, id, EPOLLIN | EPOLLRDHUP) != 0) {
    connections_.erase(id);
    return;
  }
  ++server->connections;
}

void LocalService::PauseAccepting(Server* server) {
  if (ControlEvents(epoll_.get(), EPOLL_CTL_MOD, server->listener, server->id, 0) != 0) return;
  server->is_paused = true;
  has_paused_ = true;
  resume_at_ = steady_clock::now() + kAcceptPause;
}

void LocalService::ResumeAccepting() {
  has_paused_ = false;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, server] : servers_) {
    if (!std::exchange(server->is_paused, false)) continue;
    if (ControlEvents(epoll_.get(), EPOLL_CTL_MOD, server->listener, id, EPOLLIN) == 0) continue;
    server->is_paused = true;
    has_paused_ = true;
    resume_at_ = steady_clock::now() + kAcceptPause;
  }
}

// Reads one message, so that a peer that sends many does not delay others. The kernel closes descriptors that come with a
// message, because the header has no room for them. An empty message cannot be told from the end of the connection and ends it.
void LocalService::Read(Connection* connection) {
  char buffer[LocalServer::kMaxMessage];
  iovec data = {buffer, sizeof buffer};
  msghdr header = {};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  const ssize_t bytes = recvmsg(connection->socket.get(), &header, MSG_DONTWAIT);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const bool is_message = bytes > 0 && (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  if (!is_message || !HandOver(connection, std::string_view(buffer, static_cast<size_t>(bytes))))
    Close(connection->peer.connection);
}

// Returns whether the connection stays open.
bool LocalService::HandOver(Connection* connection, std::string_view message) {
  {
    const std::lock_guard lock(mutex_);
    if (connection->is_ending || connection->server->is_closing) return false;
  }
  connection->has_had_message = true;
  try {
    return connection->server->handler->OnMessage(connection->peer, message);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// shutdown(2) ends the connection for the peer also while a child, just forked, still has a copy of the descriptor. The copy
// would also keep the descriptor in the epoll instance, without EPOLL_CTL_DEL.
void LocalService::Close(uint64_t id) {
  decltype(connections_)::node_type closed;
  {
    const std::lock_guard lock(mutex_);
    closed = connections_.extract(id);
    Connection& connection = closed.mapped();
    --connection.server->connections;
    (void)ControlEvents(epoll_.get(), EPOLL_CTL_DEL, connection.socket.get(), id, 0);
  }
  Connection& connection = closed.mapped();
  shutdown(connection.socket.get(), SHUT_RDWR);
  connection.socket.Close();
  if (!connection.has_had_message) return;
  try {
    connection.server->handler->OnClose(id);
  } catch (const std::bad_alloc&) {
  }
}

// Returns false if the thread is to end.
bool LocalService::CloseServers() {
  for (;;) {
    Server* server = nullptr;
    {
      const std::lock_guard lock(mutex_);
      const auto closing =
          std::find_if(servers_.begin(), servers_.end(), [](const auto& each) { return each.second->is_closing; });
      if (closing == servers_.end()) return !stops_;
      server = closing->second;
    }
    CloseServer(server);
  }
}

void LocalService::CloseServer(Server* server) {
  for (auto next = connections_.begin(); next != connections_.end();) {
    const auto& [id, connection] = *next++;
    if (connection.server == server) Close(id);
  }
  const std::lock_guard lock(mutex_);
  (void)ControlEvents(epoll_.get(), EPOLL_CTL_DEL, server->listener, server->id, 0);
  servers_.erase(std::exchange(server->id, 0));
  server_removed_.notify_all();
}

}  // namespace braiddb
