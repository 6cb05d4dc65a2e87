// Test support: kinds of keys whose first eight bytes, which many structures compare, say all, something, or nothing.
#pragma once

#include <cstddef>
#include <iterator>
#include <string>

#include "tests/support/db_test_util.h"

namespace braiddb::test {

struct KeyKind {
  const char* name;
  std::string (*draw)(Random* random);
  bool are_whole = false;  // prefixes say all of them
};

inline constexpr KeyKind kKeyKinds[] = {
    {"Spread", [](Random* random) { return PatternedValue(random->Next(), 8); }, true},
    {"SharedPrefixes",
     [](Random* random) { return "prefix" + std::to_string(random->Uniform(4)) + NumberedKey(random->Uniform(3000)); }},
    {"OnePrefix", [](Random* random) { return "a long prefix that all keys share " + std::to_string(random->Uniform(5000)); }},
    {"FewKeys", [](Random* random) { return std::string(random->Uniform(12), 'a'); }},
    {"LargestPrefix",
     [](Random* random) { return std::string(6 + random->Uniform(6), '\xff') + std::to_string(random->Uniform(200)); }},
    {"Zeros", [](Random* random) { return std::string(random->Uniform(12), '\0'); }},
    {"EightBytes", [](Random* random) { return PatternedValue(random->Uniform(400), 8); }, true},
    {"FewOthers",
     [](Random* random) {
       // Of eight bytes, the last ones among them, but for one in thirty.
       std::string key = random->OneIn(20) ? std::string(8, '\xff') : PatternedValue(random->Uniform(400), 8);
       return random->OneIn(30) ? key + "x" : key;
     }},
    {"LastByte", [](Random* random) { return std::string(40, 'k') + static_cast<char>(random->Uniform(256)); }},
    {"PrefixesOfOthers",
     [](Random* random) {
       // Some end where others go on with runs of the least or the greatest byte, of any length.
       std::string key = std::string("one key begins another").substr(0, random->Uniform(22));
       key.append(random->OneIn(2) ? 0 : random->Uniform(20), random->OneIn(2) ? '\0' : '\xff');
       return random->OneIn(3) ? key + std::to_string(random->Uniform(100)) : key;
     }},
};

// Kinds whose keys begin alike for long, for structures that compare what is behind that.
inline constexpr KeyKind kAlikeKinds[] = {
    {"Numbers", [](Random* random) { return "000000000" + std::to_string(1000000 + random->Uniform(6000)); }},
    {"LateByte", [](Random* random) { return std::string(199, 'k') + static_cast<char>(random->Uniform(256)); }},
    {"PrefixesOfEachOther", [](Random* random) { return "tenant-0001/" + std::string(random->Uniform(200), 'a'); }},
    {"ZerosAndEnds",
     [](Random* random) {
       std::string key = random->OneIn(2) ? std::string(random->Uniform(20), '\0') : "0123456789" + std::string(3, '\xff');
       return key + std::string(random->Uniform(6), '\xff') + std::string(random->Uniform(6), '\0');
     }},
    {"Directories",
     [](Random* random) {
       std::string key = "/usr/share";
       for (uint64_t parts = random->Uniform(5); parts > 0; --parts) key += "/part" + std::to_string(random->Uniform(4));
       return key + "/" + std::to_string(random->Uniform(50));
     }},
    {"Empty",
     [](Random* random) { return random->OneIn(2) ? std::string() : "prefix_" + std::to_string(random->Uniform(3000)); }},
    // Differ behind what a 16-bit position of a bit says, some of them.
    {"Long",
     [](Random* random) {
       return std::string(random->OneIn(3) ? 5000 : 3000, 'l') + std::to_string(random->Uniform(700)) + std::string(2000, 'l');
     }},
};

// All kinds: those of kKeyKinds first, and last the one whose keys have thousands of bytes.
inline constexpr size_t kAllKinds = std::size(kKeyKinds) + std::size(kAlikeKinds);
inline const KeyKind& KindAt(size_t i) { return i < std::size(kKeyKinds) ? kKeyKinds[i] : kAlikeKinds[i - std::size(kKeyKinds)]; }

}  // namespace braiddb::test
