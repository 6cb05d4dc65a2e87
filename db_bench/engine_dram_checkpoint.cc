// The engine dram-checkpoint: an ordered index in DRAM with a log. Periodically the whole index is written to a file by
// Boost.Serialization, and all operations wait for it. This is the synchronous checkpoint of ListDB's figure 14.
//
// FILES  log-<n>: appended records, each with a checksum. checkpoint: n, and the index at the begin of log-<n>.
// COST   A write is one system call. A checkpoint takes time in proportion to the size of the index.
// CRASH  log-<n+1> exists, empty, before the checkpoint that refers to it gets its name. The checkpoint file is synced before
//        rename(2). The next open removes unfinished files and older logs. An incomplete record ends its log.
#include "db_bench/engine.h"

#ifndef BRAIDDB_BOOST_SERIALIZATION

namespace braiddb::bench {

Status MakeDramCheckpointDriver(const std::string&, const Flags&, std::unique_ptr<Driver>*) {
  return Status::NotSupported(
      "dram-checkpoint is not built in: Boost.Serialization (libboost-serialization-dev) was not there when db_bench was "
      "configured");
}

}  // namespace braiddb::bench

#else

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <boost/archive/binary_iarchive.hpp>
#include <boost/archive/binary_oarchive.hpp>
#include <boost/serialization/map.hpp>
#include <boost/serialization/string.hpp>
#include <boost/version.hpp>
#include <charconv>
#include <chrono>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "util/file.h"
#include "util/format.h"

namespace braiddb::bench {

namespace {

using Index = std::map<std::string, std::string, std::less<>>;

constexpr uint64_t kDefaultInterval = 1'000'000;

uint64_t MicrosSince(std::chrono::steady_clock::time_point start) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start).count());
}

// ---- The log. A record: length, checksum, updates. An update: two lengths, a mark, key, value.

struct RecordHeader {
  uint64_t checksum;  // XXH3 of the updates, seeded with their length
  uint64_t bytes;     // size of the updates
};
struct UpdateHeader {
  uint32_t key_size;
  uint32_t value_size : 31;
  uint32_t removes : 1;
};
static_assert(sizeof(UpdateHeader) == 8);

uint64_t Checksum(const char* updates, uint64_t bytes) { return XXH3_64bits_withSeed(updates, bytes, bytes); }

void AppendBytes(const void* bytes, size_t size, std::string* record) { record->append(static_cast<const char*>(bytes), size); }

void AppendUpdate(const Update& update, std::string* record) {
  const Slice value = update.removes ? Slice() : update.value;
  const UpdateHeader header{static_cast<uint32_t>(update.key.size()), static_cast<uint32_t>(value.size()) & 0x7fffffffu,
                            update.removes ? 1u : 0u};
  AppendBytes(&header, sizeof(header), record);
  record->append(update.key);
  record->append(value);
}

void Apply(const Update& update, Index* index) {
  if (update.removes) {
    if (const auto at = index->find(update.key); at != index->end()) index->erase(at);
    return;
  }
  const auto at = index->lower_bound(update.key);
  if (at != index->end() && at->first == update.key) {
    at->second.assign(update.value);
  } else {
    index->emplace_hint(at, update.key, update.value);
  }
}

// Applies the updates of a record and returns their number.
uint64_t ApplyRecord(const char* updates, uint64_t bytes, Index* index) {
  uint64_t count = 0;
  for (const char* at = updates; at < updates + bytes; ++count) {
    UpdateHeader header;
    memcpy(&header, at, sizeof(header));
    const char* const key = at + sizeof(header);
    at = key + header.key_size + header.value_size;
    Apply({Slice(key, header.key_size), Slice(key + header.key_size, header.value_size), header.removes != 0}, index);
  }
  return count;
}

class Log {
 public:
  Log() = default;
  ~Log() { Close(); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  Status Open(const std::string& path, uint64_t size) {
    Close();
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd_ < 0 || ::ftruncate(fd_, static_cast<off_t>(size)) != 0 || ::lseek(fd_, 0, SEEK_END) < 0)
      return StatusFromErrno(errno, path);
    return Status::OK();
  }
  Status Append(const std::string& record, bool sync) {
    for (size_t done = 0; done < record.size();) {
      const ssize_t written = ::write(fd_, record.data() + done, record.size() - done);
      if (written < 0 && errno != EINTR) return StatusFromErrno(errno, "the log");
      if (written > 0) done += static_cast<size_t>(written);
    }
    return sync ? Sync() : Status::OK();
  }
  Status Sync() { return ::fdatasync(fd_) == 0 ? Status::OK() : StatusFromErrno(errno, "the log"); }

