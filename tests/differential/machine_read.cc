// Point lookups, snapshots, and scans of everything.
#include "tests/differential/machine.h"

namespace braiddb::test {

std::string Machine::Get(Draw& draw) {
  const Target target = PickFamily(draw);
  const std::string_view key = PickKey(draw);
  const ReadOptions options = PickReadOptions(draw, Reads::kPoints);
  Error error(api_);
  size_t length = 0;
  char* value = nullptr;
  if (is(Kind::kTransactions)) {
    value = target.by_default
                ? api_.rocksdb_transactiondb_get(transaction_db_, options.get(), key.data(), key.size(), &length, error.pointer())
                : api_.rocksdb_transactiondb_get_cf(transaction_db_, options.get(), target.handle(), key.data(), key.size(),
                                                    &length, error.pointer());
  } else {
    value = target.by_default
                ? api_.rocksdb_get(db_, options.get(), key.data(), key.size(), &length, error.pointer())
                : api_.rocksdb_get_cf(db_, options.get(), target.handle(), key.data(), key.size(), &length, error.pointer());
  }
  return TakeValue(value, length, &error);
}

std::string Machine::GetPinned(Draw& draw) {
  const Target target = PickFamily(draw);
  const std::string_view key = PickKey(draw);
  const ReadOptions options = PickReadOptions(draw, Reads::kPoints);
  Error error(api_);
  braiddb_pinnableslice_t* value = nullptr;
  if (is(Kind::kTransactions)) {
    value = target.by_default
                ? api_.rocksdb_transactiondb_get_pinned(transaction_db_, options.get(), key.data(), key.size(), error.pointer())
                : api_.rocksdb_transactiondb_get_pinned_cf(transaction_db_, options.get(), target.handle(), key.data(),
                                                           key.size(), error.pointer());
  } else {
    value = target.by_default
                ? api_.rocksdb_get_pinned(db_, options.get(), key.data(), key.size(), error.pointer())
                : api_.rocksdb_get_pinned_cf(db_, options.get(), target.handle(), key.data(), key.size(), error.pointer());
  }
  return TakePinned(value, &error);
}

std::string Machine::MultiGet(Draw& draw) {
  constexpr size_t kMost = 8;
  const size_t count = draw.Below(kMost + 1);
  std::array<const char*, kMost> keys;
  std::array<size_t, kMost> lengths;
  std::array<const braiddb_column_family_handle_t*, kMost> families;
  std::array<char*, kMost> values{};
  std::array<size_t, kMost> value_lengths{};
  std::array<char*, kMost> errors{};
  const bool by_default = draw.Chance(30);
  if (by_default) Say("-");
  for (size_t i = 0; i < count; ++i) {
    families[i] = by_default ? families_[0].handle : PickFamily(draw).handle();
    const std::string_view key = PickKey(draw);
    keys[i] = key.data();
    lengths[i] = key.size();
  }
  const ReadOptions options = PickReadOptions(draw, Reads::kPoints);
  if (is(Kind::kTransactions)) {
    if (by_default) {
      api_.rocksdb_transactiondb_multi_get(transaction_db_, options.get(), count, keys.data(), lengths.data(), values.data(),
                                           value_lengths.data(), errors.data());
    } else {
      api_.rocksdb_transactiondb_multi_get_cf(transaction_db_, options.get(), families.data(), count, keys.data(), lengths.data(),
                                              values.data(), value_lengths.data(), errors.data());
    }
  } else if (by_default) {
    api_.rocksdb_multi_get(db_, options.get(), count, keys.data(), lengths.data(), values.data(), value_lengths.data(),
                           errors.data());
  } else {
    api_.rocksdb_multi_get_cf(db_, options.get(), families.data(), count, keys.data(), lengths.data(), values.data(),
                              value_lengths.data(), errors.data());
  }
  return TakeValues(count, values.data(), value_lengths.data(), errors.data());
}

std::string Machine::BatchedMultiGet(Draw& draw) {
  constexpr size_t kMost = 8;
  const Target target = PickFamily(draw);
  const size_t count = 1 + draw.Below(kMost);
  // Sorted ones have to be in the order of the database, which only some draws are.
  std::array<const char*, kMost> keys;
  std::array<size_t, kMost> lengths;
  std::array<braiddb_pinnableslice_t*, kMost> values{};
  std::array<char*, kMost> errors{};
  for (size_t i = 0; i < count; ++i) {
    const std::string_view key = PickKey(draw);
    keys[i] = key.data();
    lengths[i] = key.size();
  }
  const ReadOptions options = PickReadOptions(draw, Reads::kPoints);
  if (is(Kind::kTransactions)) return "not here";
  api_.rocksdb_batched_multi_get_cf(db_, options.get(), target.handle(), count, keys.data(), lengths.data(), values.data(),
                                    errors.data(), false);
  std::string result;
  for (size_t i = 0; i < count; ++i) {
    Error error(api_);
    *error.pointer() = errors[i];
    result += " " + TakePinned(values[i], &error);
  }
  return result;
}

std::string Machine::KeyMayExist(Draw& draw) {
  const Target target = PickFamily(draw);
  const std::string_view key = PickKey(draw);
  const ReadOptions options = PickReadOptions(draw, Reads::kPoints);
  if (is(Kind::kTransactions)) return "not here";
  Error error(api_);
  size_t length = 0;
  char* const value = api_.rocksdb_get_cf(db_, options.get(), target.handle(), key.data(), key.size(), &length, error.pointer());
  const std::string known = TakeValue(value, length, &error);
  const unsigned char may_exist =
      target.by_default
          ? api_.rocksdb_key_may_exist(db_, options.get(), key.data(), key.size(), nullptr, nullptr, nullptr, 0, nullptr)
          : api_.rocksdb_key_may_exist_cf(db_, options.get(), target.handle(), key.data(), key.size(), nullptr, nullptr, nullptr,
                                          0, nullptr);
  // A key that is there must not be denied; what is said of others is an estimate.
  return known != "none" && known[0] == '"' && may_exist == 0 ? "denied" : "not denied";
}

std::string Machine::TakeSnapshot(Draw& draw) {
  const size_t index = draw.Below(snapshots_.size());
  Say(std::to_string(index));
  if (snapshots_[index] != nullptr) return "taken before";
  snapshots_[index] =
      is(Kind::kTransactions) ? api_.rocksdb_transactiondb_create_snapshot(transaction_db_) : api_.rocksdb_create_snapshot(db_);
  return snapshots_[index] != nullptr ? "ok" : "none";
}

std::string Machine::ReleaseSnapshot(Draw& draw) {
  const size_t index = draw.Below(snapshots_.size());
  Say(std::to_string(index));
  if (snapshots_[index] == nullptr) return "none";
  // RocksDB's iterators use it until they are destroyed: see KnownDifferences.
  for (OpenIterator& each : iterators_) {
    if (!each.in_past) continue;
    api_.rocksdb_iter_destroy(each.iterator);
    each = OpenIterator{};
  }
  if (is(Kind::kTransactions)) {
    api_.rocksdb_transactiondb_release_snapshot(transaction_db_, snapshots_[index]);
  } else {
    api_.rocksdb_release_snapshot(db_, snapshots_[index]);
  }
  snapshots_[index] = nullptr;
  return "ok";
}

std::string Machine::Content(const Target& target) {
  const ReadOptions options = PlainReadOptions();
  braiddb_iterator_t* const iterator = NewIterator(target, options.get());
  std::string result = target.family->name + ":" + Scan(iterator);
  api_.rocksdb_iter_destroy(iterator);
  return result;
}

std::string Machine::ScanAll(Draw&) {
  std::string result;
  for (Family& family : families_) result += Content({&family, false}) + "\n";
  return result;
}

}  // namespace braiddb::test
