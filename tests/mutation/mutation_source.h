// Draws mutations of the files of a database.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/mutation/mutation.h"
#include "tests/mutation/word_map.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {

// The files that mutations are made of: of the database, of the same at an earlier time, and of another.
struct MutationFiles {
  std::map<std::string, std::string> present;
  std::map<std::string, std::string> older;
  std::map<std::string, std::string> foreign;
};

// Mutation number n follows from the seed and n alone. Most damage a word, the others a line, a page or a whole file. Words
// are taken kind by kind in turn, each word of a kind once before any twice. With `every_word` the first mutations are of words
// alone, one of each that is of use.
class MutationSource {
 public:
  // `in_lists`: also what readers are promised nothing about without verification.
  MutationSource(const MutationFiles& files, const WordMap& map, uint64_t seed, bool in_lists, bool every_word);

  // How many mutations it takes to come to every word; 0 without `every_word`.
  uint64_t words_in_turn() const { return in_turn_.size(); }

  Mutation Draw(uint64_t number) const;
  // Whether plain readers too are promised something: for words that are not in lists, and for files that are not the right
  // ones. A whole line or page may be right in itself and yet not what belongs there.
  bool IsPromised(const Mutation& mutation) const;

 private:
  Mutation DrawWordInTurn(uint64_t number, Random* random) const;
  Mutation DrawWord(uint64_t number, Random* random) const;
  Mutation DrawRange(Unit unit, Random* random) const;
  Mutation DrawFile(Random* random) const;
  // Fills in what is put there; false if that is what is there already, or there is no such content.
  bool SetBytes(uint64_t bytes, Random* random, Mutation* mutation) const;
  bool SetFile(Random* random, Mutation* mutation) const;
  bool Touches(const Mutation& mutation, bool (*what)(WordKind)) const;

  const MutationFiles& files_;
  const WordMap& map_;
  const uint64_t seed_;
  const bool in_lists_;
  std::vector<std::string> names_;           // of all files
  std::vector<std::vector<Word>> shuffled_;  // by kind
  std::vector<WordKind> kinds_;              // those in turn
  std::vector<Word> in_turn_;                // of use, all kinds; with `every_word`
};

}  // namespace braiddb::test
