// PowerCutModel: the writes of one thread of power_cut_client, and the state of its keys after them.
//
// Write n of a thread is drawn from (seed, thread, n) alone: one put or deletion, or a batch over both column families. Each
// value names the write that made it, and its other bytes follow from the seed. So the state after n writes follows from the
// seed and the set of the writes that took effect, and the host needs to keep only their numbers.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "util/random.h"

namespace braiddb::vm {

inline constexpr uint32_t kFamilies = 2;

struct Change {
  uint32_t family = 0;
  std::string key;
  bool deletion = false;
};

// Which change of which write a value is of.
struct Origin {
  uint64_t write = 0;
  uint32_t change = 0;
  friend bool operator==(const Origin&, const Origin&) = default;
};

class PowerCutModel {
 public:
  // Keys of a family and the origin of each key's value.
  using State = std::map<std::pair<uint32_t, std::string>, Origin>;

  PowerCutModel(uint64_t seed, uint32_t thread) : seed_(seed), thread_(thread) {}

  std::string prefix() const { return std::to_string(thread_) + "/"; }

  std::vector<Change> ChangesOf(uint64_t write) const {
    Random random(Mix64(seed_ ^ Mix64(write * 64 + thread_)));
    const uint64_t count = random.OneIn(6) ? 2 + random.Uniform(5) : 1;
    std::vector<Change> changes(count);
    std::set<std::pair<uint32_t, std::string>> seen;
    for (uint64_t i = 0; i < count; ++i) {
      // Mostly new keys, so that the regions grow.
      const bool is_new = random.Uniform(4) != 0;
      const uint64_t number = is_new ? write * 8 + i : random.Uniform(write) * 8;
      changes[i] = {static_cast<uint32_t>(random.Uniform(kFamilies)), Key(number), !is_new && random.OneIn(2)};
      // A batch has one change of a key at most.
      if (!seen.insert({changes[i].family, changes[i].key}).second) changes[i].key = Key(write * 8 + i);
    }
    return changes;
  }

  std::string Value(const Origin& origin) const {
    Random random(Mix64(seed_ + thread_) ^ Mix64(origin.write * 64 + origin.change));
    const uint64_t magnitude = random.OneIn(8) ? 17 : random.Uniform(14);
    std::string value(kHeaderBytes + random.Uniform(uint64_t{1} << magnitude), '\0');
    std::memcpy(value.data(), &origin.write, 8);
    std::memcpy(value.data() + 8, &origin.change, 4);
    std::memcpy(value.data() + 12, &thread_, 4);
    for (size_t at = kHeaderBytes; at < value.size(); at += 8) {
      const uint64_t word = random.Next();
      std::memcpy(value.data() + at, &word, std::min<size_t>(8, value.size() - at));
    }
    return value;
  }

  // False if the value is not whole: no write of this thread made these bytes.
  bool OriginOf(std::string_view value, Origin* origin) const {
    if (value.size() < kHeaderBytes) return false;
    std::memcpy(&origin->write, value.data(), 8);
    std::memcpy(&origin->change, value.data() + 8, 4);
    return Value(*origin) == value;
  }

  void Apply(uint64_t write, State* state) const {
    const std::vector<Change> changes = ChangesOf(write);
    for (uint32_t i = 0; i < changes.size(); ++i) {
      if (changes[i].deletion) {
        state->erase({changes[i].family, changes[i].key});
      } else {
        (*state)[{changes[i].family, changes[i].key}] = Origin{write, i};
      }
    }
  }

 private:
  static constexpr size_t kHeaderBytes = 16;  // write, change, thread

  std::string Key(uint64_t number) const {
    const std::string digits = std::to_string(number);
    return prefix() + std::string(12 - digits.size(), '0') + digits;
  }

  const uint64_t seed_;
  const uint32_t thread_;
};

}  // namespace braiddb::vm
