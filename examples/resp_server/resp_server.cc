// A key-value server on a unix socket that speaks Redis's protocol (RESP2), with a BraidDB database behind it. Redis's clients
// can use these commands: GET SET DEL EXISTS MGET MSET, MULTI EXEC DISCARD (for SET, MSET and DEL), PING ECHO SELECT DBSIZE INFO
// CONFIG COMMAND BGREWRITEAOF QUIT SHUTDOWN. Each connection has a thread.
// usage: resp_server --unixsocket PATH --dir DIRECTORY [--appendfsync always|everysec|no]
// The other arguments that redis-server gets from db_bench are accepted and have no effect. SIGTERM, SIGINT and the command
// SHUTDOWN close the database and end the program.
//
// Durability: on persistent memory, every write is durable when it is acknowledged. On a disk it is with appendfsync=always;
// otherwise it survives the end of the process.
#include <braiddb/db.h>
#include <braiddb/write_batch.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "resp.h"

namespace {

using braiddb::Status;
using braiddb::WriteBatch;

struct Arguments {
  std::string socket;
  std::string directory;
  bool sync = false;
};

[[noreturn]] void Fail(const std::string& what) {
  std::cerr << "resp_server: " << what << "\n";
  std::exit(1);
}

bool IsFsync(std::string_view word) { return word == "always" || word == "everysec" || word == "no"; }

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) Fail(name + " needs a value");
    const std::string value = argv[i + 1];
    if (name == "--unixsocket") {
      arguments.socket = value;
    } else if (name == "--dir") {
      arguments.directory = value;
    } else if (name == "--appendfsync") {
      if (!IsFsync(value)) Fail("--appendfsync is always, everysec or no");
      arguments.sync = value == "always";
    } else if (name != "--port" && name != "--save" && name != "--appendonly" && name != "--daemonize") {
      Fail("unknown argument " + name);
    }
  }
  if (arguments.socket.empty() || arguments.directory.empty()) Fail("--unixsocket and --dir are needed");
  return arguments;
}

// What all connections share.
class Server {
 public:
  Server(const Arguments& arguments, std::unique_ptr<braiddb::DB> db) : db_(std::move(db)), syncs_(arguments.sync) {}

  braiddb::DB* db() { return db_.get(); }
  braiddb::WriteOptions write_options() const {
    braiddb::WriteOptions options;
    options.sync = syncs_.load(std::memory_order_relaxed);
    return options;
  }
  void SetSync(bool syncs) { syncs_.store(syncs, std::memory_order_relaxed); }
  bool syncs() const { return syncs_.load(std::memory_order_relaxed); }
  // Ends the program as SIGTERM does.
  static void RequestEnd() { kill(getpid(), SIGTERM); }

 private:
  const std::unique_ptr<braiddb::DB> db_;
  std::atomic<bool> syncs_;
};

using Words = std::vector<std::string_view>;

// One client: its state between commands, and the commands. Replies are appended to `out`.
class Client {
 public:
  explicit Client(Server* server) : server_(*server) {}

  // Returns false if the connection is to be closed behind the reply.
  bool Execute(const Words& words, std::string* out) {
    const std::string name = UpperCase(words[0]);
    const auto found = Commands().find(name);
    if (found == Commands().end()) {
      resp::AppendError(out, "ERR unknown command '" + name.substr(0, 128) + "'");
      fails_ |= collects_;
      return true;
    }
    const Command& command = found->second;
    if (words.size() < command.least || words.size() > command.most) {
      resp::AppendError(out, "ERR wrong number of arguments for '" + name + "' command");
      fails_ |= collects_;
      return true;
    }
    if (collects_ && !command.may_be_collected) {
      resp::AppendError(out, "ERR only SET, MSET and DEL may be between MULTI and EXEC");
      fails_ = true;
      return true;
    }
    return (this->*command.run)(words, out);
  }

 private:
  struct Command {
    size_t least, most;  // words
    bool (Client::*run)(const Words& words, std::string* out);
    bool may_be_collected = false;  // between MULTI and EXEC
  };
  static constexpr size_t kAny = SIZE_MAX;

