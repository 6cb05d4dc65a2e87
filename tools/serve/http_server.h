// HttpServer: a small HTTP server for one page and its figures.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "braiddb/status.h"
#include "tools/serve/http_request.h"

namespace braiddb::tools {

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// An address to listen on: "127.0.0.1:9180", "[::1]:9180" or "localhost:9180". Port 0: any free port.
struct ListenAddress {
  sockaddr_storage address = {};
  socklen_t length = 0;
  bool is_loopback = false;

  // InvalidArgument if `text` has another form; host names are not looked up.
  static Status Parse(const std::string& text, ListenAddress* result);
  // "127.0.0.1:9180" or "[::1]:9180".
  std::string ToString() const;
};

struct HttpLimits {
  size_t clients = 32;                             // connections at once
  std::chrono::milliseconds request_time{5000};    // from the connection to the end of the request's head
  std::chrono::milliseconds response_time{10000};  // for the response
  std::chrono::milliseconds linger_time{1000};     // until a client that was answered must have closed
};

// LIMITS       One request a connection, and HttpLimits. A request is at most kMaxHeadBytes. When all connections are in use, a
//              new client takes the place of the client that has been connected for the longest time. So a client that hangs
//              keeps no other client from being served.
// CONCURRENCY  Run handles all connections in the calling thread, without blocking on any. The handler runs in this thread too
//              and must be short. Stop may be called by any thread and by a signal handler.
class HttpServer {
 public:
  // Must not throw.
  using Handler = std::function<HttpResponse(const HttpRequest& request)>;

  // Binds the address and listens. IOError if the address is in use or may not be bound.
  static Status Listen(const ListenAddress& address, const HttpLimits& limits, Handler handler,
                       std::unique_ptr<HttpServer>* server);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // With the port that was bound.
  std::string address() const { return address_.ToString(); }
  // Serves until Stop.
  Status Run();
  void Stop() noexcept;

 private:
  struct Client;
  using Clock = std::chrono::steady_clock;

  HttpServer(ListenAddress address, const HttpLimits& limits, Handler handler);
  void Accept();
  void Advance(Client* client, short events);
  void Receive(Client* client);
  void Answer(Client* client);
  void Send(Client* client);
  void Drain(Client* client);

  ListenAddress address_;
  const HttpLimits limits_;
  const Handler handler_;
  int listener_ = -1;
  int wake_[2] = {-1, -1};     // a pipe
  std::list<Client> clients_;  // the oldest first
};

}  // namespace braiddb::tools
