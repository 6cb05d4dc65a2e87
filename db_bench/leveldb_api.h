// Sessions and iterators over the C interface that LevelDB and RocksDB share: the same functions with different prefixes. `Api`
// has a pointer for each function of BRAIDDB_LEVELDB_API, its own Get, and names for its types.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db_bench/engine.h"

// Functions of both libraries, as F(name in Api, name in the library without prefix).
#define BRAIDDB_LEVELDB_API(F)                                \
  F(open, open)                                               \
  F(close, close)                                             \
  F(destroy, destroy_db)                                      \
  F(put, put)                                                 \
  F(remove, delete)                                           \
  F(write, write)                                             \
  F(free, free)                                               \
  F(batch_create, writebatch_create)                          \
  F(batch_destroy, writebatch_destroy)                        \
  F(batch_clear, writebatch_clear)                            \
  F(batch_put, writebatch_put)                                \
  F(batch_remove, writebatch_delete)                          \
  F(iterator_create, create_iterator)                         \
  F(iterator_destroy, iter_destroy)                           \
  F(iterator_valid, iter_valid)                               \
  F(iterator_first, iter_seek_to_first)                       \
  F(iterator_last, iter_seek_to_last)                         \
  F(iterator_seek, iter_seek)                                 \
  F(iterator_next, iter_next)                                 \
  F(iterator_prev, iter_prev)                                 \
  F(iterator_key, iter_key)                                   \
  F(iterator_value, iter_value)                               \
  F(iterator_error, iter_get_error)                           \
  F(compact_range, compact_range)                             \
  F(property_value, property_value)                           \
  F(options_create, options_create)                           \
  F(options_destroy, options_destroy)                         \
  F(options_create_if_missing, options_set_create_if_missing) \
  F(options_error_if_exists, options_set_error_if_exists)     \
  F(write_options_create, writeoptions_create)                \
  F(write_options_destroy, writeoptions_destroy)              \
  F(write_options_sync, writeoptions_set_sync)                \
  F(read_options_create, readoptions_create)                  \
  F(read_options_destroy, readoptions_destroy)

namespace braiddb::bench {

// Converts an error text to a Status, and frees the text.
template <class Api>
Status TakeError(const Api& api, char* error) {
  if (error == nullptr) return Status::OK();
  Status status = Status::IOError(error);
  api.free(error);
  return status;
}

template <class Api>
class LevelDbApiIterator final : public Iterator {
 public:
  LevelDbApiIterator(const Api& api, typename Api::Iterator* iterator) : api_(api), iterator_(iterator) {}
  ~LevelDbApiIterator() override { api_.iterator_destroy(iterator_); }

  bool Valid() const override { return api_.iterator_valid(iterator_) != 0; }
  void SeekToFirst() override { api_.iterator_first(iterator_); }
  void SeekToLast() override { api_.iterator_last(iterator_); }
  void Seek(Slice target) override { api_.iterator_seek(iterator_, target.data(), target.size()); }
  void SeekForPrev(Slice target) override {
    Seek(target);
    if (!Valid()) {
      SeekToLast();
    } else if (key() != target) {
      Prev();
    }
  }
  void Next() override { api_.iterator_next(iterator_); }
  void Prev() override { api_.iterator_prev(iterator_); }
  Slice key() const override {
    size_t size = 0;
    const char* const data = api_.iterator_key(iterator_, &size);
    return {data, size};
  }
  Slice value() const override {
    size_t size = 0;
    const char* const data = api_.iterator_value(iterator_, &size);
    return {data, size};
  }
  Status status() const override {
    char* error = nullptr;
    api_.iterator_error(iterator_, &error);
    return TakeError(api_, error);
  }

 private:
  const Api& api_;
  typename Api::Iterator* const iterator_;
};

// Arguments and results of a call for several keys. Reused by the next call.
struct MultiGetBuffers {
  std::vector<const char*> keys;
  std::vector<size_t> key_sizes;
  std::vector<char*> values;
  std::vector<size_t> value_sizes;
  std::vector<char*> errors;

