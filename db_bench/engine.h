// Engine: what db_bench asks of a key-value store. To add a store, write a Driver, an Engine and a Session for it in a file
// engine_<name>.cc, and name its factory in engine.cc; BENCHMARKING.md has the rules that make figures comparable.
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
  bool removes = false;  // the key; the value is not looked at
};

// One thread's use of an open database. Thread safety: one thread at a time. Must be gone before its Engine.
class Session {
 public:
  virtual ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  virtual Status Put(Slice key, Slice value) = 0;
  // OK also if there is no such key.
  virtual Status Delete(Slice key) = 0;
  // All of them or nothing, if the store can do that.
  virtual Status Write(const std::vector<Update>& updates) = 0;

  // Copies the value. NotFound if there is none.
  virtual Status Get(Slice key, std::string* value) = 0;
  // Both vectors become as long as `keys`. Default: one Get after the other.
  virtual void MultiGet(const std::vector<Slice>& keys, std::vector<std::string>* values, std::vector<Status>* statuses);

  // Sees at least what was written before the call. Null if the store has no order.
  virtual std::unique_ptr<Iterator> NewIterator() = 0;

  // What only some stores can do; MakeDriver refuses flags that need it for the others. Defaults: NotSupported, and null.
  // Updates the value by --merge_operator.
  virtual Status Merge(Slice key, Slice operand);
  // Deletes the keys in [begin, end).
  virtual Status DeleteRange(Slice begin, Slice end);
  // From now on iterators of this session see the database as it is at the call.
  virtual Status PinSnapshot();
  // Of the keys in [lower, upper). Valid until the next call.
  virtual std::unique_ptr<Iterator> NewBoundedIterator(const std::optional<Slice>& lower, const std::optional<Slice>& upper);

 protected:
  Session() = default;
};

// An open database. Thread safety: all methods may be called concurrently. The destructor closes it.
class Engine {
 public:
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // sync: writes of this session are to be durable as `--sync` asks for. All sessions of a time have the same.
  virtual Status NewSession(bool sync, std::unique_ptr<Session>* session) = 0;

  // NotSupported, with the reason, is said and is no error.
  virtual Status Flush() = 0;
  virtual Status Compact() = 0;
  virtual Status WaitForCompaction() = 0;
  // Reads everything and compares checksums.
  virtual Status VerifyChecksums() { return Status::NotSupported("this engine has no such call"); }

  // A text for the benchmarks "stats" and "levelstats" and for "statistics". False if there is none of that name.
  virtual bool GetText(std::string_view name, std::string* text) = 0;
  // For --json, which asks ten times a second while a benchmark runs: how much there is of what, now. The same names in the same
  // order each time; none if the engine does not tell.
  virtual std::vector<Figure> State() { return {}; }
  // … and what it has counted since it was opened. None of these ever becomes less.
  virtual std::vector<Figure> Counters() { return {}; }
  // Closes it, and says if that failed. No other call may follow.
  virtual Status Close() = 0;

 protected:
  Engine() = default;
};

// A store as a program or library, before a database is opened. Must outlive its engines.
class Driver {
 public:
  virtual ~Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Name and version, as "RocksDB 7.8.3 (librocksdb.so.7.8)".
  virtual std::string Version() const = 0;
  // What differs from the store's defaults, and anything that makes it slower than it should be.
  virtual std::string Settings() const = 0;
  // Sizes of the pages that the database's files and DRAM are on, where huge pages are allowed (--huge_pages=own).
  virtual std::string Pages() const { return "those of the system: 4 KiB for files on tmpfs, unless it is mounted with huge="; }
  // What an acknowledged write survives.
  virtual std::string Durability(bool sync) const = 0;

  // Opens the database in the directory, which is there if `exists`; without, a new one is made.
  virtual Status Open(const std::string& path, bool exists, std::unique_ptr<Engine>* engine) = 0;
  // Removes it; OK if there is none.
  virtual Status Destroy(const std::string& path) = 0;

 protected:
  Driver() = default;
};

// `engine` is a name, and for some a colon and an argument: braiddb:nv_tree, rocksdb:/path/to/librocksdb.so. InvalidArgument for
// an unknown one, with the names that there are; NotSupported if its library was not there when db_bench was configured, or
// cannot be loaded. The flags must outlive the driver.
Status MakeDriver(const std::string& engine, const Flags& flags, std::unique_ptr<Driver>* driver);

struct EngineName {
  const char* name;
  const char* what;  // it is, and what its argument means
};
// All that this db_bench knows, built in or not.
std::vector<EngineName> EngineNames();

// The factories; `argument` is empty if there is none.
Status MakeBraidDbDriver(const std::string& argument, const Flags& flags, std::unique_ptr<Driver>* driver);
Status MakeRocksDbDriver(const std::string& argument, const Flags& flags, std::unique_ptr<Driver>* driver);
Status MakeLevelDbDriver(const std::string& argument, const Flags& flags, std::unique_ptr<Driver>* driver);
Status MakeLmdbDriver(const std::string& argument, const Flags& flags, std::unique_ptr<Driver>* driver);
Status MakeDramCheckpointDriver(const std::string& argument, const Flags& flags, std::unique_ptr<Driver>* driver);
Status MakeNullDriver(const std::string& argument, const Flags& flags, std::unique_ptr<Driver>* driver);

}  // namespace braiddb::bench