 private:
  void Close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  int fd_ = -1;
};

// ---- Store

class Store {
 public:
  Store(std::string path, uint64_t interval) : path_(std::move(path)), interval_(interval) {}

  Status Open(bool exists) {
    const auto start = std::chrono::steady_clock::now();
    if (exists && !FileExists(LogPath(0)) && !FileExists(CheckpointPath())) return Status::NotFound("no database in " + path_);
    Status status = CreateDir(path_);
    if (status.ok() && FileExists(CheckpointPath())) status = LoadCheckpoint();
    uint64_t valid = 0;
    if (status.ok()) status = ReplayLog(&valid);
    if (status.ok()) status = log_.Open(LogPath(number_), valid);
    if (status.ok()) status = RemoveOthers();
    if (status.ok()) status = SyncDir(path_);
    recovery_us_ = MicrosSince(start);
    return status;
  }

  Status Write(const Update* updates, size_t count, bool sync) {
    std::string record(sizeof(RecordHeader), '\0');
    for (size_t i = 0; i < count; ++i) AppendUpdate(updates[i], &record);
    const RecordHeader header{Checksum(record.data() + sizeof(header), record.size() - sizeof(header)),
                              record.size() - sizeof(header)};
    memcpy(record.data(), &header, sizeof(header));
    std::unique_lock lock(mutex_);
    if (!failed_.ok()) return failed_;
    // Records behind an incomplete record would be lost, so the store refuses further writes.
    if (Status status = log_.Append(record, sync); !status.ok()) return failed_ = status;
    for (size_t i = 0; i < count; ++i) {
      Apply(updates[i], &index_);
      removals_ += updates[i].removes;
    }
    log_bytes_ += record.size();
    since_checkpoint_ += count;
    return interval_ != 0 && since_checkpoint_ >= interval_ ? Checkpoint() : Status::OK();
  }

  Status Get(Slice key, std::string* value) const {
    std::shared_lock lock(mutex_);
    const auto at = index_.find(key);
    if (at == index_.end()) return Status::NotFound();
    *value = at->second;
    return Status::OK();
  }

  Status CheckpointNow() {
    std::unique_lock lock(mutex_);
    return failed_.ok() ? Checkpoint() : failed_;
  }

  Status Close() {
    std::unique_lock lock(mutex_);
    return failed_.ok() ? log_.Sync() : failed_;
  }

  std::vector<Figure> Counters() const {
    std::shared_lock lock(mutex_);
    return {{"log_bytes", log_bytes_},
            {"checkpoints", checkpoints_},
            {"checkpoint_us", checkpoint_us_},
            {"checkpoint_us_most", checkpoint_us_most_},
            {"checkpoint_bytes", checkpoint_bytes_},
            {"loaded_entries", loaded_entries_},
            {"replayed_entries", replayed_entries_},
            {"recovery_us", recovery_us_}};
  }
  std::vector<Figure> State() const {
    std::shared_lock lock(mutex_);
    return {{"entries", index_.size()}, {"updates_since_checkpoint", since_checkpoint_}};
  }

  // For iterators: index positions stay valid while no key is removed.
  std::shared_mutex& mutex() const { return mutex_; }
  const Index& index() const { return index_; }
  uint64_t removals() const { return removals_; }

 private:
  std::string LogPath(uint64_t number) const { return path_ + "/log-" + std::to_string(number); }
  std::string CheckpointPath() const { return path_ + "/checkpoint"; }

  // All operations wait. The engine exists to measure this.
  Status Checkpoint() {
    const auto start = std::chrono::steady_clock::now();
    const std::string unnamed = CheckpointPath() + ".tmp";
    Status status = Serialize(unnamed);
    if (status.ok()) status = log_.Open(LogPath(number_ + 1), 0);
    if (status.ok()) status = SyncDir(path_);
    if (status.ok() && ::rename(unnamed.c_str(), CheckpointPath().c_str()) != 0) status = StatusFromErrno(errno, unnamed);
    if (status.ok()) status = SyncDir(path_);
    if (status.ok()) status = RemoveFile(LogPath(number_));
    if (!status.ok()) return failed_ = status;
    ++number_;
    since_checkpoint_ = 0;
    const uint64_t took_us = MicrosSince(start);
    ++checkpoints_;
    checkpoint_us_ += took_us;
    checkpoint_us_most_ = std::max(checkpoint_us_most_, took_us);
    return Status::OK();
  }

