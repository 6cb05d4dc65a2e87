#include "tools/serve/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace braiddb::tools {
namespace {

constexpr int kBacklog = 64;
constexpr size_t kReceiveBytes = 4 << 10;
constexpr size_t kMaxDrainedBytes = 256 << 10;

Status SystemError(const std::string& what) { return Status::IOError(what + ": " + std::strerror(errno)); }

std::optional<uint16_t> ParsePort(std::string_view text) {
  uint16_t port = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return port;
}

const char* Reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 421:
      return "Misdirected Request";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Bad Request";
  }
}

// The page runs only its own script, loads nothing, and asks only this server.
constexpr const char* kSafetyHeaders =
    "Connection: close\r\n"
    "Cache-Control: no-store\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n";

std::string ResponseText(const HttpResponse& response, bool is_head) {
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + " " + Reason(response.status) + "\r\n" +
                     "Content-Type: " + response.content_type + "\r\nContent-Length: " + std::to_string(response.body.size()) +
                     "\r\n" + kSafetyHeaders;
  if (response.status == 401) text += "WWW-Authenticate: Bearer\r\n";
  if (response.status == 405) text += "Allow: GET, HEAD\r\n";
  text += "\r\n";
  return is_head ? text : text + response.body;
}

}  // namespace

Status ListenAddress::Parse(const std::string& text, ListenAddress* result) {
  const Status bad =
      Status::InvalidArgument("'" + text + "' is no address to listen on; give a number and a port, such as 127.0.0.1:9180");
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return bad;
  const std::optional<uint16_t> port = ParsePort(std::string_view(text).substr(colon + 1));
  std::string host = text.substr(0, colon);
  if (host == "localhost") host = "127.0.0.1";
  if (!port) return bad;
  *result = ListenAddress();
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    auto* const address = reinterpret_cast<sockaddr_in6*>(&result->address);
    if (inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &address->sin6_addr) != 1) return bad;
    address->sin6_family = AF_INET6;
    address->sin6_port = htons(*port);
    result->length = sizeof(*address);
    result->is_loopback = IN6_IS_ADDR_LOOPBACK(&address->sin6_addr) != 0;
    return Status::OK();
  }
  auto* const address = reinterpret_cast<sockaddr_in*>(&result->address);
  if (inet_pton(AF_INET, host.c_str(), &address->sin_addr) != 1) return bad;
  address->sin_family = AF_INET;
  address->sin_port = htons(*port);
  result->length = sizeof(*address);
  result->is_loopback = ntohl(address->sin_addr.s_addr) >> 24 == 127;
  return Status::OK();
}

std::string ListenAddress::ToString() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET6) {
    const auto* const own = reinterpret_cast<const sockaddr_in6*>(&address);
    inet_ntop(AF_INET6, &own->sin6_addr, text, sizeof(text));
    return "[" + std::string(text) + "]:" + std::to_string(ntohs(own->sin6_port));
  }
  const auto* const own = reinterpret_cast<const sockaddr_in*>(&address);
  inet_ntop(AF_INET, &own->sin_addr, text, sizeof(text));
  return std::string(text) + ":" + std::to_string(ntohs(own->sin_port));
}

struct HttpServer::Client {
  enum class Stage : uint8_t { kReceives, kSends, kDrains, kEnded };

