// RawConnection: a TCP connection to a server of this machine, for bytes that an HTTP client would not send.
#pragma once

#include <string>

namespace braiddb::test {

class RawConnection {
 public:
  // `address`: "127.0.0.1:<port>". A failure is a failure of the test.
  explicit RawConnection(const std::string& address);
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  // As much as the server takes.
  void Send(const std::string& text) const;
  // All bytes until the server closes.
  std::string Receive() const;

 private:
  const int socket_;
};

// Sends the request on a connection of its own, and returns the response.
std::string AskRaw(const std::string& address, const std::string& request);

}  // namespace braiddb::test
