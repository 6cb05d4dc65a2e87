// Single updates.
#include "tests/differential/machine.h"

namespace braiddb::test {

std::string Machine::PutTo(const Target& target, braiddb_writeoptions_t* options, std::string_view key, std::string_view value) {
  Error error(api_);
  if (is(Kind::kTransactions)) {
    if (target.by_default) {
      api_.rocksdb_transactiondb_put(transaction_db_, options, key.data(), key.size(), value.data(), value.size(),
                                     error.pointer());
    } else {
      api_.rocksdb_transactiondb_put_cf(transaction_db_, options, target.handle(), key.data(), key.size(), value.data(),
                                        value.size(), error.pointer());
    }
  } else if (target.by_default) {
    api_.rocksdb_put(db_, options, key.data(), key.size(), value.data(), value.size(), error.pointer());
  } else {
    api_.rocksdb_put_cf(db_, options, target.handle(), key.data(), key.size(), value.data(), value.size(), error.pointer());
  }
  return error.Take();
}

std::string Machine::DeleteFrom(const Target& target, braiddb_writeoptions_t* options, std::string_view key) {
  Error error(api_);
  if (is(Kind::kTransactions)) {
    if (target.by_default) {
      api_.rocksdb_transactiondb_delete(transaction_db_, options, key.data(), key.size(), error.pointer());
    } else {
      api_.rocksdb_transactiondb_delete_cf(transaction_db_, options, target.handle(), key.data(), key.size(), error.pointer());
    }
  } else if (target.by_default) {
    api_.rocksdb_delete(db_, options, key.data(), key.size(), error.pointer());
  } else {
    api_.rocksdb_delete_cf(db_, options, target.handle(), key.data(), key.size(), error.pointer());
  }
  return error.Take();
}

std::string Machine::Put(Draw& draw) {
  const Target target = PickFamily(draw);
  const std::string_view key = PickKey(draw);
  const std::string value = PickValue(draw);
  const WriteOptions options = PickWriteOptions(draw, target);
  return PutTo(target, options.get(), key, value);
}

std::string Machine::Delete(Draw& draw) {
  const Target target = PickFamily(draw);
  const std::string_view key = PickKey(draw);
  const WriteOptions options = PickWriteOptions(draw, target);
  return DeleteFrom(target, options.get(), key);
}

std::string Machine::SingleDelete(Draw& draw) {
  const Target target = PickLivingFamily(draw);
  const std::string key = "single" + std::to_string(round_) + "-" + std::to_string(draw.Below(4));
  const std::string value = draw.Value();
  if (is(Kind::kTransactions)) return "not here";
  const auto id = std::pair(target.family->name, key);
  const WriteOptions options = PlainWriteOptions();
  Say(Quote(key));
  if (put_once_.count(id) == 0) {
    Say("put " + Quote(value));
    const std::string result = PutTo(target, options.get(), key, value);
    if (result == "ok") put_once_.insert(id);
    return result;
  }
  Error error(api_);
  if (target.by_default) {
    api_.rocksdb_singledelete(db_, options.get(), key.data(), key.size(), error.pointer());
  } else {
    api_.rocksdb_singledelete_cf(db_, options.get(), target.handle(), key.data(), key.size(), error.pointer());
  }
  std::string result = error.Take();
  if (result == "ok") put_once_.erase(id);
  return result;
}

std::string Machine::Merge(Draw& draw) {
  const Target target = PickFamily(draw);
  const std::string_view key = PickKey(draw);
  const std::string value = PickValue(draw);
  const WriteOptions options = PickWriteOptions(draw, target);
  Error error(api_);
  if (is(Kind::kTransactions)) {
    if (target.by_default) {
      api_.rocksdb_transactiondb_merge(transaction_db_, options.get(), key.data(), key.size(), value.data(), value.size(),
                                       error.pointer());
    } else {
      api_.rocksdb_transactiondb_merge_cf(transaction_db_, options.get(), target.handle(), key.data(), key.size(), value.data(),
                                          value.size(), error.pointer());
    }
  } else if (target.by_default) {
    api_.rocksdb_merge(db_, options.get(), key.data(), key.size(), value.data(), value.size(), error.pointer());
  } else {
    api_.rocksdb_merge_cf(db_, options.get(), target.handle(), key.data(), key.size(), value.data(), value.size(),
                          error.pointer());
  }
  return error.Take();
}

std::string Machine::DeleteRange(Draw& draw) {
  const Target target = PickFamily(draw);
  const auto [from, to] = PickRange(draw);
  const WriteOptions options = PickWriteOptions(draw, target);
  if (!is(Kind::kPlain)) return "not here";  // the drop-in refuses it: see KnownDifferences
  has_ranges_ = true;
  Error error(api_);
  api_.rocksdb_delete_range_cf(db_, options.get(), target.handle(), from.data(), from.size(), to.data(), to.size(),
                               error.pointer());
  return error.Take();
}

std::string Machine::Fill(Draw& draw) {
  const Target target = PickLivingFamily(draw);
  const size_t count = 20 + draw.Below(100);
  const size_t length = 100 + draw.Below(1200);
  const size_t first = draw.Below(100);
  const std::string value(length, static_cast<char>('A' + draw.Below(26)));
  Say(std::to_string(count) + " keys from fill" + std::to_string(first) + " of " + std::to_string(length) + " bytes");
  const WriteOptions options = PlainWriteOptions();
  std::string result;
  for (size_t i = first; i < first + count; ++i) {
    const std::string key = "fill" + std::to_string(100 + i);
    const std::string one = PutTo(target, options.get(), key, std::to_string(i) + value);
    if (one != "ok" && one != result) result += one;
  }
  return result.empty() ? "ok" : result;
}

}  // namespace braiddb::test