  Client(int client_socket, Clock::time_point client_deadline) : socket(client_socket), deadline(client_deadline) {}
  ~Client() { close(socket); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const int socket;
  Stage stage = Stage::kReceives;
  Clock::time_point deadline;  // of this stage
  std::string received;
  std::string response;
  size_t sent = 0;
  size_t drained = 0;
};

HttpServer::HttpServer(ListenAddress address, const HttpLimits& limits, Handler handler)
    : address_(address), limits_(limits), handler_(std::move(handler)) {}

HttpServer::~HttpServer() {
  for (const int file : {listener_, wake_[0], wake_[1]}) {
    if (file >= 0) close(file);
  }
}

Status HttpServer::Listen(const ListenAddress& address, const HttpLimits& limits, Handler handler,
                          std::unique_ptr<HttpServer>* server) {
  std::unique_ptr<HttpServer> made(new HttpServer(address, limits, std::move(handler)));
  if (pipe2(made->wake_, O_CLOEXEC | O_NONBLOCK) != 0) return SystemError("a pipe");
  made->listener_ = socket(address.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made->listener_ < 0) return SystemError("a socket for " + address.ToString());
  const int on = 1;
  (void)setsockopt(made->listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  auto* const bound = reinterpret_cast<sockaddr*>(&made->address_.address);
  if (bind(made->listener_, bound, address.length) != 0 || listen(made->listener_, kBacklog) != 0)
    return SystemError("listening on " + address.ToString());
  if (getsockname(made->listener_, bound, &made->address_.length) != 0) return SystemError("the address of the socket");
  *server = std::move(made);
  return Status::OK();
}

void HttpServer::Stop() noexcept {
  const int error = errno;
  (void)!write(wake_[1], "", 1);  // if the pipe is full, the server is awake
  errno = error;
}

Status HttpServer::Run() {
  std::vector<pollfd> polled;
  for (;;) {
    polled.assign({{wake_[0], POLLIN, 0}, {listener_, POLLIN, 0}});
    auto earliest = Clock::time_point::max();
    for (const Client& client : clients_) {
      polled.push_back({client.socket, static_cast<short>(client.stage == Client::Stage::kSends ? POLLOUT : POLLIN), 0});
      earliest = std::min(earliest, client.deadline);
    }
    int timeout = -1;
    if (!clients_.empty()) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(earliest - Clock::now()).count() + 1;
      timeout = static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
    }
    if (poll(polled.data(), polled.size(), timeout) < 0) {
      if (errno == EINTR) continue;
      return SystemError("poll");
    }
    if (polled[0].revents != 0) return Status::OK();
    const auto now = Clock::now();
    size_t next = 2;
    for (auto client = clients_.begin(); client != clients_.end();) {
      Advance(&*client, polled[next++].revents);
      const bool has_ended = client->stage == Client::Stage::kEnded || client->deadline <= now;
      client = has_ended ? clients_.erase(client) : std::next(client);
    }
    if (polled[1].revents != 0) Accept();
  }
}

// A few at a time, so that a flood of new clients does not keep the others waiting.
void HttpServer::Accept() {
  for (int i = 0; i < 8; ++i) {
    const int accepted = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (accepted < 0) {
      // Without descriptors the oldest client goes, so that the next call succeeds.
      if ((errno == EMFILE || errno == ENFILE) && !clients_.empty()) clients_.pop_front();
      return;
    }
    if (clients_.size() >= limits_.clients) clients_.pop_front();
    clients_.emplace_back(accepted, Clock::now() + limits_.request_time);
  }
}

void HttpServer::Advance(Client* client, short events) {
  if (events == 0) return;
  switch (client->stage) {
    case Client::Stage::kReceives:
      return Receive(client);
    case Client::Stage::kSends:
      return Send(client);
    case Client::Stage::kDrains:
      return Drain(client);
    case Client::Stage::kEnded:
      return;
  }
}

void HttpServer::Receive(Client* client) {
  char buffer[kReceiveBytes];
  const ssize_t bytes = recv(client->socket, buffer, sizeof(buffer), 0);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (bytes <= 0) {
    client->stage = Client::Stage::kEnded;
    return;
  }
  client->received.append(buffer, static_cast<size_t>(bytes));
  Answer(client);
}

void HttpServer::Answer(Client* client) {
  HttpRequest request;
  const int status = ParseHttpRequest(client->received, &request);
  if (status == kIncomplete) return;
  HttpResponse response;
  if (status == 200) {
    response = handler_(request);
  } else {
    response.status = status;
    response.body = std::string(Reason(status)) + "\n";
  }
  client->response = ResponseText(response, request.is_head);
  client->received = std::string();
  client->stage = Client::Stage::kSends;
  client->deadline = Clock::now() + limits_.response_time;
  Send(client);
}

void HttpServer::Send(Client* client) {
  const std::string_view rest = std::string_view(client->response).substr(client->sent);
  const ssize_t bytes = send(client->socket, rest.data(), rest.size(), MSG_NOSIGNAL);
  if (bytes < 0) {
    if (errno != EAGAIN && errno != EINTR) client->stage = Client::Stage::kEnded;
    return;
  }
  client->sent += static_cast<size_t>(bytes);
  if (client->sent < client->response.size()) return;
  client->response = std::string();
  shutdown(client->socket, SHUT_WR);
  client->stage = Client::Stage::kDrains;
  client->deadline = Clock::now() + limits_.linger_time;
}

// A close with unread bytes resets the connection, and the client might lose the response.
void HttpServer::Drain(Client* client) {
  char buffer[kReceiveBytes];
  const ssize_t bytes = recv(client->socket, buffer, sizeof(buffer), 0);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
  client->drained += bytes > 0 ? static_cast<size_t>(bytes) : 0;
  if (bytes <= 0 || client->drained > kMaxDrainedBytes) client->stage = Client::Stage::kEnded;
}

}  // namespace braiddb::tools