  Status Serialize(const std::string& to) try {
    {
      std::ofstream file(to, std::ios::binary | std::ios::trunc);
      boost::archive::binary_oarchive archive(file);
      const uint64_t number = number_ + 1;
      archive << number << index_;
      file.flush();
      if (!file) return Status::IOError(to + ": cannot be written");
      checkpoint_bytes_ += static_cast<uint64_t>(file.tellp());
    }
    const int fd = ::open(to.c_str(), O_RDONLY | O_CLOEXEC);
    const bool is_durable = fd >= 0 && ::fsync(fd) == 0;
    const int error = errno;
    if (fd >= 0) ::close(fd);
    return is_durable ? Status::OK() : StatusFromErrno(error, to);
  } catch (const boost::archive::archive_exception& error) {
    return Status::IOError(to + ": " + error.what());
  }

  Status LoadCheckpoint() try {
    std::ifstream file(CheckpointPath(), std::ios::binary);
    boost::archive::binary_iarchive archive(file);
    archive >> number_ >> index_;
    loaded_entries_ = index_.size();
    return Status::OK();
  } catch (const std::exception& error) {
    return Status::Corruption(CheckpointPath() + ": " + error.what());
  }

  // *valid: bytes of complete records.
  Status ReplayLog(uint64_t* valid) {
    std::ifstream file(LogPath(number_), std::ios::binary);
    if (!file) return Status::OK();
    const uint64_t size = std::filesystem::file_size(LogPath(number_));
    RecordHeader header;
    std::string updates;
    while (file.read(reinterpret_cast<char*>(&header), sizeof(header))) {
      if (header.bytes > size - *valid) break;
      updates.resize(header.bytes);
      if (!file.read(updates.data(), static_cast<std::streamsize>(header.bytes))) break;
      if (header.checksum != Checksum(updates.data(), header.bytes)) break;
      replayed_entries_ += ApplyRecord(updates.data(), header.bytes, &index_);
      *valid += sizeof(header) + header.bytes;
    }
    since_checkpoint_ = replayed_entries_;
    return Status::OK();
  }

  Status RemoveOthers() const {
    Status status = RemoveFile(CheckpointPath() + ".tmp");
    std::vector<std::string> names;
    if (status.ok()) status = ListDir(path_, &names);
    for (const std::string& name : names) {
      if (status.ok() && name.starts_with("log-") && path_ + "/" + name != LogPath(number_))
        status = RemoveFile(path_ + "/" + name);
    }
    return status;
  }

  const std::string path_;
  const uint64_t interval_;  // number of updates between checkpoints
  mutable std::shared_mutex mutex_;
  Index index_;
  Log log_;
  Status failed_;
  uint64_t number_ = 0;  // number of the log
  uint64_t since_checkpoint_ = 0;
  uint64_t removals_ = 0;
  uint64_t log_bytes_ = 0;
  uint64_t checkpoints_ = 0;
  uint64_t checkpoint_us_ = 0;
  uint64_t checkpoint_us_most_ = 0;
  uint64_t checkpoint_bytes_ = 0;
  uint64_t loaded_entries_ = 0;
  uint64_t replayed_entries_ = 0;
  uint64_t recovery_us_ = 0;
};

// ---- Adapter

// Holds no lock between steps, so it sees concurrent writes. Key and value are copies.
class StoreIterator final : public Iterator {
 public:
  explicit StoreIterator(const Store& store) : store_(store) {}

  bool Valid() const override { return valid_; }
  void SeekToFirst() override {
    Move([](const Index& index) { return index.begin(); });
  }
  void SeekToLast() override {
    Move([](const Index& index) { return Before(index, index.end()); });
  }
  void Seek(Slice target) override {
    Move([target](const Index& index) { return index.lower_bound(target); });
  }
  void SeekForPrev(Slice target) override {
    Move([target](const Index& index) { return Before(index, index.upper_bound(target)); });
  }
  void Next() override {
    Move([this](const Index& index) { return HasPlace() ? std::next(place_) : index.upper_bound(key_); });
  }
  void Prev() override {
    Move([this](const Index& index) { return Before(index, HasPlace() ? place_ : index.lower_bound(key_)); });
  }
  Slice key() const override { return key_; }
  Slice value() const override { return value_; }
  Status status() const override { return Status::OK(); }

 private:
  static Index::const_iterator Before(const Index& index, Index::const_iterator place) {
    return place == index.begin() ? index.end() : std::prev(place);
  }
  bool HasPlace() const { return removals_ == store_.removals(); }

