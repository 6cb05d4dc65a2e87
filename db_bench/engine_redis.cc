// The engine redis: a Redis server of its own on a unix socket, by the client library hiredis, which is loaded at run time.
// Any other server that takes the same arguments and commands can stand in, such as examples/resp_server.
#include "db_bench/engine.h"

#ifndef BRAIDDB_HIREDIS_LIBRARY

namespace braiddb::bench {

Status MakeRedisDriver(const std::string&, const Flags&, std::unique_ptr<Driver>*) {
  return Status::NotSupported(
      "redis is not built in: hiredis/hiredis.h (libhiredis-dev) was not there when db_bench was configured");
}

}  // namespace braiddb::bench

#else

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "db_bench/observation.h"
#include "db_bench/server_process.h"
#include "db_bench/shared_library.h"

namespace braiddb::bench {

namespace {

namespace fs = std::filesystem;

constexpr const char* kServer = "redis-server";
// The file that says that a directory is of this engine.
constexpr const char* kMarkFile = "/DB_BENCH_SERVER";
// A large append-only file is read before the server answers.
constexpr std::chrono::minutes kMostForStart{10};
constexpr std::chrono::minutes kMostForEnd{10};
constexpr std::chrono::milliseconds kPause{2};

struct RedisApi {
#define BRAIDDB_REDIS_API(F) \
  F(redisConnectUnix)        \
  F(redisFree)               \
  F(redisCommandArgv)        \
  F(redisAppendCommandArgv)  \
  F(redisGetReply)           \
  F(freeReplyObject)
#define BRAIDDB_DECLARE(name) decltype(&::name) name;
  BRAIDDB_REDIS_API(BRAIDDB_DECLARE)
#undef BRAIDDB_DECLARE

  Status Load(SharedLibrary* library) {
#define BRAIDDB_FIND(name) library->Find(#name, &name);
    BRAIDDB_REDIS_API(BRAIDDB_FIND)
#undef BRAIDDB_FIND
    if (library->missing().empty()) return Status::OK();
    return Status::NotSupported(library->path() + " is not hiredis: it lacks " + library->missing().front());
  }
};

// A connection to the server.
class Connection {
 public:
  // Deletes a reply.
  class Free {
   public:
    explicit Free(const RedisApi* api) : api_(api) {}
    void operator()(redisReply* reply) const { api_->freeReplyObject(reply); }

   private:
    const RedisApi* api_;
  };
  using Reply = std::unique_ptr<redisReply, Free>;

  explicit Connection(const RedisApi& api) : api_(api) {}
  ~Connection() { Close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Status Open(const std::string& socket) {
    Close();
    context_ = api_.redisConnectUnix(socket.c_str());
    return context_ != nullptr && context_->err == 0 ? Status::OK() : Broken();
  }

  // Sends a command. Its reply follows those of the commands before it.
  Status Send(const std::vector<Slice>& words) {
    pointers_.clear();
    sizes_.clear();
    for (const Slice word : words) {
      pointers_.push_back(word.data());
      sizes_.push_back(word.size());
    }
    const int sent = api_.redisAppendCommandArgv(context_, static_cast<int>(words.size()), pointers_.data(), sizes_.data());
    return sent == REDIS_OK ? Status::OK() : Broken();
  }
  // *reply is null if the connection is broken.
  Status Receive(Reply* reply) {
    reply->reset();
    void* received = nullptr;
    if (api_.redisGetReply(context_, &received) != REDIS_OK) return Broken();
    reply->reset(static_cast<redisReply*>(received));
    return ErrorOf(**reply);
  }
  Status Call(const std::vector<Slice>& words, Reply* reply) {
    const Status status = Send(words);
    return status.ok() ? Receive(reply) : status;
  }
  Reply NoReply() const { return Reply(nullptr, Free(&api_)); }

 private:
  static Status ErrorOf(const redisReply& reply) {
    if (reply.type != REDIS_REPLY_ERROR) return Status::OK();
    const std::string text(reply.str, reply.len);
    return text.starts_with("ERR unknown command") ? Status::NotSupported(text) : Status::IOError("the server says: " + text);
  }
  Status Broken() const {
    return Status::IOError(std::string("the connection to the server: ") +
                           (context_ == nullptr ? "no memory" : context_->errstr));
  }
  void Close() {
    if (context_ != nullptr) api_.redisFree(context_);
    context_ = nullptr;
  }

  const RedisApi& api_;
  redisContext* context_ = nullptr;
  std::vector<const char*> pointers_;
  std::vector<size_t> sizes_;
};

class RedisSession final : public Session {
 public:
  explicit RedisSession(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)), reply_(connection_->NoReply()) {}

  Status Put(Slice key, Slice value) override { return connection_->Call({"SET", key, value}, &reply_); }
  Status Delete(Slice key) override { return connection_->Call({"DEL", key}, &reply_); }

