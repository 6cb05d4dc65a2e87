// LocalServer: answers messages of other processes of this machine at a socket file.
//
// GOAL    A process that has a database open for writing serves processes that read. The lifetime of a connection tells each side
//         that the other has ended, however it ended.
// HOW     The sockets are unix-domain sockets of the kind SOCK_SEQPACKET, which keep the bounds of messages and can pass open
//         files. One thread, "braid-serve", serves all servers of the process. The thread starts with the first server and ends
//         with the last.
// FORK    A child of fork(2) has none of the sockets, so that the other sides see the end of a parent that is killed. In a child,
//         a server of the parent does nothing: Send returns false, and the destructor keeps the socket file. A child may start
//         servers of its own.
// LIMITS  The socket file belongs to one server. The caller makes sure, by a lock of the directory, that no other process starts
//         a server for the same file. A later server replaces the file of an earlier one.
//         A child of a direct clone(2) call keeps the sockets until it ends or runs another program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "braiddb/status.h"
#include "util/local_socket.h"

namespace braiddb {

// Thread safety: all methods may be called concurrently.
class LocalServer {
 public:
  static constexpr size_t kMaxMessage = kMaxLocalMessageBytes;
  static constexpr size_t kMaxDescriptors = kMaxLocalDescriptors;
  // Of one server. Further connections are closed at once.
  static constexpr uint32_t kMaxConnections = 1040;

  // The other side, as the kernel names it at the time of its connect(2).
  struct Peer {
    LocalServer* server;  // for the answer; Start may not have returned yet
    uint64_t connection;  // unique in the process
    int pid;              // 0 if the process is not visible from here, because it is in another PID namespace
    uint32_t uid;
  };

  // All calls come from the service thread, one at a time, without any lock. A handler may call Send, Disconnect and
  // LocalServer::Start; it may not destroy a LocalServer. While a call runs, the process serves no other message, so that a call
  // must be short.
  class Handler {
   public:
    virtual ~Handler() = default;
    // `message`: 1 to kMaxMessage bytes from a foreign process. If the call returns false or throws std::bad_alloc, the
    // connection is closed.
    virtual bool OnMessage(const Peer& peer, std::string_view message) = 0;
    // Called once for each connection for which OnMessage was called, after the connection was closed.
    virtual void OnClose(uint64_t connection) = 0;
  };

  // Listens at directory + "/" + name. Only the owner of the process may connect (mode 0600, independent of the umask). Removes
  // an existing socket file of that name; IOError if there is a file of another kind, which stays. `handler` must live as long as
  // the server.
  static Status Start(const std::string& directory, const std::string& name, Handler* handler,
                      std::unique_ptr<LocalServer>* server);
  // Removes the socket file, unless the path names another file, and closes all connections. Calls OnClose for connections. No
  // call of the handler runs after the destructor returns. REQUIRES: not called by a handler.
  ~LocalServer();
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  // Sends a message of 1 to kMaxMessage bytes with up to kMaxDescriptors open files, which stay open here. Does not block. False
  // if there is no such connection, or if the message cannot be sent, for example because the peer does not read. The connection
  // is then closed. True does not say that the peer receives the message.
  bool Send(uint64_t connection, std::string_view message, std::span<const int> descriptors = {});
  // The peer sees the end of the connection at once; OnClose follows. Messages that were sent before reach the peer, unless
  // messages of the peer are still unread: the peer may then see the end first.
  void Disconnect(uint64_t connection);
  uint32_t connections() const;

 private:
  struct State;
  explicit LocalServer(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace braiddb
