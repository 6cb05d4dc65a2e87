// LocalClient: the connection of a process to a LocalServer (util/local_server.h) on the same machine.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/status.h"
#include "util/local_socket.h"
#include "util/unshared_descriptor.h"

namespace braiddb {

// The connection ends with its object or with the process, also if the process has children. A child of fork(2) has no
// connection: its calls return Aborted, and IsClosed returns true.
// Thread safety: all methods may be called concurrently. Each message is received by one caller.
class LocalClient {
 public:
  static constexpr size_t kMaxMessage = kMaxLocalMessageBytes;

  // NotFound if there is no socket file, or if no process listens at the file. Busy if the server accepts no connection for
  // kPatienceSeconds. A server that has too many connections accepts the connection and closes it.
  static Status Connect(const std::string& directory, const std::string& name, std::unique_ptr<LocalClient>* client);
  LocalClient(const LocalClient&) = delete;
  LocalClient& operator=(const LocalClient&) = delete;

  // `message`: 1 to kMaxMessage bytes, else InvalidArgument. Aborted if the server is gone. TimedOut if the server does not read
  // for kPatienceSeconds.
  // kNo: TimedOut at once.
  enum class Waits : uint8_t { kYes, kNo };
  Status Send(std::string_view message, Waits waits = Waits::kYes);

  // Waits up to `timeout_ms` for the next message; without limit if `timeout_ms` is negative. TimedOut if no message comes,
  // Aborted if the server is gone. After Aborted, all further calls but those that find earlier messages return Aborted.
  // `descriptors`: replaced by the descriptors that came with the message, in the server's order. The caller must close them.
  // They are close-on-exec, but children of fork(2) inherit them. If `descriptors` is null, received descriptors are closed.
  // IOError if not all descriptors could be received, because the process has too many open files; the message is lost.
  Status Receive(int timeout_ms, std::string* message, std::vector<int>* descriptors);

  // Ends the connection: a Receive that waits, and all later calls, return Aborted.
  void Shutdown();

  // Whether the server has closed the connection or has ended. One poll(2); takes no message. Messages that came before can still
  // be received.
  bool IsClosed() const;

 private:
  static constexpr int kPatienceSeconds = 5;

  LocalClient(UnsharedDescriptor connection, std::string path) : connection_(std::move(connection)), path_(std::move(path)) {}
  Status Gone() const;

  const UnsharedDescriptor connection_;
  const std::string path_;
};

}  // namespace braiddb
