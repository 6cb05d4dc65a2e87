// Every word of the part files of small databases, damaged in several ways: opening and reading gives the right data or an error.
//
// BRAIDDB_MUTATIONS      mutated opens of each case; 0: every word that holds data, in every way; "all": every word of the files
// BRAIDDB_MUTATION_KIND  with these: only words of this kind, e.g. pointer
// BRAIDDB_MUTATION_SEED
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/mutation/mutation_database.h"
#include "tests/mutation/mutation_runner.h"
#include "tests/mutation/word_map.h"

namespace braiddb::test {
namespace {

// How much a reader asks for.
enum class Promise : uint8_t {
  kStrict,  // Options::verify_at_open and ReadOptions::verify_checksums: no damage shows as wrong data, and none ends the process
  kPlain,   // the same, but for what is in lists: entries there are followed and returned as they are
};

struct MutationCase {
  Life life;
  Promise promise;
  friend void PrintTo(const MutationCase& value, std::ostream* out) { *out << NameOf(value.life); }
};

class Reader {
 public:
  Reader(const MutationDatabase& database, Promise promise) : database_(database), strict_(promise == Promise::kStrict) {
    read_.verify_checksums = strict_;
  }

  Outcome OpenAndRead(const std::string& path) const {
    Options options = MutationDatabase::MakeOptions();
    options.create_if_missing = false;
    options.verify_at_open = strict_;
    std::unique_ptr<DB> db;
    const Status status = DB::Open(options, path, &db);
    if (!status.ok()) return status.message().empty() ? Outcome::kWrong : Outcome::kRefused;
    for (const bool forward : {true, false}) {
      if (const Outcome outcome = Scan(db.get(), forward); outcome != Outcome::kRight) return outcome;
    }
    return GetAll(db.get());
  }

 private:
  Outcome Scan(DB* db, bool forward) const {
    const auto& expected = database_.expected();
    std::map<std::string, std::string> found;
    const auto it = db->NewIterator(read_);
    size_t steps = 0;
    for (forward ? it->SeekToFirst() : it->SeekToLast(); it->Valid(); forward ? it->Next() : it->Prev()) {
      if (++steps > expected.size() + database_.optional().size()) return Outcome::kWrong;
      const std::string key(it->key());
      if (!database_.optional().contains(key)) found[key] = it->value();
    }
    if (!it->status().ok()) return Outcome::kReadError;
    return found == expected ? Outcome::kRight : Outcome::kWrong;
  }

  Outcome GetAll(DB* db) const {
    std::string value;
    for (uint64_t i = 0; i < 600; ++i) {
      const std::string key = NumberedKey(i);
      const auto expected = database_.expected().find(key);
      const Status status = db->Get(read_, key, &value);
      if (!status.ok() && !status.IsNotFound()) return Outcome::kReadError;
      if (status.ok() != (expected != database_.expected().end())) return Outcome::kWrong;
      if (status.ok() && value != expected->second) return Outcome::kWrong;
    }
    return Outcome::kRight;
  }

  const MutationDatabase& database_;
  const bool strict_;
  ReadOptions read_;
};

class MutationTest : public testing::TestWithParam<MutationCase> {
 protected:
  // The ways to damage a word.
  static constexpr const char* kWays[] = {"a flipped bit", "zero", "a random word", "another word", "its older content"};

  bool Mutate(const Word& word, size_t way, const MutationRunner& runner, const WordMap& map, Mutation* mutation) {
    const std::string& file = map.files()[word.file];
    const auto read = [](const std::string& content, uint32_t offset) {
      uint64_t value = 0;
      if (offset + sizeof(value) <= content.size()) std::memcpy(&value, content.data() + offset, sizeof(value));
      return value;
    };
    const uint64_t original = read(runner.pristine(file), word.offset);
    const auto& like = map.words(random_.OneIn(2) ? word.kind : WordKind::kPointer);
    const Word& other = like.empty() ? word : like[random_.Uniform(like.size())];
    const uint64_t values[] = {original ^ uint64_t{1} << random_.Uniform(64), 0, random_.Next(),
                               read(runner.pristine(map.files()[other.file]), other.offset), read(older_[file], word.offset)};
    *mutation = {word, values[way], kWays[way]};
    return values[way] != original;
  }

  std::vector<Mutation> Sample(size_t count, const MutationRunner& runner, const WordMap& map) {
    std::vector<Mutation> mutations;
    while (mutations.size() < count) {
      // Kinds in turn, but what nothing uses now and then only.
      auto kind = static_cast<WordKind>(mutations.size() % static_cast<size_t>(WordKind::kCount));
      if (kind == WordKind::kFree && !random_.OneIn(4)) kind = WordKind::kPointer;
      if (map.words(kind).empty()) kind = WordKind::kEntry;
      const auto& words = map.words(kind);
      Mutation mutation{};
      if (Mutate(words[random_.Uniform(words.size())], random_.Uniform(std::size(kWays)), runner, map, &mutation))
        mutations.push_back(mutation);
    }
    return mutations;
  }

