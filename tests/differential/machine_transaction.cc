// Transactions of both kinds.
#include "tests/differential/machine.h"

namespace braiddb::test {

Machine::OpenTransaction* Machine::PickTransaction(Draw& draw) {
  const size_t index = draw.Below(transactions_.size());
  Say("t" + std::to_string(index));
  OpenTransaction& place = transactions_[index];
  return place.transaction == nullptr || place.ended ? nullptr : &place;
}

std::string Machine::Presence(const OpenTransaction& transaction) {
  const ReadOptions options = PlainReadOptions();
  for (const auto& [name, key] : transaction.keys) {
    for (const Family& family : families_) {
      if (family.name != name || family.dropped) continue;
      Error error(api_);
      size_t length = 0;
      char* const value =
          is(Kind::kTransactions)
              ? api_.rocksdb_transactiondb_get_cf(transaction_db_, options.get(), family.handle, key.data(), key.size(), &length,
                                                  error.pointer())
              : api_.rocksdb_get_cf(db_, options.get(), family.handle, key.data(), key.size(), &length, error.pointer());
      if (TakeValue(value, length, &error) == "none") return ", some absent";
    }
  }
  return ", all present";
}

void Machine::DestroyTransaction(OpenTransaction* place) {
  if (place->transaction != nullptr) api_.rocksdb_transaction_destroy(place->transaction);
  *place = OpenTransaction{};
}

std::string Machine::Begin(Draw& draw) {
  const size_t index = draw.Below(transactions_.size());
  Say("t" + std::to_string(index));
  OpenTransaction& place = transactions_[index];
  const bool anew = draw.Chance(40);
  const bool with_snapshot = draw.Chance(40);
  const bool detect = draw.Chance(30);
  const WriteOptions write_options = PickWriteOptions(draw);
  if (is(Kind::kPlain)) return "not here";
  if (place.transaction != nullptr && !anew) DestroyTransaction(&place);
  if (place.transaction != nullptr) Say("anew");
  if (with_snapshot) Say("with snapshot");
  if (is(Kind::kOptimistic)) {
    braiddb_optimistictransaction_options_t* const options = api_.rocksdb_optimistictransaction_options_create();
    api_.rocksdb_optimistictransaction_options_set_set_snapshot(options, with_snapshot ? 1 : 0);
    place.transaction = api_.rocksdb_optimistictransaction_begin(optimistic_db_, write_options.get(), options, place.transaction);
    api_.rocksdb_optimistictransaction_options_destroy(options);
  } else {
    braiddb_transaction_options_t* const options = api_.rocksdb_transaction_options_create();
    api_.rocksdb_transaction_options_set_set_snapshot(options, with_snapshot ? 1 : 0);
    api_.rocksdb_transaction_options_set_deadlock_detect(options, detect ? 1 : 0);
    place.transaction = api_.rocksdb_transaction_begin(transaction_db_, write_options.get(), options, place.transaction);
    api_.rocksdb_transaction_options_destroy(options);
  }
  place.ended = false;
  place.named = false;
  place.keys.clear();
  return place.transaction != nullptr ? "ok" : "none";
}

std::string Machine::TransactionUpdate(Draw& draw) {
  OpenTransaction* const place = PickTransaction(draw);
  if (place == nullptr) return "none";
  const Target target = PickLivingFamily(draw);
  const size_t kind = draw.Below(100);
  const std::string_view key = PickKey(draw);
  const std::string value = draw.Value();
  place->keys.emplace(target.family->name, key);
  Error error(api_);
  if (kind < 50) {
    Say("put " + Quote(value));
    if (target.by_default) {
      api_.rocksdb_transaction_put(place->transaction, key.data(), key.size(), value.data(), value.size(), error.pointer());
    } else {
      api_.rocksdb_transaction_put_cf(place->transaction, target.handle(), key.data(), key.size(), value.data(), value.size(),
                                      error.pointer());
    }
  } else if (kind < 72) {
    Say("delete");
    if (target.by_default) {
      api_.rocksdb_transaction_delete(place->transaction, key.data(), key.size(), error.pointer());
    } else {
      api_.rocksdb_transaction_delete_cf(place->transaction, target.handle(), key.data(), key.size(), error.pointer());
    }
  } else {
    Say("merge " + Quote(value));
    if (target.by_default) {
      api_.rocksdb_transaction_merge(place->transaction, key.data(), key.size(), value.data(), value.size(), error.pointer());
    } else {
      api_.rocksdb_transaction_merge_cf(place->transaction, target.handle(), key.data(), key.size(), value.data(), value.size(),
                                        error.pointer());
    }
  }
  return error.Take() + Presence(*place);
}

std::string Machine::TransactionGet(Draw& draw) {
  OpenTransaction* const place = PickTransaction(draw);
  if (place == nullptr) return "none";
  const Target target = PickFamily(draw);
  const std::string_view key = PickKey(draw);
  const ReadOptions options = PickReadOptions(draw, Reads::kPoints);
  const bool own_snapshot = draw.Chance(25);
  const bool pinned = draw.Chance(30);
  const braiddb_snapshot_t* const snapshot = api_.rocksdb_transaction_get_snapshot(place->transaction);
  if (own_snapshot && snapshot != nullptr) {
    Say("own snapshot");
    api_.rocksdb_readoptions_set_snapshot(options.get(), snapshot);
  }
  Error error(api_);
  std::string result;
  if (pinned) {
    Say("pinned");
    braiddb_pinnableslice_t* const value =
        target.by_default
            ? api_.rocksdb_transaction_get_pinned(place->transaction, options.get(), key.data(), key.size(), error.pointer())
            : api_.rocksdb_transaction_get_pinned_cf(place->transaction, options.get(), target.handle(), key.data(), key.size(),
                                                     error.pointer());
    result = TakePinned(value, &error);
  } else {
    size_t length = 0;
    char* const value = target.by_default ? api_.rocksdb_transaction_get(place->transaction, options.get(), key.data(),
                                                                         key.size(), &length, error.pointer())
                                          : api_.rocksdb_transaction_get_cf(place->transaction, options.get(), target.handle(),
                                                                            key.data(), key.size(), &length, error.pointer());
    result = TakeValue(value, length, &error);
  }
  api_.rocksdb_free(const_cast<braiddb_snapshot_t*>(snapshot));
  return result;
}

std::string Machine::TransactionGetForUpdate(Draw& draw) {
  OpenTransaction* const place = PickTransaction(draw);
  if (place == nullptr) return "none";
  const Target target = PickLivingFamily(draw);
  const std::string_view key = PickKey(draw);
  const unsigned char exclusive = draw.Chance(70) ? 1 : 0;
  if (exclusive == 0) Say("shared");
  const bool pinned = draw.Chance(30);
  const ReadOptions options = PickReadOptions(draw, Reads::kPoints);
  place->keys.emplace(target.family->name, key);
  Error error(api_);
  if (pinned) {
    Say("pinned");
    return TakePinned(target.by_default
                          ? api_.rocksdb_transaction_get_pinned_for_update(place->transaction, options.get(), key.data(),
                                                                           key.size(), exclusive, error.pointer())
                          : api_.rocksdb_transaction_get_pinned_for_update_cf(place->transaction, options.get(), target.handle(),
                                                                              key.data(), key.size(), exclusive, error.pointer()),
                      &error);
  }
  size_t length = 0;
  char* const value =
      target.by_default ? api_.rocksdb_transaction_get_for_update(place->transaction, options.get(), key.data(), key.size(),
                                                                  &length, exclusive, error.pointer())
                        : api_.rocksdb_transaction_get_for_update_cf(place->transaction, options.get(), target.handle(),
                                                                     key.data(), key.size(), &length, exclusive, error.pointer());
  return TakeValue(value, length, &error);
}

std::string Machine::TransactionMultiGet(Draw& draw) {
  constexpr size_t kMost = 6;
  OpenTransaction* const place = PickTransaction(draw);
  if (place == nullptr) return "none";
  const size_t count = draw.Below(kMost + 1);
  const bool by_default = draw.Chance(30);
  std::array<const char*, kMost> keys;
  std::array<size_t, kMost> lengths;
  std::array<const braiddb_column_family_handle_t*, kMost> families;
  std::array<char*, kMost> values{};
  std::array<size_t, kMost> value_lengths{};
  std::array<char*, kMost> errors{};
  for (size_t i = 0; i < count; ++i) {
    families[i] = by_default ? families_[0].handle : PickFamily(draw).handle();
    const std::string_view key = PickKey(draw);
    keys[i] = key.data();
    lengths[i] = key.size();
  }
  const ReadOptions options = PickReadOptions(draw, Reads::kPoints);
  if (by_default) {
    api_.rocksdb_transaction_multi_get(place->transaction, options.get(), count, keys.data(), lengths.data(), values.data(),
                                       value_lengths.data(), errors.data());
  } else {
    api_.rocksdb_transaction_multi_get_cf(place->transaction, options.get(), families.data(), count, keys.data(), lengths.data(),
                                          values.data(), value_lengths.data(), errors.data());
  }
  return TakeValues(count, values.data(), value_lengths.data(), errors.data());
}

std::string Machine::TransactionIterate(Draw& draw) {
  OpenTransaction* const place = PickTransaction(draw);
  if (place == nullptr) return "none";
  const Target target = PickFamily(draw);
  const ReadOptions options = PickReadOptions(draw, Reads::kIteratorBelow);
  braiddb_iterator_t* const iterator =
      target.by_default ? api_.rocksdb_transaction_create_iterator(place->transaction, options.get())
                        : api_.rocksdb_transaction_create_iterator_cf(place->transaction, options.get(), target.handle());
  std::string result;
  for (size_t moves = 1 + draw.Below(8); moves > 0; --moves) result += Move(draw, iterator) + "; ";
  api_.rocksdb_iter_destroy(iterator);
  return result;
}

std::string Machine::TransactionSavePoint(Draw& draw) {
  OpenTransaction* const place = PickTransaction(draw);
  if (place == nullptr) return "none";
  Error error(api_);
  if (draw.Chance(55)) {
    Say("set");
    api_.rocksdb_transaction_set_savepoint(place->transaction);
  } else {
    Say("rollback");
    api_.rocksdb_transaction_rollback_to_savepoint(place->transaction, error.pointer());
  }
  return error.Take();
}

std::string Machine::TransactionInspect(Draw& draw) {
  OpenTransaction* const place = PickTransaction(draw);
  if (place == nullptr) return "none";
  braiddb_writebatch_wi_t* const batch = api_.rocksdb_transaction_get_writebatch_wi(place->transaction);
  std::string result = std::to_string(api_.rocksdb_writebatch_wi_count(batch));
  size_t length = 0;
  const char* const data = api_.rocksdb_writebatch_wi_data(batch, &length);
  result += " " + TellBatch(data, length);
  api_.rocksdb_free(batch);
  char* const name = api_.rocksdb_transaction_get_name(place->transaction, &length);
  result += " " + Quote({name, length});
  api_.rocksdb_free(name);
  return result;
}

std::string Machine::TransactionRebuild(Draw& draw) {
  OpenTransaction* const place = PickTransaction(draw);
  if (place == nullptr) return "none";
  Error error(api_);
  if (draw.Chance(50) || life_.reverse_order) {
    braiddb_writebatch_t* const batch = PickBatch(draw);
    api_.rocksdb_transaction_rebuild_from_writebatch(place->transaction, batch, error.pointer());
  } else {
    braiddb_writebatch_wi_t* const batch = PickIndexedBatch(draw);
    api_.rocksdb_transaction_rebuild_from_writebatch_wi(place->transaction, batch, error.pointer());
  }
  // RocksDB's has what stands before the update that failed: see KnownDifferences.
  if (error.failed()) DestroyTransaction(place);
  return error.Take();
}

std::string Machine::TransactionEnd(Draw& draw) {
  OpenTransaction* const place = PickTransaction(draw);
  if (place == nullptr) return "none";
  Error error(api_);
  const bool again = is(Kind::kOptimistic) && draw.Chance(30);
  const bool commit = draw.Chance(70);
  Say(commit ? "commit" : "rollback");
  const std::string presence = Presence(*place);
  if (commit) {
    api_.rocksdb_transaction_commit(place->transaction, error.pointer());
  } else {
    api_.rocksdb_transaction_rollback(place->transaction, error.pointer());
  }
  place->ended = !again;
  if (!error.failed() && !commit) place->keys.clear();
  return error.Take() + presence;
}

// Prepares a transaction and decides it.
std::string Machine::TransactionTwoPhase(Draw& draw) {
  OpenTransaction* const place = PickTransaction(draw);
  if (place == nullptr || !is(Kind::kTransactions)) return "none";
  const std::string name = "name" + std::to_string(draw.Below(3));
  std::string result;
  if (!place->named || draw.Chance(10)) {
    Say("name " + name);
    Error error(api_);
    api_.rocksdb_transaction_set_name(place->transaction, name.data(), name.size(), error.pointer());
    place->named |= !error.failed();
    result = error.Take() + " ";
  }
  if (draw.Chance(40)) return result;
  Say("prepare");
  Error error(api_);
  api_.rocksdb_transaction_prepare(place->transaction, error.pointer());
  const bool prepared = !error.failed();
  prepared_ |= prepared;
  result += error.Take();
  if (!prepared) return result;
  const bool commit = draw.Chance(60);
  Say(commit ? "commit" : "rollback");
  if (commit) {
    api_.rocksdb_transaction_commit(place->transaction, error.pointer());
  } else {
    api_.rocksdb_transaction_rollback(place->transaction, error.pointer());
  }
  place->ended = true;
  result += " " + error.Take();
  // RocksDB's keeps its name until it is destroyed: see KnownDifferences.
  if (!commit) DestroyTransaction(place);
  return result;
}

}  // namespace braiddb::test
