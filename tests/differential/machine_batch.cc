// Batches of updates.
#include "tests/differential/machine.h"

namespace braiddb::test {

braiddb_writebatch_t* Machine::PickBatch(Draw& draw) {
  const size_t index = draw.Below(batches_.size());
  Say("b" + std::to_string(index));
  if (batches_[index] == nullptr) batches_[index] = api_.rocksdb_writebatch_create();
  return batches_[index];
}

std::string Machine::BatchUpdate(Draw& draw) {
  braiddb_writebatch_t* const batch = PickBatch(draw);
  const size_t kind = draw.Below(100);
  const Target target = PickLivingFamily(draw);
  if (kind < 45) {
    Say("put");
    const std::string_view key = PickKey(draw);
    const std::string value = PickValue(draw);
    if (target.by_default) {
      api_.rocksdb_writebatch_put(batch, key.data(), key.size(), value.data(), value.size());
    } else {
      api_.rocksdb_writebatch_put_cf(batch, target.handle(), key.data(), key.size(), value.data(), value.size());
    }
  } else if (kind < 65) {
    Say("delete");
    const std::string_view key = PickKey(draw);
    if (target.by_default) {
      api_.rocksdb_writebatch_delete(batch, key.data(), key.size());
    } else {
      api_.rocksdb_writebatch_delete_cf(batch, target.handle(), key.data(), key.size());
    }
  } else if (kind < 85) {
    Say("merge");
    const std::string_view key = PickKey(draw);
    const std::string value = PickValue(draw);
    if (target.by_default) {
      api_.rocksdb_writebatch_merge(batch, key.data(), key.size(), value.data(), value.size());
    } else {
      api_.rocksdb_writebatch_merge_cf(batch, target.handle(), key.data(), key.size(), value.data(), value.size());
    }
  } else if (kind < 95 && !is(Kind::kOptimistic)) {
    Say("delete-range");
    has_ranges_ = true;
    const auto [from, to] = PickRange(draw);
    if (target.by_default) {
      api_.rocksdb_writebatch_delete_range(batch, from.data(), from.size(), to.data(), to.size());
    } else {
      api_.rocksdb_writebatch_delete_range_cf(batch, target.handle(), from.data(), from.size(), to.data(), to.size());
    }
  } else {
    Say("log-data");
    const std::string value = PickValue(draw);
    api_.rocksdb_writebatch_put_log_data(batch, value.data(), value.size());
  }
  return std::to_string(api_.rocksdb_writebatch_count(batch));
}

// Keys and values that are given in pieces.
std::string Machine::BatchVectors(Draw& draw) {
  braiddb_writebatch_t* const batch = PickBatch(draw);
  const Target target = PickLivingFamily(draw);
  constexpr int kMost = 3;
  std::array<std::string, kMost> texts;
  std::array<const char*, kMost> keys;
  std::array<size_t, kMost> key_lengths;
  std::array<const char*, kMost> values;
  std::array<size_t, kMost> value_lengths;
  const int parts = 1 + static_cast<int>(draw.Below(kMost));
  for (int i = 0; i < parts; ++i) {
    const std::string_view key = PickKey(draw);
    keys[i] = key.data();
    key_lengths[i] = key.size();
    texts[i] = PickValue(draw);
    values[i] = texts[i].data();
    value_lengths[i] = texts[i].size();
  }
  switch (draw.Below(3)) {
    case 0:
      Say("putv");
      target.by_default ? api_.rocksdb_writebatch_putv(batch, parts, keys.data(), key_lengths.data(), parts, values.data(),
                                                       value_lengths.data())
                        : api_.rocksdb_writebatch_putv_cf(batch, target.handle(), parts, keys.data(), key_lengths.data(), parts,
                                                          values.data(), value_lengths.data());
      break;
    case 1:
      Say("mergev");
      target.by_default ? api_.rocksdb_writebatch_mergev(batch, parts, keys.data(), key_lengths.data(), parts, values.data(),
                                                         value_lengths.data())
                        : api_.rocksdb_writebatch_mergev_cf(batch, target.handle(), parts, keys.data(), key_lengths.data(), parts,
                                                            values.data(), value_lengths.data());
      break;
    default:
      Say("deletev");
      target.by_default ? api_.rocksdb_writebatch_deletev(batch, parts, keys.data(), key_lengths.data())
                        : api_.rocksdb_writebatch_deletev_cf(batch, target.handle(), parts, keys.data(), key_lengths.data());
  }
  return std::to_string(api_.rocksdb_writebatch_count(batch));
}

std::string Machine::BatchSavePoint(Draw& draw) {
  braiddb_writebatch_t* const batch = PickBatch(draw);
  Error error(api_);
  switch (draw.Below(4)) {
    case 0:
    case 1:
      Say("set");
      api_.rocksdb_writebatch_set_save_point(batch);
      break;
    case 2:
      Say("rollback");
      api_.rocksdb_writebatch_rollback_to_save_point(batch, error.pointer());
      break;
    default:
      Say("pop");
      api_.rocksdb_writebatch_pop_save_point(batch, error.pointer());
  }
  return error.Take() + " " + std::to_string(api_.rocksdb_writebatch_count(batch));
}

std::string Machine::BatchInspect(Draw& draw) {
  braiddb_writebatch_t* const batch = PickBatch(draw);
  size_t length = 0;
  const char* const data = api_.rocksdb_writebatch_data(batch, &length);
  std::string result = TellBatch(data, length);
  api_.rocksdb_writebatch_iterate(
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

// A batch of the bytes of another one. Not of damaged ones: RocksDB writes these to its log (see KnownDifferences).
std::string Machine::BatchCopy(Draw& draw) {
  braiddb_writebatch_t* const batch = PickBatch(draw);
  size_t length = 0;
  const char* const data = api_.rocksdb_writebatch_data(batch, &length);
  const std::string bytes(data, length);
  braiddb_writebatch_t* const copy = api_.rocksdb_writebatch_create_from(bytes.data(), bytes.size());
  const size_t index = draw.Below(batches_.size());
  api_.rocksdb_writebatch_destroy(batches_[index]);
  batches_[index] = copy;
  Say("to b" + std::to_string(index));
  return std::to_string(api_.rocksdb_writebatch_count(copy));
}

std::string Machine::BatchWrite(Draw& draw) {
  braiddb_writebatch_t* const batch = PickBatch(draw);
  const WriteOptions options = PickWriteOptions(draw);
  Error error(api_);
  if (is(Kind::kTransactions)) {
    api_.rocksdb_transactiondb_write(transaction_db_, options.get(), batch, error.pointer());
  } else if (is(Kind::kOptimistic) && draw.Chance(50)) {
    api_.rocksdb_optimistictransactiondb_write(optimistic_db_, options.get(), batch, error.pointer());
  } else {
    api_.rocksdb_write(db_, options.get(), batch, error.pointer());
  }
  return error.Take();
}

std::string Machine::BatchClear(Draw& draw) {
  braiddb_writebatch_t* const batch = PickBatch(draw);
  if (draw.Chance(50)) {
    Say("clear");
    api_.rocksdb_writebatch_clear(batch);
    return std::to_string(api_.rocksdb_writebatch_count(batch));
  }
  Say("destroy");
  for (auto& known : batches_) {
    if (known == batch) known = nullptr;
  }
  api_.rocksdb_writebatch_destroy(batch);
  return "ok";
}

}  // namespace braiddb::test