  std::vector<Mutation> Everything(bool free_too, const MutationRunner& runner, const WordMap& map) {
    std::vector<Mutation> mutations;
    const char* only = std::getenv("BRAIDDB_MUTATION_KIND");
    for (size_t kind = 0; kind < static_cast<size_t>(WordKind::kCount); ++kind) {
      if (kind == static_cast<size_t>(WordKind::kFree) && !free_too) continue;
      if (only != nullptr && NameOf(static_cast<WordKind>(kind)) != std::string_view(only)) continue;
      for (const Word& word : map.words(static_cast<WordKind>(kind))) {
        for (size_t way = 0; way < std::size(kWays); ++way) {
          Mutation mutation{};
          if (Mutate(word, way, runner, map, &mutation)) mutations.push_back(mutation);
        }
      }
    }
    return mutations;
  }

  void Report(const std::vector<Mutation>& mutations, const std::vector<Outcome>& outcomes, const WordMap& map) {
    uint64_t count[static_cast<size_t>(WordKind::kCount)][static_cast<size_t>(Outcome::kCount)] = {};
    uint64_t bad = 0;
    int shown = 0;
    for (size_t i = 0; i < mutations.size(); ++i) {
      const Word& word = mutations[i].word;
      ++count[static_cast<size_t>(word.kind)][static_cast<size_t>(outcomes[i])];
      // What plain reads follow and return without looking.
      const bool excused = GetParam().promise == Promise::kPlain &&
                           (word.kind == WordKind::kEntry || word.kind == WordKind::kPointer) &&
                           outcomes[i] != Outcome::kNotTried;
      if (!IsBad(outcomes[i]) || excused) continue;
      ++bad;
      if (++shown <= 20) {
        ADD_FAILURE() << NameOf(outcomes[i]) << " with " << mutations[i].how << " in a word of the kind " << NameOf(word.kind)
                      << ": " << map.files()[word.file] << " at " << word.offset << " = " << std::hex << mutations[i].value;
      }
    }
    std::printf("%zu mutated opens, %llu bad outcomes\n", mutations.size(), static_cast<unsigned long long>(bad));
    for (size_t kind = 0; kind < static_cast<size_t>(WordKind::kCount); ++kind) {
      std::printf("  %-14s", NameOf(static_cast<WordKind>(kind)));
      for (size_t outcome = 1; outcome < static_cast<size_t>(Outcome::kCount); ++outcome)
        std::printf(" %7llu %s", static_cast<unsigned long long>(count[kind][outcome]), NameOf(static_cast<Outcome>(outcome)));
      std::printf("\n");
    }
    EXPECT_EQ(bad, 0u);
  }

  Random random_{EnvNumber("BRAIDDB_MUTATION_SEED", 1)};
  TestDirectory directory_;
  std::map<std::string, std::string> older_;
};

TEST_P(MutationTest, DamageGivesTheRightDataOrAnError) {
  const MutationDatabase database(GetParam().life);
  const std::string path = directory_.File("db");
  ASSERT_TRUE(database.Make(path, directory_.File("older")));
  for (const std::string& file : ListFiles(directory_.File("older")))
    older_[file] = ReadFileOrDie(directory_.File("older/" + file));
  const WordMap map(path);
  for (const WordKind kind : {WordKind::kRoot, WordKind::kDirectory, WordKind::kEntry, WordKind::kPointer, WordKind::kJournal})
    EXPECT_FALSE(map.words(kind).empty()) << NameOf(kind);
  EXPECT_EQ(map.words(WordKind::kLog).empty(), GetParam().life != Life::kKilled);
  const Reader reader(database, GetParam().promise);
  MutationRunner runner(path, directory_.File("work"), map.files(),
                        [&reader](const std::string& work) { return reader.OpenAndRead(work); });
  const char* how_many = std::getenv("BRAIDDB_MUTATIONS");
  const uint64_t count = EnvNumber("BRAIDDB_MUTATIONS", 100 / kSlowdown);
  const bool all = how_many != nullptr && std::strcmp(how_many, "all") == 0;
  const std::vector<Mutation> mutations = all || count == 0 ? Everything(all, runner, map) : Sample(count, runner, map);
  Report(mutations, runner.Run(mutations), map);
}

INSTANTIATE_TEST_SUITE_P(
    Lives, MutationTest,
    testing::Values(MutationCase{Life::kClosed, Promise::kStrict}, MutationCase{Life::kKilled, Promise::kStrict},
                    MutationCase{Life::kMerging, Promise::kStrict}, MutationCase{Life::kMerged, Promise::kStrict},
                    MutationCase{Life::kClosed, Promise::kPlain}, MutationCase{Life::kKilled, Promise::kPlain},
                    MutationCase{Life::kMerging, Promise::kPlain}, MutationCase{Life::kMerged, Promise::kPlain}),
    [](const auto& test) {
      return std::string(NameOf(test.param.life)) + (test.param.promise == Promise::kStrict ? "Strict" : "Plain");
    });

}  // namespace
}  // namespace braiddb::test
