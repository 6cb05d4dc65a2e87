// Batches with an index. They compare keys by their bytes, so a database with another order has none.
#include "tests/differential/machine.h"

namespace braiddb::test {

braiddb_writebatch_wi_t* Machine::PickIndexedBatch(Draw& draw) {
  const size_t index = draw.Below(indexed_batches_.size());
  const bool overwrite = draw.Chance(50);
  if (life_.reverse_order) return nullptr;
  Say("x" + std::to_string(index));
  if (indexed_batches_[index] == nullptr) {
    Say(overwrite ? "(created, overwrite)" : "(created)");
    indexed_batches_[index] = api_.rocksdb_writebatch_wi_create(0, overwrite ? 1 : 0);
  }
  return indexed_batches_[index];
}

std::string Machine::IndexedUpdate(Draw& draw) {
  braiddb_writebatch_wi_t* const batch = PickIndexedBatch(draw);
  if (batch == nullptr) return "not here";
  const size_t kind = draw.Below(100);
  const Target target = PickLivingFamily(draw);
  if (kind < 50) {
    Say("put");
    const std::string_view key = PickKey(draw);
    const std::string value = PickValue(draw);
    if (target.by_default) {
      api_.rocksdb_writebatch_wi_put(batch, key.data(), key.size(), value.data(), value.size());
    } else {
      api_.rocksdb_writebatch_wi_put_cf(batch, target.handle(), key.data(), key.size(), value.data(), value.size());
    }
  } else if (kind < 72) {
    Say("delete");
    const std::string_view key = PickKey(draw);
    if (target.by_default) {
      api_.rocksdb_writebatch_wi_delete(batch, key.data(), key.size());
    } else {
      api_.rocksdb_writebatch_wi_delete_cf(batch, target.handle(), key.data(), key.size());
    }
  } else if (kind < 97) {
    Say("merge");
    indexed_merges_ = true;
    const std::string_view key = PickKey(draw);
    const std::string value = PickValue(draw);
    if (target.by_default) {
      api_.rocksdb_writebatch_wi_merge(batch, key.data(), key.size(), value.data(), value.size());
    } else {
      api_.rocksdb_writebatch_wi_merge_cf(batch, target.handle(), key.data(), key.size(), value.data(), value.size());
    }
  } else {
    Say("log-data");
    const std::string value = PickValue(draw);
    api_.rocksdb_writebatch_wi_put_log_data(batch, value.data(), value.size());
  }
  return std::to_string(api_.rocksdb_writebatch_wi_count(batch));
}

std::string Machine::IndexedSavePoint(Draw& draw) {
  braiddb_writebatch_wi_t* const batch = PickIndexedBatch(draw);
  if (batch == nullptr) return "not here";
  Error error(api_);
  if (draw.Chance(60)) {
    Say("set");
    api_.rocksdb_writebatch_wi_set_save_point(batch);
  } else {
    Say("rollback");
    api_.rocksdb_writebatch_wi_rollback_to_save_point(batch, error.pointer());
  }
  return error.Take() + " " + std::to_string(api_.rocksdb_writebatch_wi_count(batch));
}

std::string Machine::IndexedGet(Draw& draw) {
  braiddb_writebatch_wi_t* const batch = PickIndexedBatch(draw);
  if (batch == nullptr) return "not here";
  const bool with_database = draw.Chance(60);
  Target target = PickFamily(draw);
  const std::string_view key = PickKey(draw);
  const ReadOptions options = PickReadOptions(draw, Reads::kPoints);
  Error error(api_);
  size_t length = 0;
  char* value = nullptr;
  if (with_database) {
    if (is(Kind::kTransactions)) return "not here";
    Say("with database");
    value = target.by_default ? api_.rocksdb_writebatch_wi_get_from_batch_and_db(batch, db_, options.get(), key.data(),
                                                                                 key.size(), &length, error.pointer())
                              : api_.rocksdb_writebatch_wi_get_from_batch_and_db_cf(
                                    batch, db_, options.get(), target.handle(), key.data(), key.size(), &length, error.pointer());
  } else {
    if (indexed_merges_) target.by_default = false;
    value = target.by_default
                ? api_.rocksdb_writebatch_wi_get_from_batch(batch, options_, key.data(), key.size(), &length, error.pointer())
                : api_.rocksdb_writebatch_wi_get_from_batch_cf(batch, options_, target.handle(), key.data(), key.size(), &length,
                                                               error.pointer());
  }
  return TakeValue(value, length, &error);
}

std::string Machine::IndexedInspect(Draw& draw) {
  braiddb_writebatch_wi_t* const batch = PickIndexedBatch(draw);
  if (batch == nullptr) return "not here";
  size_t length = 0;
  const char* const data = api_.rocksdb_writebatch_wi_data(batch, &length);
  std::string result = TellBatch(data, length);
  api_.rocksdb_writebatch_wi_iterate(
      batch, &result,
      [](void* text, const char* key, size_t key_length, const char* value, size_t value_length) {
        *static_cast<std::string*>(text) +=
            " put " + Quote({key == nullptr ? "" : key, key_length}) + "=" + Quote({value == nullptr ? "" : value, value_length});
      },
      [](void* text, const char* key, size_t key_length) {
        *static_cast<std::string*>(text) += " delete " + Quote({key == nullptr ? "" : key, key_length});
      });
  return result;
}

std::string Machine::IndexedIterate(Draw& draw) {
  braiddb_writebatch_wi_t* const batch = PickIndexedBatch(draw);
  if (batch == nullptr) return "not here";
  Target target = PickFamily(draw);
  // Without a family RocksDB's has no operator for operands: see KnownDifferences.
  if (indexed_merges_) target.by_default = false;
  const ReadOptions options = PickReadOptions(draw, Reads::kIteratorBelow);
  braiddb_iterator_t* const base = NewIterator(target, options.get());
  // The new iterator owns the one below.
  braiddb_iterator_t* const iterator =
      target.by_default ? api_.rocksdb_writebatch_wi_create_iterator_with_base(batch, base)
                        : api_.rocksdb_writebatch_wi_create_iterator_with_base_cf(batch, base, target.handle());
  std::string result;
  for (size_t moves = 1 + draw.Below(8); moves > 0; --moves) result += Move(draw, iterator) + "; ";
  api_.rocksdb_iter_destroy(iterator);
  return result;
}

std::string Machine::IndexedWrite(Draw& draw) {
  braiddb_writebatch_wi_t* const batch = PickIndexedBatch(draw);
  if (batch == nullptr || is(Kind::kTransactions)) return "not here";
  const WriteOptions options = PickWriteOptions(draw);
  Error error(api_);
  api_.rocksdb_write_writebatch_wi(db_, options.get(), batch, error.pointer());
  return error.Take();
}

std::string Machine::IndexedClear(Draw& draw) {
  braiddb_writebatch_wi_t* const batch = PickIndexedBatch(draw);
  if (batch == nullptr) return "not here";
  if (draw.Chance(50)) {
    Say("clear");
    api_.rocksdb_writebatch_wi_clear(batch);
    return std::to_string(api_.rocksdb_writebatch_wi_count(batch));
  }
  Say("destroy");
  for (auto& known : indexed_batches_) {
    if (known == batch) known = nullptr;
  }
  api_.rocksdb_writebatch_wi_destroy(batch);
  return "ok";
}

}  // namespace braiddb::test
