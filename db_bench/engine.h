// Engine: the interface between db_bench and a key-value store. To add a store, implement Driver, Engine, and Session in
// engine_<name>.cc, and add its factory to engine.cc. BENCHMARKING.md has the rules for comparable results.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braiddb/iterator.h"
#include "braiddb/slice.h"
#include "braiddb/status.h"
#include "db_bench/figure.h"
#include "db_bench/flags.h"

namespace braiddb::bench {

struct Update {
  Slice key;
  Slice value;
  bool removes = false;  // removes the key and ignores the value
};

// One thread's access to an open database. Thread safety: one thread at a time. Must be destroyed before its Engine.
class Session {
 public:
  virtual ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  virtual Status Put(Slice key, Slice value) = 0;
  // Returns OK also if the key does not exist.
  virtual Status Delete(Slice key) = 0;
  // Atomic if the store supports atomic batches.
  virtual Status Write(const std::vector<Update>& updates) = 0;

  // Copies the value. Returns NotFound if the key does not exist.
  virtual Status Get(Slice key, std::string* value) = 0;
  // Resizes both vectors to the size of `keys`. Default: one Get per key.
  virtual void MultiGet(const std::vector<Slice>& keys, std::vector<std::string>* values, std::vector<Status>* statuses);

  // Sees at least all writes before the call. Returns null if the store has no order.
  virtual std::unique_ptr<Iterator> NewIterator() = 0;

  // Optional features. MakeDriver refuses flags that need a feature the store lacks. Defaults: NotSupported and null.
  // Applies --merge_operator to the value.
  virtual Status Merge(Slice key, Slice operand);
  // Deletes the keys in [begin, end).
  virtual Status DeleteRange(Slice begin, Slice end);
  // Later iterators of this session see the database at the time of this call.
  virtual Status PinSnapshot();
  // Iterates over the keys in [lower, upper). Valid until the next call.
  virtual std::unique_ptr<Iterator> NewBoundedIterator(const std::optional<Slice>& lower, const std::optional<Slice>& upper);

  // For --perf_level: the library measures what the calling thread does from now on. `level`: of RocksDB's PerfLevel.
  virtual void BeginCounting(uint32_t) {}
  // Ends that. Returns the counters in RocksDB's form, see PerfCounters; empty if the store has none.
  virtual std::string EndCounting() { return {}; }

 protected:
  Session() = default;
};

// An open database. Thread safety: all methods may be called concurrently. The destructor closes the database.
class Engine {
 public:
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // sync: writes of this session are durable as `--sync` demands. All sessions that exist at the same time have the same value.
  virtual Status NewSession(bool sync, std::unique_ptr<Session>* session) = 0;

  // NotSupported is printed with its reason and is not an error.
  virtual Status Flush() = 0;
  virtual Status Compact() = 0;
  virtual Status WaitForCompaction() = 0;
  // Reads all data and verifies checksums.
  virtual Status VerifyChecksums() { return Status::NotSupported("this engine has no such call"); }

  // A text for the benchmarks "stats" and "levelstats" and for "statistics". Returns false for an unknown name.
  virtual bool GetText(std::string_view name, std::string* text) = 0;
  // Current sizes for --json, which calls this ten times per second while a benchmark runs. Returns the same names in the same
  // order each time. Empty if the engine has none.
  virtual std::vector<Figure> State() { return {}; }
  // Counters since the open, for --json. A counter never decreases.
  virtual std::vector<Figure> Counters() { return {}; }
  // Closes the database and returns errors. No other call may follow.
  virtual Status Close() = 0;

 protected:
  Engine() = default;
};

// A store before a database is opened. Must outlive its engines.
class Driver {
 public:
  virtual ~Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Name and version, such as "RocksDB 7.8.3 (librocksdb.so.7.8)".
  virtual std::string Version() const = 0;
  // Differences from the store's defaults, and conditions that slow it down.
  virtual std::string Settings() const = 0;
  // Page sizes of the database's files and DRAM if huge pages are allowed (--huge_pages=own).
  virtual std::string Pages() const { return "those of the system: 4 KiB for files on tmpfs, unless it is mounted with huge="; }
  // The failures that an acknowledged write survives.
  virtual std::string Durability(bool sync) const = 0;

  // Opens the database in the directory. `exists`: the database exists; otherwise it is created.
  virtual Status Open(const std::string& path, bool exists, std::unique_ptr<Engine>* engine) = 0;
  // Opens, for reading only, a database that another process has open for writing. For --reader_processes.
  virtual Status OpenToRead(const std::string& path, std::unique_ptr<Engine>* engine);
  // Removes the database. Returns OK if none exists.
  virtual Status Destroy(const std::string& path) = 0;

 protected:
  Driver() = default;
};

// `engine`: a name, optionally with a colon and an argument: braiddb:nv_tree, rocksdb:/path/to/librocksdb.so. Returns
// InvalidArgument, with the known names, for an unknown one. Returns NotSupported if the library was missing when db_bench was
// configured, or cannot be loaded. The flags must outlive the driver.
Status MakeDriver(const std::string& engine, const Flags& flags, std::unique_ptr<Driver>* driver);

struct EngineName {
  const char* name;
  const char* what;  // description, and the meaning of its argument
};
// All engines that this db_bench knows, built in or not.
std::vector<EngineName> EngineNames();

// The factories. `argument` is empty if none was given.
Status MakeBraidDbDriver(const std::string& argument, const Flags& flags, std::unique_ptr<Driver>* driver);
Status MakeRocksDbDriver(const std::string& argument, const Flags& flags, std::unique_ptr<Driver>* driver);
Status MakeLevelDbDriver(const std::string& argument, const Flags& flags, std::unique_ptr<Driver>* driver);
Status MakeLmdbDriver(const std::string& argument, const Flags& flags, std::unique_ptr<Driver>* driver);
Status MakeDramCheckpointDriver(const std::string& argument, const Flags& flags, std::unique_ptr<Driver>* driver);
Status MakeRedisDriver(const std::string& argument, const Flags& flags, std::unique_ptr<Driver>* driver);
Status MakePmdkMapDriver(const std::string& argument, const Flags& flags, std::unique_ptr<Driver>* driver);
Status MakeNullDriver(const std::string& argument, const Flags& flags, std::unique_ptr<Driver>* driver);

}  // namespace braiddb::bench