  void Take(const std::vector<Slice>& slices) {
    const size_t count = slices.size();
    keys.resize(count);
    key_sizes.resize(count);
    for (size_t i = 0; i < count; ++i) {
      keys[i] = slices[i].data();
      key_sizes[i] = slices[i].size();
    }
    values.assign(count, nullptr);
    value_sizes.assign(count, 0);
    errors.assign(count, nullptr);
  }
};

template <class Api>
class LevelDbApiSession : public Session {
 public:
  LevelDbApiSession(const Api& api, typename Api::Db* db, bool sync)
      : api_(api),
        db_(db),
        write_options_(api.write_options_create()),
        read_options_(api.read_options_create()),
        batch_(api.batch_create()) {
    api.write_options_sync(write_options_, sync ? 1 : 0);
  }
  ~LevelDbApiSession() override {
    api_.batch_destroy(batch_);
    api_.read_options_destroy(read_options_);
    api_.write_options_destroy(write_options_);
  }

  Status Put(Slice key, Slice value) override {
    char* error = nullptr;
    api_.put(db_, write_options_, key.data(), key.size(), value.data(), value.size(), &error);
    return TakeError(api_, error);
  }
  Status Delete(Slice key) override {
    char* error = nullptr;
    api_.remove(db_, write_options_, key.data(), key.size(), &error);
    return TakeError(api_, error);
  }
  Status Write(const std::vector<Update>& updates) override {
    api_.batch_clear(batch_);
    for (const Update& update : updates) {
      if (update.removes) {
        api_.batch_remove(batch_, update.key.data(), update.key.size());
      } else {
        api_.batch_put(batch_, update.key.data(), update.key.size(), update.value.data(), update.value.size());
      }
    }
    return CommitBatch();
  }
  Status Get(Slice key, std::string* value) override { return api_.Get(db_, read_options_, key, value); }
  // Calls the library's function, if it has one.
  void MultiGet(const std::vector<Slice>& keys, std::vector<std::string>* values, std::vector<Status>* statuses) override {
    if constexpr (requires { api_.MultiGet(db_, read_options_, keys, &buffers_, values, statuses); }) {
      api_.MultiGet(db_, read_options_, keys, &buffers_, values, statuses);
    } else {
      Session::MultiGet(keys, values, statuses);
    }
  }
  std::unique_ptr<Iterator> NewIterator() override {
    return std::make_unique<LevelDbApiIterator<Api>>(api_, api_.iterator_create(db_, read_options_));
  }

 protected:
  Status CommitBatch() {
    char* error = nullptr;
    api_.write(db_, write_options_, batch_, &error);
    return TakeError(api_, error);
  }

  const Api& api_;
  typename Api::Db* const db_;
  typename Api::WriteOptions* const write_options_;
  typename Api::ReadOptions* const read_options_;
  typename Api::WriteBatch* const batch_;
  MultiGetBuffers buffers_;
};

// Common part of both engines. Flush and WaitForCompaction are implemented by each engine.
template <class Api>
class LevelDbApiEngine : public Engine {
 public:
  LevelDbApiEngine(const Api& api, typename Api::Db* db) : api_(api), db_(db) {}
  ~LevelDbApiEngine() override {
    if (db_ != nullptr) api_.close(db_);
  }

  Status NewSession(bool sync, std::unique_ptr<Session>* session) override {
    *session = std::make_unique<LevelDbApiSession<Api>>(api_, db_, sync);
    return Status::OK();
  }
  Status Compact() override {
    api_.compact_range(db_, nullptr, 0, nullptr, 0);
    return Status::OK();
  }
  Status Close() override {
    api_.close(std::exchange(db_, nullptr));
    return Status::OK();
  }

 protected:
  bool GetProperty(const std::string& name, std::string* text) const {
    char* const value = api_.property_value(db_, name.c_str());
    if (value == nullptr) return false;
    *text = value;
    api_.free(value);
    return true;
  }

  const Api& api_;
  typename Api::Db* db_;
};

}  // namespace braiddb::bench