  static const std::map<std::string, Command>& Commands() {
    static const std::map<std::string, Command> commands{
        {"GET", {2, 2, &Client::Get}},
        {"SET", {3, 3, &Client::Set, true}},
        {"DEL", {2, kAny, &Client::Delete, true}},
        {"EXISTS", {2, kAny, &Client::Exists}},
        {"MGET", {2, kAny, &Client::GetMany}},
        {"MSET", {3, kAny, &Client::SetMany, true}},
        {"MULTI", {1, 1, &Client::Begin, true}},
        {"EXEC", {1, 1, &Client::Commit, true}},
        {"DISCARD", {1, 1, &Client::Discard, true}},
        {"PING", {1, 2, &Client::Ping}},
        {"ECHO", {2, 2, &Client::Ping}},
        {"SELECT", {2, 2, &Client::Select}},
        {"DBSIZE", {1, 1, &Client::Count}},
        {"CONFIG", {3, kAny, &Client::Configure}},
        {"INFO", {1, kAny, &Client::Info}},
        {"COMMAND", {1, kAny, &Client::DescribeCommands}},
        {"BGREWRITEAOF", {1, 1, &Client::Compact}},
        {"QUIT", {1, kAny, &Client::Quit}},
        {"SHUTDOWN", {1, 2, &Client::Shutdown}},
    };
    return commands;
  }

  static std::string UpperCase(std::string_view word) {
    std::string upper(word);
    std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
    return upper;
  }
  static void AppendStatus(std::string* out, const Status& status) {
    if (status.ok()) {
      resp::AppendSimple(out, "OK");
    } else {
      resp::AppendError(out, "ERR " + status.ToString());
    }
  }

  bool Get(const Words& words, std::string* out) {
    const Status status = server_.db()->Get({}, words[1], &value_);
    if (status.ok()) {
      resp::AppendBulk(out, value_);
    } else if (status.IsNotFound()) {
      resp::AppendNull(out);
    } else {
      AppendStatus(out, status);
    }
    return true;
  }
  bool GetMany(const Words& words, std::string* out) {
    const std::vector<braiddb::Slice> keys(words.begin() + 1, words.end());
    std::vector<std::string> values;
    const std::vector<Status> statuses = server_.db()->MultiGet({}, keys, &values);
    for (const Status& status : statuses) {
      if (status.ok() || status.IsNotFound()) continue;
      AppendStatus(out, status);
      return true;
    }
    resp::AppendArray(out, keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      statuses[i].ok() ? resp::AppendBulk(out, values[i]) : resp::AppendNull(out);
    }
    return true;
  }
  bool Exists(const Words& words, std::string* out) {
    const std::vector<braiddb::Slice> keys(words.begin() + 1, words.end());
    std::vector<std::string> values;
    int64_t count = 0;
    for (const Status& status : server_.db()->MultiGet({}, keys, &values)) count += status.ok();
    resp::AppendInteger(out, count);
    return true;
  }

  // Between MULTI and EXEC: whether the batch has room for the words. Otherwise the transaction fails.
  bool HasRoom(const Words& words, std::string* out) {
    constexpr uint64_t kMostBatch = uint64_t{1} << 30;
    uint64_t bytes = batch_.ApproximateSize();
    for (const std::string_view word : words) bytes += word.size();
    if (bytes <= kMostBatch) return true;
    resp::AppendError(out, "ERR a transaction of more than 1 GiB");
    fails_ = true;
    return false;
  }

  bool Set(const Words& words, std::string* out) {
    if (collects_) {
      if (!HasRoom(words, out)) return true;
      batch_.Put(words[1], words[2]);
      AppendQueued(out, "+OK\r\n");
      return true;
    }
    AppendStatus(out, server_.db()->Put(server_.write_options(), words[1], words[2]));
    return true;
  }
  bool SetMany(const Words& words, std::string* out) {
    if (words.size() % 2 == 0) {
      resp::AppendError(out, "ERR wrong number of arguments for 'MSET' command");
      fails_ |= collects_;
      return true;
    }
    if (collects_ && !HasRoom(words, out)) return true;
    WriteBatch own;
    WriteBatch& batch = collects_ ? batch_ : own;
    for (size_t i = 1; i < words.size(); i += 2) batch.Put(words[i], words[i + 1]);
    if (collects_) {
      AppendQueued(out, "+OK\r\n");
    } else {
      AppendStatus(out, server_.db()->Write(server_.write_options(), batch));
    }
    return true;
  }
  // Its reply counts the keys that existed when the command came. Another client's write in between may make the count wrong.
  bool Delete(const Words& words, std::string* out) {
    if (collects_ && !HasRoom(words, out)) return true;
    Words once(words.begin() + 1, words.end());
    std::sort(once.begin(), once.end());
    once.erase(std::unique(once.begin(), once.end()), once.end());
    once.insert(once.begin(), words[0]);
    std::string count;
    Exists(once, &count);
    WriteBatch own;
    WriteBatch& batch = collects_ ? batch_ : own;
    for (size_t i = 1; i < once.size(); ++i) batch.Delete(once[i]);
    if (collects_) {
      AppendQueued(out, count);
      return true;
    }
    const Status status = server_.db()->Write(server_.write_options(), batch);
    if (status.ok()) {
      *out += count;
    } else {
      AppendStatus(out, status);
    }
    return true;
  }