  // One transaction of the server, sent as a pipeline.
  Status Write(const std::vector<Update>& updates) override {
    Status status = connection_->Send({"MULTI"});
    for (size_t i = 0; i < updates.size() && status.ok(); ++i) {
      const Update& update = updates[i];
      status = update.removes ? connection_->Send({"DEL", update.key}) : connection_->Send({"SET", update.key, update.value});
    }
    if (status.ok()) status = connection_->Send({"EXEC"});
    if (!status.ok()) return status;
    // Each command has a reply, whether or not one before it failed.
    for (size_t replies = updates.size() + 2; replies > 0; --replies) {
      const Status received = connection_->Receive(&reply_);
      if (status.ok()) status = received;
      if (reply_ == nullptr) return status;
    }
    const bool is_whole = reply_->type == REDIS_REPLY_ARRAY && reply_->elements == updates.size();
    return status.ok() && !is_whole ? Unexpected() : status;
  }

  Status Get(Slice key, std::string* value) override {
    const Status status = connection_->Call({"GET", key}, &reply_);
    return status.ok() ? Take(*reply_, value) : status;
  }
  void MultiGet(const std::vector<Slice>& keys, std::vector<std::string>* values, std::vector<Status>* statuses) override {
    values->resize(keys.size());
    statuses->resize(keys.size());
    if (keys.empty()) return;
    std::vector<Slice> words{"MGET"};
    words.insert(words.end(), keys.begin(), keys.end());
    Status status = connection_->Call(words, &reply_);
    if (status.ok() && (reply_->type != REDIS_REPLY_ARRAY || reply_->elements != keys.size())) status = Unexpected();
    for (size_t i = 0; i < keys.size(); ++i) (*statuses)[i] = status.ok() ? Take(*reply_->element[i], &(*values)[i]) : status;
  }
  // Redis does not order its keys.
  std::unique_ptr<Iterator> NewIterator() override { return nullptr; }

 private:
  static Status Unexpected() { return Status::IOError("the server sent a reply of another kind"); }
  static Status Take(const redisReply& reply, std::string* value) {
    if (reply.type == REDIS_REPLY_NIL) return Status::NotFound();
    if (reply.type != REDIS_REPLY_STRING) return Unexpected();
    value->assign(reply.str, reply.len);
    return Status::OK();
  }

  const std::unique_ptr<Connection> connection_;
  Connection::Reply reply_;  // of the last command
};

class RedisEngine final : public Engine {
 public:
  RedisEngine(const RedisApi& api, std::unique_ptr<ServerProcess> server, std::string socket, std::string log)
      : api_(api), server_(std::move(server)), socket_(std::move(socket)), log_(std::move(log)) {}
  ~RedisEngine() override {
    server_.reset();
    std::error_code ignored;
    fs::remove(socket_, ignored);
    if (fs::path(log_).parent_path() != fs::path(socket_).parent_path()) fs::remove(fs::path(socket_).parent_path(), ignored);
  }

  // Waits until the server answers.
  Status WaitUntilReady() {
    const auto end = std::chrono::steady_clock::now() + kMostForStart;
    Connection connection(api_);
    Connection::Reply reply = connection.NoReply();
    Status status;
    do {
      if (!server_->IsRunning()) return Status::IOError("the server has ended; see " + log_);
      status = connection.Open(socket_);
      if (status.ok()) status = connection.Call({"PING"}, &reply);
      if (status.ok()) return status;
      std::this_thread::sleep_for(kPause);
    } while (std::chrono::steady_clock::now() < end);
    return status;
  }

  Status NewSession(bool sync, std::unique_ptr<Session>* session) override {
    auto connection = std::make_unique<Connection>(api_);
    Connection::Reply reply = connection->NoReply();
    Status status = connection->Open(socket_);
    if (status.ok()) status = connection->Call({"CONFIG", "SET", "appendfsync", sync ? "always" : "everysec"}, &reply);
    if (status.ok()) *session = std::make_unique<RedisSession>(std::move(connection));
    return status;
  }

  Status Flush() override { return Status::NotSupported("Redis has no such call"); }
  // Rewrites the append-only file.
  Status Compact() override {
    const Status status = Command({"BGREWRITEAOF"});
    return status.ok() ? WaitForCompaction() : status;
  }
  Status WaitForCompaction() override {
    for (;;) {
      std::string text;
      const Status status = Info(&text);
      if (!status.ok()) return status;
      if (NumberOf(text, "aof_rewrite_in_progress") + NumberOf(text, "aof_rewrite_scheduled") == 0) return Status::OK();
      std::this_thread::sleep_for(kPause);
    }
  }

  bool GetText(std::string_view name, std::string* text) override { return name == "stats" && Info(text).ok(); }
  std::vector<Figure> State() override { return {{"server_dram_bytes", AnonymousBytesOf(server_->pid())}}; }

  Status Close() override {
    const Status status = Command({"SHUTDOWN"});  // the connection ends in place of a reply
    if (status.IsNotSupported()) return status;
    return server_->WaitForEnd(kMostForEnd);
  }

