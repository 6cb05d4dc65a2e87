// A metrics endpoint inside a program: Prometheus, or `curl http://127.0.0.1:PORT/metrics`, reads the figures of the running database.
// An HTTP library has such a server in one line, for example cpp-httplib:
//   server.Get("/metrics", [&](auto&, auto& response) { response.set_content(MetricsText(db->GetMetrics()), kPrometheusContentType); });
// This program uses sockets only. It writes to a database, reads its own endpoint once, and ends.
// usage: metrics DIRECTORY      (the directory becomes a database; it is removed at the end)
#include <arpa/inet.h>
#include <braiddb/db.h>
#include <braiddb/metrics.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

static void Check(bool ok, const char* what) {
  if (ok) return;
  std::cerr << what << " failed\n";
  std::exit(1);
}

// Answers each request on the listening socket with all metrics, until the socket is shut down.
static void ServeMetrics(int listener, const braiddb::DB* db) {
  for (int client; (client = accept(listener, nullptr, nullptr)) >= 0; close(client)) {
    const timeval patience{1, 0};  // a client that hangs costs a second
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    char request[4096];
    if (recv(client, request, sizeof(request), 0) <= 0) continue;
    const std::string body = braiddb::MetricsText(db->GetMetrics());
    const std::string response = std::string("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: ") + braiddb::kPrometheusContentType +
                                 "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    send(client, response.data(), response.size(), MSG_NOSIGNAL);
  }
}

// What Prometheus does once in each interval.
static std::string Scrape(const sockaddr_in& address) {
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  Check(connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0, "connect");
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
  Check(send(server, request.data(), request.size(), MSG_NOSIGNAL) > 0, "send");
  std::string text;
  char buffer[4096];
  for (ssize_t bytes; (bytes = recv(server, buffer, sizeof(buffer), 0)) > 0;) text.append(buffer, static_cast<size_t>(bytes));
  close(server);
  return text;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: metrics DIRECTORY\n";
    return 2;
  }
  braiddb::Options options;
  options.create_if_missing = true;
  options.histograms = true;  // durations of calls, too
  std::unique_ptr<braiddb::DB> db;
  Check(braiddb::DB::Open(options, argv[1], &db).ok(), "open");

  // Port 0 is any free port; a program of your own has a fixed one.
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  Check(bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0 && listen(listener, 8) == 0, "listen");
  Check(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0, "getsockname");
  std::thread server(ServeMetrics, listener, db.get());

  for (int i = 0; i < 1000; ++i) Check(db->Put({}, "key " + std::to_string(i), "value").ok(), "put");
  const std::string text = Scrape(address);
  std::cout << text;
  // The same figures as numbers.
  std::cout << "writes: " << db->GetMetrics().Value("braiddb_writes_total") << "\n";

  shutdown(listener, SHUT_RDWR);
  server.join();
  close(listener);
  Check(db->Close().ok(), "close");
  db.reset();
  Check(braiddb::DB::Destroy({}, argv[1]).ok(), "destroy");
  return text.find("\nbraiddb_writes_total 1000\n") == std::string::npos ? 1 : 0;
}
