// Connections between processes of one machine: messages, open files, ends of processes, and hostile peers.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/fork_child.h"
#include "tests/support/leave_child.h"
#include "tests/support/wait_until.h"
#include "util/local_client.h"
#include "util/local_server.h"

namespace braiddb {
namespace {

using test::ForkChild;
using test::kPatience;
using test::LeaveChild;
using test::WaitUntil;

constexpr int kPatienceMs = static_cast<int>(std::chrono::milliseconds(kPatience).count());

// Returns every message to its sender, with the open files in `descriptors`. Some messages are commands.
class Echo : public LocalServer::Handler {
 public:
  bool OnMessage(const LocalServer::Peer& peer, std::string_view message) override {
    const std::lock_guard lock(mutex);
    EXPECT_FALSE(message.empty());
    EXPECT_LE(message.size(), LocalServer::kMaxMessage);
    last = peer;
    seen.insert(peer.connection);
    ++messages;
    if (message == "close") return false;
    if (message == "disconnect") {
      peer.server->Disconnect(peer.connection);
    } else if (message != "silence") {
      peer.server->Send(peer.connection, message, descriptors);
    }
    return true;
  }
  void OnClose(uint64_t connection) override {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(seen.contains(connection));
    EXPECT_TRUE(closed.insert(connection).second) << "closed twice";
  }

  size_t closed_count() {
    const std::lock_guard lock(mutex);
    return closed.size();
  }
  size_t seen_count() {
    const std::lock_guard lock(mutex);
    return seen.size();
  }

  std::mutex mutex;
  LocalServer::Peer last = {};
  std::set<uint64_t> seen, closed;
  uint64_t messages = 0;
  std::vector<int> descriptors;
};

class LocalServerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "braiddb-serve-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override {
    server_.reset();
    std::filesystem::remove_all(dir_);
  }

  std::string Path() const { return dir_ + "/socket"; }

  void StartServer() {
    const Status status = LocalServer::Start(dir_, "socket", &echo_, &server_);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  void StopServer() { server_.reset(); }

  std::unique_ptr<LocalClient> Connect() {
    std::unique_ptr<LocalClient> client;
    const Status status = LocalClient::Connect(dir_, "socket", &client);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return client;
  }

  // A socket of the server's kind, connected to the server.
  int ConnectRaw() const {
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, Path().c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0) << strerror(errno);
    return fd;
  }

  static void ExpectEcho(LocalClient* client, const std::string& message) {
    const Status sent = client->Send(message);
    ASSERT_TRUE(sent.ok()) << sent.ToString();
    std::string answer;
    const Status received = client->Receive(kPatienceMs, &answer, nullptr);
    ASSERT_TRUE(received.ok()) << received.ToString();
    EXPECT_EQ(answer, message);
  }

  Echo echo_;
  std::unique_ptr<LocalServer> server_;
  std::string dir_;
};

// Returns whether the thread that serves connections exists.
bool HasServiceThread() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name == "braid-serve") return true;
  }
  return false;
}

TEST_F(LocalServerTest, AnswersMessages) {
  StartServer();
  const auto client = Connect();
  ASSERT_NE(client, nullptr);
  ExpectEcho(client.get(), "a");
  ExpectEcho(client.get(), std::string(LocalServer::kMaxMessage, 'x'));
  EXPECT_TRUE(client->Send("").IsInvalidArgument());
  EXPECT_TRUE(client->Send(std::string(LocalServer::kMaxMessage + 1, 'x')).IsInvalidArgument());
  EXPECT_EQ(server_->connections(), 1u);
  EXPECT_EQ(echo_.last.pid, getpid());
  EXPECT_EQ(echo_.last.uid, getuid());
  std::string message;
  EXPECT_TRUE(client->Receive(0, &message, nullptr).IsTimedOut());
  EXPECT_TRUE(client->Receive(5, &message, nullptr).IsTimedOut());
  EXPECT_FALSE(client->IsClosed());
  EXPECT_FALSE(server_->Send(echo_.last.connection + 1000, "x"));
}