  bool Begin(const Words&, std::string* out) {
    if (collects_) {
      resp::AppendError(out, "ERR MULTI calls can not be nested");
      return true;
    }
    collects_ = true;
    resp::AppendSimple(out, "OK");
    return true;
  }
  // One batch, which is atomic.
  bool Commit(const Words&, std::string* out) {
    if (!collects_) {
      resp::AppendError(out, "ERR EXEC without MULTI");
      return true;
    }
    if (fails_) {
      resp::AppendError(out, "EXECABORT Transaction discarded because of previous errors.");
    } else if (const Status status = server_.db()->Write(server_.write_options(), batch_); !status.ok()) {
      AppendStatus(out, status);
    } else {
      resp::AppendArray(out, queued_);
      *out += replies_;
    }
    EndCollecting();
    return true;
  }
  bool Discard(const Words&, std::string* out) {
    if (!collects_) {
      resp::AppendError(out, "ERR DISCARD without MULTI");
      return true;
    }
    EndCollecting();
    resp::AppendSimple(out, "OK");
    return true;
  }
  void AppendQueued(std::string* out, std::string_view reply) {
    ++queued_;
    replies_ += reply;
    resp::AppendSimple(out, "QUEUED");
  }
  void EndCollecting() {
    collects_ = fails_ = false;
    queued_ = 0;
    replies_.clear();
    batch_.Clear();
  }

  bool Ping(const Words& words, std::string* out) {
    words.size() == 1 ? resp::AppendSimple(out, "PONG") : resp::AppendBulk(out, words[1]);
    return true;
  }
  bool Select(const Words& words, std::string* out) {
    words[1] == "0" ? resp::AppendSimple(out, "OK") : resp::AppendError(out, "ERR DB index is out of range");
    return true;
  }
  // An estimate.
  bool Count(const Words&, std::string* out) {
    uint64_t keys = 0;
    server_.db()->GetIntProperty("braiddb.estimate-num-keys", &keys);
    resp::AppendInteger(out, static_cast<int64_t>(keys));
    return true;
  }
  bool Configure(const Words& words, std::string* out) {
    const std::string verb = UpperCase(words[1]);
    const std::string name = UpperCase(words[2]);
    if (verb == "GET") {
      const std::map<std::string, std::string> known{
          {"APPENDFSYNC", server_.syncs() ? "always" : "everysec"}, {"APPENDONLY", "yes"}, {"SAVE", ""}};
      const auto found = known.find(name);
      resp::AppendArray(out, found == known.end() ? 0 : 2);
      if (found != known.end()) {
        resp::AppendBulk(out, words[2]);
        resp::AppendBulk(out, found->second);
      }
    } else if (verb == "SET" && name == "APPENDFSYNC" && words.size() == 4 && IsFsync(words[3])) {
      server_.SetSync(words[3] == "always");
      resp::AppendSimple(out, "OK");
    } else {
      resp::AppendError(out, "ERR only appendfsync can be set, to always, everysec or no");
    }
    return true;
  }
  bool Info(const Words&, std::string* out) {
    std::string stats;
    server_.db()->GetProperty("braiddb.stats", &stats);
    resp::AppendBulk(out, "# Server\r\nserver_name:resp_server\r\n# BraidDB\r\n" + stats);
    return true;
  }
  bool DescribeCommands(const Words&, std::string* out) {
    resp::AppendArray(out, 0);
    return true;
  }
  // In Redis this call runs in the background. Here the reply comes when the compaction is done.
  bool Compact(const Words&, std::string* out) {
    AppendStatus(out, server_.db()->CompactRange({}, nullptr, nullptr));
    return true;
  }
  bool Quit(const Words&, std::string* out) {
    resp::AppendSimple(out, "OK");
    return false;
  }
  bool Shutdown(const Words&, std::string*) {
    Server::RequestEnd();
    return false;
  }

  Server& server_;
  std::string value_;
  // Between MULTI and EXEC: the updates, and the replies that EXEC gives.
  bool collects_ = false;
  bool fails_ = false;
  WriteBatch batch_;
  size_t queued_ = 0;
  std::string replies_;
};

