// LocalService: the thread of a process that accepts connections and reads messages for all its LocalServers.
//
// CONCURRENCY  Only the service thread accepts, reads, erases and closes connections, and calls handlers. Other threads mark what
//              the thread is to do and wake the thread. Handlers are called without a lock.
//              Lock order: lifecycle_, mutex_, the mutex of util/fork_guard.cc.
// FORK         Each process has its own service. A child creates a new service at the first use. The child never touches the
//              service of its parent, whose mutexes may be locked and whose thread does not exist in the child.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "braiddb/status.h"
#include "util/local_server.h"
#include "util/unshared_descriptor.h"

namespace braiddb {

class LocalService {
 public:
  // What the service knows of one server.
  struct Server {
    int listener = -1;
    LocalServer::Handler* handler = nullptr;
    LocalServer* owner = nullptr;
    uint64_t id = 0;           // 0: not in the service
    uint32_t connections = 0;  // guarded by mutex_
    bool is_closing = false;   // guarded by mutex_
    bool is_paused = false;    // only the service thread: accepts no connection until resume_at_
  };

  // The service of this process. Lives as long as the process.
  static LocalService& OfThisProcess();
  bool is_of_this_process() const { return generation_ == fork_generation.load(std::memory_order_relaxed); }
  bool IsServiceThread() const { return std::this_thread::get_id() == thread_id_.load(std::memory_order_relaxed); }

  // Held while socket files are created and removed, and while the thread is started and joined. A handler may lock the mutex,
  // because the thread is joined after the last server has been removed.
  std::mutex& lifecycle() { return lifecycle_; }
  // REQUIRES: the caller holds lifecycle(). Starts the thread for the first server.
  Status Add(Server* server);
  // Closes the connections of the server and its listener's registration. Returns when no call of its handler is running.
  // REQUIRES: the caller does not hold lifecycle().
  void Remove(Server* server);

  bool Send(const Server& server, uint64_t connection, std::string_view message, std::span<const int> descriptors);
  void Disconnect(const Server& server, uint64_t connection);
  uint32_t Connections(const Server& server);

 private:
  Status AddToThread(Server* server);
  struct Connection {
    UnsharedDescriptor socket;
    Server* server;
    LocalServer::Peer peer;
    bool is_ending = false;        // guarded by mutex_; set with shutdown(2), whose event makes the thread close the connection
    bool has_had_message = false;  // only the service thread
  };

  explicit LocalService(LocalService* parents);
  Status StartThread();
  void StopThread();
  void Wake();
  void Run();
  void HandleEvent(uint64_t id);
  void Accept(Server* server);
  void AddConnection(Server* server, UnsharedDescriptor socket);
  void PauseAccepting(Server* server);
  void ResumeAccepting();
  void Read(Connection* connection);
  bool HandOver(Connection* connection, std::string_view message);
  void Close(uint64_t id);
  bool CloseServers();
  void CloseServer(Server* server);

  const uint32_t generation_ = fork_generation.load(std::memory_order_relaxed);
  LocalService* const parents_;  // keeps the service of the parent process reachable for leak checkers

  std::mutex lifecycle_;
  uint32_t servers_with_thread_ = 0;  // guarded by lifecycle_
  std::thread thread_;
  std::atomic<std::thread::id> thread_id_{};
  // Open while the thread exists.
  UnsharedDescriptor epoll_;
  UnsharedDescriptor event_;

  std::mutex mutex_;
  std::condition_variable server_removed_;
  uint64_t last_id_ = 0;  // ids are unique among servers and connections; 0 is event_
  std::map<uint64_t, Server*> servers_;
  std::unordered_map<uint64_t, Connection> connections_;  // written by the service thread only
  bool stops_ = false;

  // Only the service thread.
  bool has_paused_ = false;
  std::chrono::steady_clock::time_point resume_at_;
};

}  // namespace braiddb
