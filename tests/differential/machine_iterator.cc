// Iterators of a database.
#include "tests/differential/machine.h"

namespace braiddb::test {

braiddb_iterator_t* Machine::NewIterator(const Target& target, braiddb_readoptions_t* options) {
  if (is(Kind::kTransactions)) {
    return target.by_default ? api_.rocksdb_transactiondb_create_iterator(transaction_db_, options)
                             : api_.rocksdb_transactiondb_create_iterator_cf(transaction_db_, options, target.handle());
  }
  return target.by_default ? api_.rocksdb_create_iterator(db_, options)
                           : api_.rocksdb_create_iterator_cf(db_, options, target.handle());
}

std::string Machine::Move(Draw& draw, braiddb_iterator_t* iterator) {
  const size_t kind = draw.Below(100);
  const std::string_view key = draw.Key();
  const size_t steps = draw.Chance(80) ? 1 : 1 + draw.Below(12);
  std::string result;
  if (kind < 15) {
    Say("seek " + Quote(key));
    api_.rocksdb_iter_seek(iterator, key.data(), key.size());
  } else if (kind < 30) {
    Say("seek-for-prev " + Quote(key));
    api_.rocksdb_iter_seek_for_prev(iterator, key.data(), key.size());
  } else if (kind < 37) {
    Say("first");
    api_.rocksdb_iter_seek_to_first(iterator);
  } else if (kind < 44) {
    Say("last");
    api_.rocksdb_iter_seek_to_last(iterator);
  } else {
    const bool forward = kind < 72;
    Say((forward ? "next " : "prev ") + std::to_string(steps));
    for (size_t i = 0; i < steps && api_.rocksdb_iter_valid(iterator) != 0; ++i) {
      forward ? api_.rocksdb_iter_next(iterator) : api_.rocksdb_iter_prev(iterator);
      if (i + 1 < steps) result += Position(iterator) + " ";
    }
  }
  return result + Position(iterator);
}

std::string Machine::Scan(braiddb_iterator_t* iterator) const {
  std::string result;
  for (api_.rocksdb_iter_seek_to_first(iterator); api_.rocksdb_iter_valid(iterator) != 0; api_.rocksdb_iter_next(iterator)) {
    result += " " + Position(iterator);
  }
  result += " | " + IteratorError(iterator) + " |";
  for (api_.rocksdb_iter_seek_to_last(iterator); api_.rocksdb_iter_valid(iterator) != 0; api_.rocksdb_iter_prev(iterator)) {
    result += " " + Position(iterator);
  }
  return result + " | " + IteratorError(iterator);
}

std::string Machine::CreateIterator(Draw& draw) {
  const size_t index = draw.Below(iterators_.size());
  OpenIterator& place = iterators_[index];
  Say("i" + std::to_string(index));
  const Target target = PickFamily(draw);
  ReadOptions options = PickReadOptions(draw, Reads::kIterator);
  if (place.iterator != nullptr) api_.rocksdb_iter_destroy(place.iterator);
  place.iterator = NewIterator(target, options.get());
  place.options = std::move(options);
  place.in_past = Mentions(" snapshot");
  std::string result;
  for (size_t moves = draw.Below(5); moves > 0; --moves) result += Move(draw, place.iterator) + "; ";
  return result + (api_.rocksdb_iter_valid(place.iterator) != 0 ? "valid" : "end") + ", " + IteratorError(place.iterator);
}

std::string Machine::CreateIterators(Draw& draw) {
  constexpr size_t kCount = 3;
  std::array<braiddb_column_family_handle_t*, kCount> families;
  std::array<braiddb_iterator_t*, kCount> iterators{};
  for (auto& family : families) family = PickFamily(draw).handle();
  const ReadOptions options = PickReadOptions(draw, Reads::kIterator);
  if (is(Kind::kTransactions)) return "not here";
  // RocksDB ends the process if it refuses the options.
  api_.rocksdb_readoptions_set_managed(options.get(), 0);
  api_.rocksdb_readoptions_set_read_tier(options.get(), 0);
  Error error(api_);
  api_.rocksdb_create_iterators(db_, options.get(), families.data(), iterators.data(), kCount, error.pointer());
  if (error.failed()) return error.Take();
  std::string result;
  for (braiddb_iterator_t* const iterator : iterators) {
    for (size_t moves = 1 + draw.Below(3); moves > 0; --moves) result += Move(draw, iterator) + "; ";
    api_.rocksdb_iter_destroy(iterator);
  }
  return result;
}

std::string Machine::MoveIterator(Draw& draw) {
  const size_t index = draw.Below(iterators_.size());
  Say("i" + std::to_string(index));
  if (iterators_[index].iterator == nullptr) return "none";
  return Move(draw, iterators_[index].iterator);
}

// Shows what is written behind its back, when it is moved to a key. RocksDB's cannot go backwards.
std::string Machine::TailingIterator(Draw& draw) {
  const Target target = PickLivingFamily(draw);
  const ReadOptions options = PlainReadOptions();
  // RocksDB's show keys of ranges that were deleted: see KnownDifferences.
  if (is(Kind::kTransactions) || has_ranges_) return "not here";
  if (has_operands_) Say("operands");
  api_.rocksdb_readoptions_set_tailing(options.get(), 1);
  braiddb_iterator_t* const iterator = NewIterator(target, options.get());
  std::string result;
  const WriteOptions write_options = PlainWriteOptions();
  for (size_t rounds = 1 + draw.Below(4); rounds > 0; --rounds) {
    const std::string_view sought = PickKey(draw);
    api_.rocksdb_iter_seek(iterator, sought.data(), sought.size());
    result += " " + Position(iterator);
    for (size_t steps = draw.Below(4); steps > 0 && api_.rocksdb_iter_valid(iterator) != 0; --steps) {
      api_.rocksdb_iter_next(iterator);
      result += " " + Position(iterator);
    }
    const std::string_view key = PickKey(draw);
    const std::string value = draw.Value();
    result += ", put " + PutTo(target, write_options.get(), key, value);
  }
  api_.rocksdb_iter_destroy(iterator);
  return result;
}

std::string Machine::DestroyIterator(Draw& draw) {
  const size_t index = draw.Below(iterators_.size());
  Say("i" + std::to_string(index));
  if (iterators_[index].iterator == nullptr) return "none";
  api_.rocksdb_iter_destroy(iterators_[index].iterator);
  iterators_[index] = OpenIterator{};
  return "ok";
}

}  // namespace braiddb::test