bool SendAll(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

// Reads commands, and answers all that have come whole at once.
void ServeCommands(Server* server, int socket) {
  constexpr size_t kRead = 64 << 10;
  constexpr size_t kMostOut = 1 << 20;  // replies that wait for the end of a pipeline
  Client client(server);
  resp::CommandParser parser;
  std::string out;
  Words words;
  for (bool goes_on = true; goes_on;) {
    char* const room = parser.Room(kRead);
    const ssize_t size = recv(socket, room, kRead, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    parser.Filled(static_cast<size_t>(size));
    while (goes_on && parser.Next(&words)) {
      if (!words.empty()) goes_on = client.Execute(words, &out);
      if (out.size() < kMostOut) continue;
      if (!SendAll(socket, out)) return;
      out.clear();
    }
    if (!parser.error().empty()) {
      resp::AppendError(&out, "ERR Protocol error: " + parser.error());
      goes_on = false;
    }
    if (!SendAll(socket, out)) return;
    out.clear();
  }
}

void Serve(Server* server, int socket) {
  try {
    ServeCommands(server, socket);
  } catch (const std::bad_alloc&) {  // ends this connection, and no other
    SendAll(socket, "-OOM no memory for this command\r\n");
  }
}

int Listen(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) Fail("the path of the socket is too long");
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  // A socket that no server listens on is left by a server that was killed. Everything else stays.
  struct stat there {};
  if (lstat(path.c_str(), &there) == 0) {
    const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool is_left = S_ISSOCK(there.st_mode) && probe >= 0 &&
                         connect(probe, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 && errno == ECONNREFUSED;
    if (probe >= 0) close(probe);
    if (!is_left) Fail(path + " is in use or is not a socket; name another path");
    unlink(path.c_str());
  }
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 || listen(listener, 128) != 0)
    Fail("cannot listen on " + path + ": " + strerror(errno));
  return listener;
}

// The threads of connections. Those that have ended are joined when the next one begins.
class Connections {
 public:
  explicit Connections(Server* server) : server_(server) {}
  // Closes the connection if there is no thread or no memory for it.
  void Begin(int socket) {
    Reap();
    try {
      Connection& connection = all_.emplace_back(socket);
      try {
        connection.thread = std::thread([this, &connection] {
          Serve(server_, connection.socket);
          shutdown(connection.socket, SHUT_RDWR);
          connection.has_ended = true;
        });
        return;
      } catch (const std::exception&) {
        all_.pop_back();
      }
    } catch (const std::bad_alloc&) {
    }
    SendAll(socket, "-ERR no thread for this connection\r\n");
    close(socket);
  }
  // Closes what clients have left.
  void Reap() {
    all_.remove_if([](Connection& connection) {
      if (!connection.has_ended) return false;
      connection.thread.join();
      close(connection.socket);
      return true;
    });
  }
  void EndAll() {
    for (Connection& connection : all_) shutdown(connection.socket, SHUT_RDWR);
    for (Connection& connection : all_) {
      connection.thread.join();
      close(connection.socket);
    }
    all_.clear();
  }

 private:
  struct Connection {
    explicit Connection(int descriptor) : socket(descriptor) {}
    const int socket;
    std::atomic<bool> has_ended{false};
    std::thread thread;
  };

  Server* const server_;
  std::list<Connection> all_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--version") == 0) {
    std::cout << "BraidDB resp_server\n";
    return 0;
  }
  if (argc == 2 && strcmp(argv[1], "--help") == 0) {
    std::cout << "usage: resp_server --unixsocket PATH --dir DIRECTORY [--appendfsync always|everysec|no]\n";
    return 0;
  }
  const Arguments arguments = Parse(argc, argv);
  // Signals are taken by a thread of their own, and by no thread of the library.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  sigprocmask(SIG_BLOCK, &ends, nullptr);

  braiddb::Options options;
  options.create_if_missing = true;
  std::unique_ptr<braiddb::DB> db;
  if (const Status status = braiddb::DB::Open(options, arguments.directory, &db); !status.ok())
    Fail("open: " + status.ToString());
  braiddb::DB* const opened = db.get();
  Server server(arguments, std::move(db));
  const int listener = Listen(arguments.socket);
  std::atomic<bool> is_ending{false};
  std::thread waiting([&] {
    int signal = 0;
    sigwait(&ends, &signal);
    is_ending = true;
    shutdown(listener, SHUT_RDWR);  // accept fails from now on
  });
  Connections connections(&server);
  while (!is_ending) {
    const int socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket >= 0) {
      connections.Begin(socket);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
      usleep(10'000);  // until some client leaves
      connections.Reap();
    } else if (errno != EINTR && errno != ECONNABORTED) {
      break;
    }
  }
  Server::RequestEnd();  // for the thread that waits, if something else has ended the loop
  waiting.join();
  connections.EndAll();
  unlink(arguments.socket.c_str());
  close(listener);
  const Status status = opened->Close();
  if (!status.ok()) Fail("close: " + status.ToString());
  return 0;
}
