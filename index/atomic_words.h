// Loads and stores of a structure, one atomic word after the other. For headers of segments: a tree that opens looks at the
// segments of all trees, and another thread may be writing the header of one. The identities in the headers differ, so a mixture
// of old and new words is no header of the tree that looks.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "pmem/persistence.h"

namespace braiddb {

// The words of a T. std::bit_cast accepts only a T that is made of whole words.
template <class T>
using WordsOf = std::array<uint64_t, sizeof(T) / sizeof(uint64_t)>;

template <class T>
T LoadWords(const uint8_t* from) {
  WordsOf<T> words;
  for (size_t i = 0; i < words.size(); ++i) words[i] = LoadRelaxed(reinterpret_cast<const uint64_t*>(from) + i);
  return std::bit_cast<T>(words);
}

template <class T>
void StoreWords(const T& value, uint8_t* to) {
  const auto words = std::bit_cast<WordsOf<T>>(value);
  for (size_t i = 0; i < words.size(); ++i) StoreRelaxed(reinterpret_cast<uint64_t*>(to) + i, words[i]);
}

}  // namespace braiddb