  template <class To>
  void Move(const To& to) {
    std::shared_lock lock(store_.mutex());
    const Index::const_iterator place = to(store_.index());
    removals_ = store_.removals();
    valid_ = place != store_.index().end();
    if (!valid_) return;
    place_ = place;
    key_ = place->first;
    value_ = place->second;
  }

  const Store& store_;
  Index::const_iterator place_;
  uint64_t removals_ = 0;  // when place_ was found
  bool valid_ = false;
  std::string key_;
  std::string value_;
};

class StoreSession final : public Session {
 public:
  StoreSession(Store* store, bool sync) : store_(*store), sync_(sync) {}

  Status Put(Slice key, Slice value) override { return WriteOne({key, value, false}); }
  Status Delete(Slice key) override { return WriteOne({key, Slice(), true}); }
  Status Write(const std::vector<Update>& updates) override { return store_.Write(updates.data(), updates.size(), sync_); }
  Status Get(Slice key, std::string* value) override { return store_.Get(key, value); }
  std::unique_ptr<Iterator> NewIterator() override { return std::make_unique<StoreIterator>(store_); }

 private:
  Status WriteOne(const Update& update) { return store_.Write(&update, 1, sync_); }

  Store& store_;
  const bool sync_;
};

class StoreEngine final : public Engine {
 public:
  explicit StoreEngine(std::unique_ptr<Store> store) : store_(std::move(store)) {}

  Status NewSession(bool sync, std::unique_ptr<Session>* session) override {
    *session = std::make_unique<StoreSession>(store_.get(), sync);
    return Status::OK();
  }
  Status Flush() override { return store_->CheckpointNow(); }
  Status Compact() override { return Status::NotSupported("an index in DRAM has nothing to compact"); }
  Status WaitForCompaction() override { return Status::NotSupported("dram-checkpoint does nothing in the background"); }
  bool GetText(std::string_view name, std::string* text) override {
    if (name != "stats") return false;
    text->clear();
    for (const std::vector<Figure>& figures : {State(), Counters()}) {
      for (const Figure& figure : figures)
        *text += Format("%s %llu\n", figure.name.c_str(), static_cast<unsigned long long>(figure.value));
    }
    return true;
  }
  std::vector<Figure> State() override { return store_->State(); }
  std::vector<Figure> Counters() override { return store_->Counters(); }
  Status Close() override { return store_->Close(); }

 private:
  const std::unique_ptr<Store> store_;
};

class DramCheckpointDriver final : public Driver {
 public:
  explicit DramCheckpointDriver(uint64_t interval) : interval_(interval) {}

  std::string Version() const override { return "dram-checkpoint, Boost.Serialization " BOOST_LIB_VERSION; }
  std::string Settings() const override {
    const std::string often = interval_ == 0 ? "no checkpoints" : "a checkpoint every " + std::to_string(interval_) + " updates";
    return "std::map under one lock, a log, " + often + ", which all operations wait for";
  }
  std::string Durability(bool sync) const override {
    return sync ? "power failure: fdatasync of the log at each write (on tmpfs that costs a system call only)"
                : "the process's end: the page cache has the log; of a power failure what the last checkpoint had (more with "
                  "--sync)";
  }

  Status Open(const std::string& path, bool exists, std::unique_ptr<Engine>* engine) override {
    auto store = std::make_unique<Store>(path, interval_);
    Status status = store->Open(exists);
    if (status.ok()) *engine = std::make_unique<StoreEngine>(std::move(store));
    return status;
  }
  Status Destroy(const std::string& path) override {
    std::vector<std::string> names;
    if (!FileExists(path)) return Status::OK();
    Status status = ListDir(path, &names);
    for (const std::string& name : names) {
      if (status.ok() && (name.starts_with("log-") || name.starts_with("checkpoint"))) status = RemoveFile(path + "/" + name);
    }
    std::error_code error;
    if (status.ok()) std::filesystem::remove(path, error);  // fails if the directory has other files
    return status;
  }

 private:
  const uint64_t interval_;
};

}  // namespace

Status MakeDramCheckpointDriver(const std::string& argument, const Flags&, std::unique_ptr<Driver>* driver) {
  uint64_t interval = kDefaultInterval;
  const char* const end = argument.data() + argument.size();
  if (!argument.empty()) {
    const auto [read, error] = std::from_chars(argument.data(), end, interval);
    if (error != std::errc() || read != end)
      return Status::InvalidArgument("dram-checkpoint:" + argument + " is not a number of updates between two checkpoints");
  }
  *driver = std::make_unique<DramCheckpointDriver>(interval);
  return Status::OK();
}

}  // namespace braiddb::bench

#endif
