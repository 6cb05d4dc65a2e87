#include "tests/support/raw_connection.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace braiddb::test {

RawConnection::RawConnection(const std::string& address) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0) << address;
}

RawConnection::~RawConnection() { close(socket_); }

void RawConnection::Send(const std::string& text) const {
  size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t bytes = send(socket_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (bytes <= 0) return;
    sent += static_cast<size_t>(bytes);
  }
}

std::string RawConnection::Receive() const {
  std::string text;
  char buffer[4096];
  for (ssize_t bytes = 0; (bytes = recv(socket_, buffer, sizeof(buffer), 0)) > 0;)
    text.append(buffer, static_cast<size_t>(bytes));
  return text;
}

std::string AskRaw(const std::string& address, const std::string& request) {
  const RawConnection connection(address);
  connection.Send(request);
  return connection.Receive();
}

}  // namespace braiddb::test