TEST_F(LocalServerTest, PassesOpenFiles) {
  StartServer();
  std::vector<int> sent;
  for (int i = 0; i < 40; ++i) {
    sent.push_back(open((dir_ + "/file" + std::to_string(i)).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    ASSERT_EQ(write(sent.back(), &i, sizeof i), static_cast<ssize_t>(sizeof i));
  }
  echo_.descriptors = sent;
  const auto client = Connect();
  ASSERT_TRUE(client->Send("files").ok());
  std::string message;
  std::vector<int> received;
  ASSERT_TRUE(client->Receive(kPatienceMs, &message, &received).ok());
  ASSERT_EQ(received.size(), sent.size());
  for (int i = 0; i < static_cast<int>(received.size()); ++i) {
    int value = -1;
    EXPECT_EQ(pread(received[i], &value, sizeof value, 0), static_cast<ssize_t>(sizeof value));
    EXPECT_EQ(value, i);
    EXPECT_NE(fcntl(received[i], F_GETFD) & FD_CLOEXEC, 0);
    close(received[i]);
  }

  // A caller that wants no files gets none.
  const int next_before = dup(0);
  close(next_before);
  ExpectEcho(client.get(), "files");
  const int next_after = dup(0);
  close(next_after);
  EXPECT_EQ(next_after, next_before);

  {  // More than the kernel passes in a message.
    const std::lock_guard lock(echo_.mutex);
    echo_.descriptors.assign(LocalServer::kMaxDescriptors + 1, sent[0]);
  }
  ASSERT_TRUE(client->Send("files").ok());
  EXPECT_TRUE(client->Receive(kPatienceMs, &message, &received).IsAborted());
  for (const int fd : sent) close(fd);
}

TEST_F(LocalServerTest, PassesAsManyOpenFilesAsAllowed) {
  StartServer();
  echo_.descriptors.assign(LocalServer::kMaxDescriptors, 0);
  const auto client = Connect();
  std::string message;
  std::vector<int> received;
  ASSERT_TRUE(client->Send("files").ok());
  ASSERT_TRUE(client->Receive(kPatienceMs, &message, &received).ok());
  EXPECT_EQ(received.size(), LocalServer::kMaxDescriptors);
  for (const int fd : received) close(fd);

  // A client that has no room for the files loses the message, and no files stay open.
  ASSERT_TRUE(client->Send("files").ok());
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit low = {100, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const Status status = client->Receive(kPatienceMs, &message, &received);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(status.IsIOError()) << status.ToString();
  EXPECT_TRUE(received.empty());
}

TEST_F(LocalServerTest, ClientSeesThatNobodyListens) {
  std::unique_ptr<LocalClient> client;
  EXPECT_TRUE(LocalClient::Connect(dir_, "socket", &client).IsNotFound());
  EXPECT_TRUE(LocalClient::Connect(dir_ + "/missing", "socket", &client).IsNotFound());
  EXPECT_TRUE(LocalClient::Connect(dir_, "so/cket", &client).IsInvalidArgument());
  EXPECT_TRUE(LocalClient::Connect("", "socket", &client).IsInvalidArgument());
  std::ofstream(Path()) << "text";
  EXPECT_TRUE(LocalClient::Connect(dir_, "socket", &client).IsNotFound());
  EXPECT_TRUE(LocalClient::Connect(Path(), "socket", &client).IsIOError()) << "the directory is a file";
}

TEST_F(LocalServerTest, EachSideSeesTheOtherClose) {
  StartServer();
  auto client = Connect();
  ExpectEcho(client.get(), "a");
  client.reset();
  EXPECT_TRUE(WaitUntil([&] { return echo_.closed_count() == 1; }));
  EXPECT_TRUE(WaitUntil([&] { return server_->connections() == 0; }));
  std::string message;
  for (const char* const command : {"close", "disconnect"}) {
    client = Connect();
    ASSERT_TRUE(client->Send(command).ok());
    EXPECT_TRUE(client->Receive(kPatienceMs, &message, nullptr).IsAborted());
    EXPECT_TRUE(client->IsClosed());
    EXPECT_TRUE(client->Send("x").IsAborted());
  }
  EXPECT_TRUE(WaitUntil([&] { return echo_.closed_count() == 3; }));
  client = Connect();
  ExpectEcho(client.get(), "a");
  StopServer();
  EXPECT_EQ(echo_.closed_count(), 4u);
  EXPECT_TRUE(client->IsClosed());
  EXPECT_TRUE(client->Receive(kPatienceMs, &message, nullptr).IsAborted());
  EXPECT_FALSE(std::filesystem::exists(Path()));
}

TEST_F(LocalServerTest, ShutdownEndsAWait) {
  StartServer();
  const auto client = Connect();
  ExpectEcho(client.get(), "a");
  Status status;
  std::thread waiting([&] {
    std::string message;
    status = client->Receive(-1, &message, nullptr);
  });
  client->Shutdown();
  waiting.join();
  EXPECT_TRUE(status.IsAborted()) << status.ToString();
  EXPECT_TRUE(client->Send("x").IsAborted());
  EXPECT_TRUE(WaitUntil([&] { return echo_.closed_count() == 1; }));
}

TEST_F(LocalServerTest, DisconnectsFromOtherThreads) {
  StartServer();
  const auto client = Connect();
  ExpectEcho(client.get(), "a");
  const uint64_t connection = echo_.last.connection;
  EXPECT_TRUE(server_->Send(connection, "news"));
  server_->Disconnect(connection);
  EXPECT_FALSE(server_->Send(connection, "more"));
  EXPECT_TRUE(client->IsClosed());
  std::string message;
  ASSERT_TRUE(client->Receive(kPatienceMs, &message, nullptr).ok());
  EXPECT_EQ(message, "news");
  EXPECT_TRUE(client->Receive(kPatienceMs, &message, nullptr).IsAborted());
  EXPECT_TRUE(WaitUntil([&] { return echo_.closed_count() == 1; }));
}

// A child process that runs `run` and then waits until it is killed.
class Child {
 public:
  explicit Child(const std::function<bool()>& run) {
    int ends[2];
    if (pipe(ends) != 0) abort();
    pid_ = ForkChild();
    if (pid_ == 0) {
      const char ok = run() ? 'y' : 'n';
      if (write(ends[1], &ok, 1) != 1) LeaveChild(1);
      for (;;) pause();
    }
    close(ends[1]);
    char ok = 'n';
    succeeded_ = read(ends[0], &ok, 1) == 1 && ok == 'y';
    close(ends[0]);
  }
  ~Child() { Kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  bool succeeded() const { return succeeded_; }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_;
  bool succeeded_;
};

TEST_F(LocalServerTest, ServerSeesThatAPeerWasKilled) {
  // Forked before the threads start. The child connects when the server is there.
  std::unique_ptr<LocalClient> client;
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t pid = ForkChild();
  if (pid == 0) {
    char byte;
    std::string message;
    if (read(go[0], &byte, 1) != 1 || !LocalClient::Connect(dir_, "socket", &client).ok() || !client->Send("a").ok() ||
        !client->Receive(kPatienceMs, &message, nullptr).ok()) {
      LeaveChild(1);
    }
    for (;;) pause();
  }
  StartServer();
  ASSERT_EQ(write(go[1], "g", 1), 1);
  EXPECT_TRUE(WaitUntil([&] { return echo_.seen_count() == 1; }));
  EXPECT_EQ(echo_.last.pid, pid);
  EXPECT_EQ(echo_.closed_count(), 0u);
  kill(pid, SIGKILL);
  EXPECT_TRUE(WaitUntil([&] { return echo_.closed_count() == 1; }));
  EXPECT_EQ(server_->connections(), 0u);
  waitpid(pid, nullptr, 0);
  for (const int end : go) close(end);
}

// The server's process is killed. A child of it lives on.
TEST_F(LocalServerTest, ClientSeesThatTheServerWasKilledThoughAChildOfItLives) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t parent = ForkChild();
  if (parent == 0) {
    if (!LocalServer::Start(dir_, "socket", &echo_, &server_).ok()) LeaveChild(1);
    while (echo_.seen_count() == 0) usleep(1000);
    const pid_t child = ForkChild();
    while (child == 0) pause();
    if (write(ends[1], &child, sizeof child) != sizeof child) LeaveChild(1);
    for (;;) pause();
  }
  std::unique_ptr<LocalClient> client;
  ASSERT_TRUE(WaitUntil([&] { return LocalClient::Connect(dir_, "socket", &client).ok(); }));
  ExpectEcho(client.get(), "a");
  pid_t child = 0;
  ASSERT_EQ(read(ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  EXPECT_FALSE(client->IsClosed());
  kill(parent, SIGKILL);
  EXPECT_TRUE(WaitUntil([&] { return client->IsClosed(); }));
  std::string message;
  EXPECT_TRUE(client->Receive(kPatienceMs, &message, nullptr).IsAborted());
  std::unique_ptr<LocalClient> second;
  EXPECT_TRUE(WaitUntil([&] { return LocalClient::Connect(dir_, "socket", &second).IsNotFound(); }));
  waitpid(parent, nullptr, 0);
  EXPECT_TRUE(std::filesystem::exists(Path())) << "a killed process leaves its file";
  StartServer();  // replaces the file
  ExpectEcho(Connect().get(), "b");
  kill(child, SIGKILL);
  for (const int end : ends) close(end);
}

TEST_F(LocalServerTest, AChildHasNoPartInServersAndConnectionsOfItsParent) {
  StartServer();
  auto client = Connect();
  ExpectEcho(client.get(), "a");
  const uint64_t connection = echo_.last.connection;
  Child child([&] {
    std::string message;
    const bool is_apart = client->IsClosed() && client->Send("x").IsAborted() &&
                          client->Receive(-1, &message, nullptr).IsAborted() && !server_->Send(connection, "x") &&
                          server_->connections() == 0;
    server_->Disconnect(connection);
    client.reset();
    server_.reset();
    return is_apart;
  });
  EXPECT_TRUE(child.succeeded());
  EXPECT_TRUE(std::filesystem::exists(Path()));
  EXPECT_FALSE(client->IsClosed());
  ExpectEcho(client.get(), "b");
  ExpectEcho(Connect().get(), "c");

  // The child keeps neither side open.
  StopServer();
  EXPECT_TRUE(client->IsClosed());
  StartServer();
  client = Connect();
  ExpectEcho(client.get(), "d");
  const size_t closed = echo_.closed_count();
  Child second([] { return true; });
  client.reset();
  EXPECT_TRUE(WaitUntil([&] { return echo_.closed_count() == closed + 1; }));
}

#if !defined(__SANITIZE_THREAD__)  // which allows no threads in a child of a process with threads
TEST_F(LocalServerTest, AChildStartsServersOfItsOwn) {
  StartServer();
  ExpectEcho(Connect().get(), "a");
  Child child([&] {
    static Echo echo;
    static std::unique_ptr<LocalServer> server;
    if (!LocalServer::Start(dir_, "child", &echo, &server).ok()) return false;
    return true;
  });
  ASSERT_TRUE(child.succeeded());
  std::unique_ptr<LocalClient> client;
  ASSERT_TRUE(LocalClient::Connect(dir_, "child", &client).ok());
  ExpectEcho(client.get(), "b");
  child.Kill();
  EXPECT_TRUE(WaitUntil([&] { return client->IsClosed(); }));
}
#endif

// Forks at random moments of the service: no child hangs, whatever was locked.
TEST_F(LocalServerTest, ForksWhileMessagesArrive) {
  StartServer();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        const auto client = Connect();
        for (int i = 0; i < 5; ++i) ExpectEcho(client.get(), "message");
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    const pid_t pid = ForkChild();
    if (pid == 0) {
      server_.reset();
      LeaveChild(0);
    }
    int how = 1;
    EXPECT_EQ(waitpid(pid, &how, 0), pid);
    EXPECT_EQ(how, 0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(std::filesystem::exists(Path()));
}

TEST_F(LocalServerTest, RandomConnectsAndCloses) {
  StartServer();
  std::mt19937 random(7);
  std::vector<std::unique_ptr<LocalClient>> clients;
  for (int i = 0; i < 500; ++i) {
    if (clients.empty() || random() % 2 == 0) {
      clients.push_back(Connect());
      if (random() % 2 == 0) ExpectEcho(clients.back().get(), std::to_string(i));
    } else {
      std::swap(clients[random() % clients.size()], clients.back());
      if (random() % 4 == 0) {
        EXPECT_TRUE(clients.back()->Send("silence").ok());
      }
      clients.pop_back();
    }
  }
  const uint32_t open = static_cast<uint32_t>(clients.size());
  EXPECT_TRUE(WaitUntil([&] { return server_->connections() == open; }));
  for (const auto& client : clients) ExpectEcho(client.get(), "end");
  clients.clear();
  EXPECT_TRUE(WaitUntil([&] { return server_->connections() == 0; }));
  EXPECT_TRUE(WaitUntil([&] { return echo_.closed_count() == echo_.seen_count(); }));
}

TEST_F(LocalServerTest, LimitsConnections) {
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max < 2 * LocalServer::kMaxConnections + 200) GTEST_SKIP() << "too few open files are allowed";
  const rlimit high = {limit.rlim_max, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &high), 0);
  StartServer();
  std::vector<std::unique_ptr<LocalClient>> clients;
  for (uint32_t i = 0; i < LocalServer::kMaxConnections + 5; ++i) clients.push_back(Connect());
  for (int i = 0; i < 5; ++i) {
    std::string message;
    EXPECT_TRUE(clients.back()->Receive(kPatienceMs, &message, nullptr).IsAborted());
    clients.pop_back();
  }
  EXPECT_EQ(server_->connections(), LocalServer::kMaxConnections);
  ExpectEcho(clients.back().get(), "a");
  clients.clear();
  EXPECT_TRUE(WaitUntil([&] { return server_->connections() == 0; }));
  ExpectEcho(Connect().get(), "b");
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST_F(LocalServerTest, WaitsWithoutLoadWhileDescriptorsAreShort) {
  StartServer();
  const auto client = Connect();
  ExpectEcho(client.get(), "a");
  const int raw = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit low = {3, limit.rlim_max};
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, Path().c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  ASSERT_EQ(connect(raw, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ExpectEcho(client.get(), "b");
  const auto cpu_time = [] {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const auto before = cpu_time();
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  EXPECT_LT(cpu_time() - before, std::chrono::milliseconds(200));
  EXPECT_EQ(server_->connections(), 1u);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(WaitUntil([&] { return server_->connections() == 2; }));
  close(raw);
}

TEST_F(LocalServerTest, ServesLongPaths) {
  const std::string top = dir_;
  while (dir_.size() < 3000) {
    dir_ += "/" + std::string(200, 'd');
    ASSERT_EQ(mkdir(dir_.c_str(), 0700), 0);
  }
  StartServer();
  EXPECT_TRUE(std::filesystem::is_socket(Path()));
  ExpectEcho(Connect().get(), "a");
  StopServer();
  EXPECT_FALSE(std::filesystem::exists(Path()));
  std::unique_ptr<LocalClient> client;
  EXPECT_TRUE(LocalClient::Connect(dir_, "socket", &client).IsNotFound());
  dir_ = top;
}

TEST_F(LocalServerTest, AForeignFileStays) {
  std::ofstream(Path()) << "precious";
  Status status = LocalServer::Start(dir_, "socket", &echo_, &server_);
  EXPECT_TRUE(status.IsIOError());
  EXPECT_NE(status.ToString().find(Path() + " is not a socket"), std::string::npos) << status.ToString();
  std::string text;
  std::ifstream(Path()) >> text;
  EXPECT_EQ(text, "precious");
  std::filesystem::remove(Path());
  std::filesystem::create_symlink(dir_ + "/elsewhere", Path());
  EXPECT_TRUE(LocalServer::Start(dir_, "socket", &echo_, &server_).IsIOError());
  EXPECT_TRUE(std::filesystem::is_symlink(Path()));
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/elsewhere"));
  EXPECT_TRUE(LocalServer::Start(dir_ + "/missing", "socket", &echo_, &server_).IsNotFound());
  EXPECT_TRUE(LocalServer::Start(dir_, "", &echo_, &server_).IsInvalidArgument());
  EXPECT_EQ(server_, nullptr);
  EXPECT_TRUE(WaitUntil([] { return !HasServiceThread(); }));
}

TEST_F(LocalServerTest, OnlyTheOwnerMayConnect) {
  for (const mode_t mask : {0, 022, 0777}) {
    const mode_t before = umask(mask);
    StartServer();
    umask(before);
    struct stat file;
    ASSERT_EQ(lstat(Path().c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & ALLPERMS, 0600u) << mask;
    ExpectEcho(Connect().get(), "a");
    StopServer();
  }
}

TEST_F(LocalServerTest, ALaterServerReplacesTheFile) {
  StartServer();
  const auto old_client = Connect();
  ExpectEcho(old_client.get(), "a");
  Echo second_echo;
  std::unique_ptr<LocalServer> second;
  ASSERT_TRUE(LocalServer::Start(dir_, "socket", &second_echo, &second).ok());
  ExpectEcho(Connect().get(), "b");
  EXPECT_EQ(second_echo.messages, 1u);
  ExpectEcho(old_client.get(), "c");
  StopServer();
  EXPECT_TRUE(std::filesystem::exists(Path()));
  EXPECT_TRUE(old_client->IsClosed());
  ExpectEcho(Connect().get(), "d");
  second.reset();
  EXPECT_FALSE(std::filesystem::exists(Path()));
  EXPECT_TRUE(WaitUntil([] { return !HasServiceThread(); }));
}

TEST_F(LocalServerTest, ServersOfOneProcessShareAThread) {
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(WaitUntil([] { return !HasServiceThread(); }));
    StartServer();
    Echo second_echo;
    std::unique_ptr<LocalServer> second;
    ASSERT_TRUE(LocalServer::Start(dir_, "second", &second_echo, &second).ok());
    EXPECT_TRUE(WaitUntil(HasServiceThread));
    std::unique_ptr<LocalClient> client;
    ASSERT_TRUE(LocalClient::Connect(dir_, "second", &client).ok());
    ExpectEcho(client.get(), "a");
    ExpectEcho(Connect().get(), "b");
    EXPECT_FALSE(server_->Send(second_echo.last.connection, "x")) << "a connection of another server";
    StopServer();
    EXPECT_TRUE(HasServiceThread());
    ExpectEcho(client.get(), "c");
  }
}

// Sends `bytes` with `count` copies of a descriptor.
void SendRaw(int socket, size_t bytes, size_t count) {
  const std::string text(bytes, 'g');
  alignas(cmsghdr) char control[CMSG_SPACE(10 * sizeof(int))] = {};
  iovec data = {const_cast<char*>(text.data()), bytes};
  msghdr header = {};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (count > 0) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* const part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(count * sizeof(int));
    for (size_t i = 0; i < count; ++i) memcpy(CMSG_DATA(part) + i * sizeof(int), &socket, sizeof socket);
  }
  (void)sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool WaitForEnd(int socket) {
  char byte;
  return WaitUntil([&] {
    const ssize_t bytes = recv(socket, &byte, 1, MSG_DONTWAIT);
    return bytes == 0 || (bytes < 0 && errno == ECONNRESET);
  });
}

TEST_F(LocalServerTest, ClosesConnectionsOfPeersThatBreakTheRules) {
  StartServer();
  const auto good = Connect();
  ExpectEcho(good.get(), "a");
  constexpr struct {
    size_t bytes, descriptors;
  } kBad[] = {{0, 0}, {LocalServer::kMaxMessage + 1, 0}, {60'000, 0}, {5, 1}, {0, 1}, {5, 10}};
  for (const auto& bad : kBad) {
    const int raw = ConnectRaw();
    SendRaw(raw, bad.bytes, bad.descriptors);
    EXPECT_TRUE(WaitForEnd(raw)) << bad.bytes << " bytes, " << bad.descriptors << " descriptors";
    close(raw);
  }
  EXPECT_EQ(echo_.messages, 1u);

  // A flood of garbage and of connections does not keep the good client from being served.
  std::atomic<bool> stop{false};
  std::vector<std::thread> floods;
  for (int t = 0; t < 3; ++t) {
    floods.emplace_back([&, t] {
      std::mt19937 random(t);
      while (!stop) {
        const int raw = ConnectRaw();
        for (int i = 0; i < 20; ++i) SendRaw(raw, random() % 5000 / (t + 1), random() % 8 == 0 ? random() % 10 : 0);
        if (t == 1) shutdown(raw, SHUT_WR);
        close(raw);
      }
    });
  }
  for (test::Rounds rounds(30); rounds.Next();) ExpectEcho(good.get(), std::to_string(rounds.number()));
  stop = true;
  for (std::thread& flood : floods) flood.join();
  EXPECT_TRUE(WaitUntil([&] { return server_->connections() == 1; }));
  ExpectEcho(good.get(), "end");
}

TEST_F(LocalServerTest, DisconnectsAPeerThatDoesNotRead) {
  StartServer();
  const auto lazy = Connect(), good = Connect();
  ExpectEcho(lazy.get(), "a");
  const uint64_t connection = echo_.last.connection;
  const std::string news(LocalServer::kMaxMessage, 'n');
  int sent = 0;
  while (sent < 1'000'000 && server_->Send(connection, news)) ++sent;
  EXPECT_GT(sent, 0);
  EXPECT_LT(sent, 1'000'000);
  EXPECT_TRUE(WaitUntil([&] { return echo_.closed_count() == 1; }));
  EXPECT_TRUE(lazy->IsClosed());
  ExpectEcho(good.get(), "b");

  // Messages of a wrong size end the connection as well.
  EXPECT_FALSE(server_->Send(echo_.last.connection, ""));
  std::string message;
  EXPECT_TRUE(good->Receive(kPatienceMs, &message, nullptr).IsAborted());
}

TEST_F(LocalServerTest, IsDestroyedWhileMessagesArrive) {
  for (int round = 0; round < 10; ++round) {
    auto echo = std::make_unique<Echo>();
    std::unique_ptr<LocalServer> server;
    ASSERT_TRUE(LocalServer::Start(dir_, "socket", echo.get(), &server).ok());
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        std::string message;
        while (!stop) {
          std::unique_ptr<LocalClient> client;
          if (!LocalClient::Connect(dir_, "socket", &client).ok()) continue;
          while (!stop && client->Send("message").ok() && client->Receive(kPatienceMs, &message, nullptr).ok()) {
          }
        }
      });
    }
    EXPECT_TRUE(WaitUntil([&] { return echo->seen_count() >= 2; }));
    std::thread([&] { server.reset(); }).join();
    EXPECT_EQ(echo->closed_count(), echo->seen_count());
    echo.reset();
    stop = true;
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_F(LocalServerTest, ThreadsStartAndStopServersAtTheSameTime) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        Echo echo;
        std::unique_ptr<LocalServer> server;
        const std::string name = "socket" + std::to_string(t);
        ASSERT_TRUE(LocalServer::Start(dir_, name, &echo, &server).ok());
        std::unique_ptr<LocalClient> client;
        ASSERT_TRUE(LocalClient::Connect(dir_, name, &client).ok());
        ExpectEcho(client.get(), "a");
        server.reset();
        EXPECT_TRUE(client->IsClosed());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(WaitUntil([] { return !HasServiceThread(); }));
}

// A handler that starts another server when a message arrives.
TEST_F(LocalServerTest, AHandlerStartsAServer) {
  struct Starter : Echo {
    bool OnMessage(const LocalServer::Peer& peer, std::string_view message) override {
      return LocalServer::Start(dir, "second", &second_echo, &second).ok() && Echo::OnMessage(peer, message);
    }
    std::string dir;
    Echo second_echo;
    std::unique_ptr<LocalServer> second;
  } starter;
  starter.dir = dir_;
  ASSERT_TRUE(LocalServer::Start(dir_, "socket", &starter, &server_).ok());
  ExpectEcho(Connect().get(), "a");
  StopServer();
  std::unique_ptr<LocalClient> client;
  ASSERT_TRUE(LocalClient::Connect(dir_, "second", &client).ok());
  ExpectEcho(client.get(), "b");
}

}  // namespace
}  // namespace braiddb