 private:
  Status Command(const std::vector<Slice>& words) {
    Connection connection(api_);
    Connection::Reply reply = connection.NoReply();
    const Status status = connection.Open(socket_);
    return status.ok() ? connection.Call(words, &reply) : status;
  }
  Status Info(std::string* text) {
    Connection connection(api_);
    Connection::Reply reply = connection.NoReply();
    Status status = connection.Open(socket_);
    if (status.ok()) status = connection.Call({"INFO"}, &reply);
    if (status.ok()) text->assign(reply->str, reply->len);
    return status;
  }
  // A number of INFO; 0 if there is none of this name.
  static uint64_t NumberOf(const std::string& text, const std::string& name) {
    const size_t at = text.find("\n" + name + ":");
    uint64_t number = 0;
    if (at != std::string::npos) std::from_chars(text.data() + at + name.size() + 2, text.data() + text.size(), number);
    return number;
  }

  const RedisApi& api_;
  std::unique_ptr<ServerProcess> server_;
  const std::string socket_;
  const std::string log_;
};

class RedisDriver final : public Driver {
 public:
  Status Load(const std::string& server) {
    if (!server.empty()) server_ = server;
    signal(SIGPIPE, SIG_IGN);  // hiredis writes to a server that is gone
    Status status = library_.Load("", BRAIDDB_HIREDIS_LIBRARY);
    if (status.ok()) status = api_.Load(&library_);
    if (status.ok()) status = FirstLineOf({server_, "--version"}, &version_);
    return status;
  }

  std::string Version() const override { return version_ + " (" + server_ + ")"; }
  std::string Settings() const override {
    return std::string("a server process on a unix socket; ") + (IsRedis() ? "appendonly, without RDB snapshots; " : "") +
           "--batch_size: MULTI … EXEC as one pipeline; the server's CPU time is not counted";
  }
  std::string Durability(bool sync) const override {
    if (!IsRedis()) return std::string("what ") + server_ + " promises with appendfsync " + (sync ? "always" : "everysec");
    return sync ? "power failure: the append-only file is synced before a write is acknowledged (on tmpfs that costs a system "
                  "call only)"
                : "the process's end; a power failure loses up to a second (appendfsync everysec)";
  }

  Status Open(const std::string& path, bool exists, std::unique_ptr<Engine>* engine) override {
    Status status = exists ? Find(path) : Create(path);
    if (!status.ok()) return status;
    // The path of a socket has at most 107 bytes.
    constexpr size_t kMostSocket = 107;
    std::string directory = path;
    if (path.size() + sizeof("/socket") > kMostSocket + 1) {
      directory = (fs::temp_directory_path() / "braiddb-redis-XXXXXX").string();
      if (mkdtemp(directory.data()) == nullptr)
        return Status::IOError("cannot make a directory in " + fs::temp_directory_path().string());
    }
    const std::string socket = directory + "/socket";
    const std::string log = path + "/server.log";
    std::unique_ptr<ServerProcess> server;
    status = ServerProcess::Start({server_, "--port", "0", "--unixsocket", socket, "--dir", path + "/data", "--save", "",
                                   "--appendonly", "yes", "--appendfsync", "everysec", "--daemonize", "no"},
                                  log, &server);
    if (!status.ok()) {
      if (directory != path) fs::remove_all(directory);
      return status;
    }
    auto made = std::make_unique<RedisEngine>(api_, std::move(server), socket, log);
    status = made->WaitUntilReady();
    if (status.ok()) *engine = std::move(made);
    return status;
  }
  Status Destroy(const std::string& path) override {
    std::error_code error;
    if (!fs::exists(path, error)) return Status::OK();
    if (!fs::exists(path + kMarkFile, error) && !fs::is_empty(path, error))
      return Status::InvalidArgument(path + " was not made by this engine");
    for (const char* name : {"/data", "/socket", "/server.log", kMarkFile}) {
      fs::remove_all(path + name, error);
      if (error) return Status::IOError("cannot remove " + path + name + ": " + error.message());
    }
    fs::remove(path, error);  // stays if files of others are there
    return Status::OK();
  }

 private:
  bool IsRedis() const { return version_.starts_with("Redis"); }
  static Status Find(const std::string& path) {
    std::error_code error;
    return fs::exists(path + kMarkFile, error) ? Status::OK() : Status::InvalidArgument(path + " is no database of this engine");
  }
  static Status Create(const std::string& path) {
    std::error_code error;
    if (fs::exists(path, error) && !fs::is_empty(path, error)) return Status::InvalidArgument(path + " is not empty");
    fs::create_directories(path + "/data", error);
    if (!error && std::ofstream(path + kMarkFile).put('\n').flush()) return Status::OK();
    return Status::IOError("cannot make a database in " + path);
  }

  SharedLibrary library_;
  RedisApi api_{};
  std::string server_ = kServer;
  std::string version_;
};

}  // namespace

Status MakeRedisDriver(const std::string& argument, const Flags&, std::unique_ptr<Driver>* driver) {
  auto made = std::make_unique<RedisDriver>();
  Status status = made->Load(argument);
  if (status.ok()) *driver = std::move(made);
  return status;
}

}  // namespace braiddb::bench

#endif
