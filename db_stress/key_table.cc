#include "db_stress/key_table.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "util/random.h"

namespace braiddb::stress {

namespace {

// Searches compare the first 8 bytes as a number. So keys differ in these bytes, only behind them, or only in their length.
std::string MakeKey(Random* random, uint32_t id) {
  const std::string number = std::to_string(id);
  const std::string padded = std::string(7 - std::min<size_t>(7, number.size()), '0') + number;
  switch (random->Uniform(16)) {
    case 0:
      return padded + std::string(random->Uniform(12), '\0');
    case 1:
      return std::string(random->Uniform(40), '\xff') + padded;
    case 2:
    case 3:
    case 4:
      return "a prefix that many keys share/" + padded;
    case 5:
    case 6:
    case 7: {
      std::string key(4 + random->Uniform(8), '\0');
      for (char& c : key) c = static_cast<char>(random->Uniform(256));
      return key;
    }
    case 8:
      return padded + std::string(random->OneIn(8) ? random->Uniform(2000) : random->Uniform(100), 'x');
    default:
      return "key" + padded;
  }
}

}  // namespace

KeyTable::KeyTable(uint64_t seed, uint32_t count, std::vector<const Comparator*> comparators)
    : comparators_(std::move(comparators)) {
  Random random(seed);
  std::set<std::string> distinct;
  keys_.reserve(count);
  for (uint32_t id = 0; id < count; ++id) {
    std::string key = id == kFirstSingle ? "" : MakeKey(&random, id);
    while (!distinct.insert(key).second) key += "+";
    keys_.push_back(std::move(key));
  }
  order_.resize(count);
  std::iota(order_.begin(), order_.end(), 0);
  std::sort(order_.begin(), order_.end(), [this](uint32_t a, uint32_t b) {
    if (family_of(a) != family_of(b)) return family_of(a) < family_of(b);
    return comparator(family_of(a))->Compare(keys_[a], keys_[b]) < 0;
  });
  positions_.resize(count);
  begins_.assign(families() + 1, count);
  for (uint32_t position = count; position-- > 0;) {
    positions_[order_[position]] = position;
    begins_[family_of(order_[position])] = position;
  }
}

uint32_t KeyTable::LowerBound(uint32_t family, Slice target) const {
  const auto found = std::lower_bound(order_.begin() + begin(family), order_.begin() + end(family), target,
                                      [&](uint32_t id, Slice key) { return comparator(family)->Compare(keys_[id], key) < 0; });
  return static_cast<uint32_t>(found - order_.begin());
}

}  // namespace braiddb::stress
