#include "tests/mutation/mutation_source.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace braiddb::test {
namespace {

constexpr Way kWordWays[] = {Way::kFlip, Way::kZero, Way::kRandom, Way::kElsewhere, Way::kOlder, Way::kForeign};
constexpr Way kRangeWays[] = {Way::kZero, Way::kRandom, Way::kElsewhere, Way::kOlder, Way::kForeign};
constexpr Way kFileWays[] = {Way::kTruncated, Way::kTruncated, Way::kExtended, Way::kEmpty, Way::kMissing,
                             Way::kElsewhere, Way::kElsewhere, Way::kForeign,  Way::kOlder};
// Of so many mutations one is of a line, one of a page, and one of a whole file.
constexpr uint64_t kTurn = 20;
// How often each word of a small kind is taken before larger kinds take its turns.
constexpr uint64_t kRounds = 24;

template <size_t kSize>
Way Pick(const Way (&ways)[kSize], Random* random) {
  return ways[random->Uniform(kSize)];
}

// The bytes at that place, cut short by the file's end.
std::string BytesAt(const std::map<std::string, std::string>& files, const std::string& file, uint64_t offset, uint64_t bytes) {
  const auto found = files.find(file);
  if (found == files.end() || offset >= found->second.size()) return {};
  return found->second.substr(offset, bytes);
}

}  // namespace

MutationSource::MutationSource(const MutationFiles& files, const WordMap& map, uint64_t seed, bool in_lists, bool every_word)
    : files_(files), map_(map), seed_(seed), in_lists_(in_lists), shuffled_(static_cast<size_t>(WordKind::kCount)) {
  for (const auto& [name, content] : files.present) {
    if (name.starts_with("region-")) names_.push_back(name);
  }
  Random random(seed);
  for (size_t i = 0; i < shuffled_.size(); ++i) {
    const auto kind = static_cast<WordKind>(i);
    shuffled_[i] = map.words(kind);
    for (size_t left = shuffled_[i].size(); left > 1; --left)
      std::swap(shuffled_[i][left - 1], shuffled_[i][random.Uniform(left)]);
    if (shuffled_[i].empty() || (!in_lists && IsInLists(kind))) continue;
    kinds_.push_back(kind);
    if (every_word && kind != WordKind::kFree) in_turn_.insert(in_turn_.end(), shuffled_[i].begin(), shuffled_[i].end());
  }
}

Mutation MutationSource::Draw(uint64_t number) const {
  Random random(seed_ * 0x100000001b3 + number);
  if (number < in_turn_.size()) return DrawWordInTurn(number, &random);
  const uint64_t turn = number % kTurn;
  if (turn == 0) return DrawFile(&random);
  if (turn <= 2 && in_lists_) return DrawRange(turn == 1 ? Unit::kLine : Unit::kPage, &random);
  return DrawWord(number / kTurn * (kTurn - 1) + turn - 1, &random);
}

Mutation MutationSource::DrawWordInTurn(uint64_t number, Random* random) const {
  const Word& word = in_turn_[number];
  for (;;) {
    Mutation mutation{Unit::kWord, Pick(kWordWays, random), word.kind, map_.files()[word.file], word.offset, {}};
    if (SetBytes(kUnitBytes[static_cast<size_t>(Unit::kWord)], random, &mutation)) return mutation;
  }
}

Mutation MutationSource::DrawWord(uint64_t number, Random* random) const {
  for (uint64_t attempt = 0;; ++attempt) {
    WordKind kind = kinds_[number % kinds_.size()];
    uint64_t at = number / kinds_.size();
    // What nothing uses now and then only.
    const bool used_up = at >= kRounds * shuffled_[static_cast<size_t>(kind)].size();
    if (attempt > 4 || used_up || (kind == WordKind::kFree && !random->OneIn(4))) {
      do {
        kind = kinds_[random->Uniform(kinds_.size())];
      } while (kind == WordKind::kFree);
      at = random->Next();
    }
    const auto& words = shuffled_[static_cast<size_t>(kind)];
    const Word& word = words[at % words.size()];
    Mutation mutation{Unit::kWord, Pick(kWordWays, random), kind, map_.files()[word.file], word.offset, {}};
    if (SetBytes(kUnitBytes[static_cast<size_t>(Unit::kWord)], random, &mutation)) return mutation;
  }
}

Mutation MutationSource::DrawRange(Unit unit, Random* random) const {
  const uint64_t bytes = kUnitBytes[static_cast<size_t>(unit)];
  for (;;) {
    WordKind kind = kinds_[random->Uniform(kinds_.size())];
    if (kind == WordKind::kFree && !random->OneIn(10)) continue;
    const auto& words = shuffled_[static_cast<size_t>(kind)];
    const Word& word = words[random->Uniform(words.size())];
    Mutation mutation{unit, Pick(kRangeWays, random), kind, map_.files()[word.file], word.offset / bytes * bytes, {}};
    // A lost line may be all that there is of the newest writes: then nothing tells it from a write that was cut off.
    if (Touches(mutation, [](WordKind touched) { return touched == WordKind::kLog; })) continue;
    if (SetBytes(bytes, random, &mutation)) return mutation;
  }
}

bool MutationSource::Touches(const Mutation& mutation, bool (*what)(WordKind)) const {
  for (uint64_t at = 0; at < kUnitBytes[static_cast<size_t>(mutation.unit)]; at += 8) {
    if (what(map_.KindAt(mutation.file, mutation.offset + at))) return true;
  }
  return false;
}

bool MutationSource::IsPromised(const Mutation& mutation) const {
  switch (mutation.unit) {
    case Unit::kWord:
      return !IsInLists(mutation.kind);
    case Unit::kFile:
      return mutation.way != Way::kOlder;
    default:
      return false;
  }
}

bool MutationSource::SetBytes(uint64_t bytes, Random* random, Mutation* mutation) const {
  const std::string original = BytesAt(files_.present, mutation->file, mutation->offset, bytes);
  std::string& content = mutation->bytes;
  content = original;
  switch (mutation->way) {
    case Way::kFlip:
      content[random->Uniform(bytes)] ^= static_cast<char>(1 << random->Uniform(8));
      break;
    case Way::kZero:
      content.assign(bytes, '\0');
      break;
    case Way::kRandom:
      content = random->Bytes(bytes);
      break;
    case Way::kElsewhere: {
      // Something of the same kind, or a pointer.
      const auto& like = map_.words(random->OneIn(2) ? mutation->kind : WordKind::kPointer);
      if (like.empty()) return false;
      const Word& other = like[random->Uniform(like.size())];
      content = BytesAt(files_.present, map_.files()[other.file], other.offset / bytes * bytes, bytes);
      break;
    }
    case Way::kOlder:
      content = BytesAt(files_.older, mutation->file, mutation->offset, bytes);
      break;
    default:
      content = BytesAt(files_.foreign, mutation->file, mutation->offset, bytes);
      break;
  }
  return content.size() == original.size() && content != original;
}

Mutation MutationSource::DrawFile(Random* random) const {
  for (;;) {
    Mutation mutation;
    mutation.unit = Unit::kFile;
    mutation.way = Pick(kFileWays, random);
    mutation.file = names_[random->Uniform(names_.size())];
    if (SetFile(random, &mutation)) return mutation;
  }
}

bool MutationSource::SetFile(Random* random, Mutation* mutation) const {
  const std::string& original = files_.present.at(mutation->file);
  std::string& content = mutation->bytes;
  const auto take = [&](const std::map<std::string, std::string>& files, const std::string& name) {
    const auto found = files.find(name);
    if (found == files.end()) return false;
    content = found->second;
    return content != original;
  };
  switch (mutation->way) {
    case Way::kTruncated: {
      // Any length; often one at the borders of pages, or a few bytes.
      const uint64_t length =
          random->OneIn(4) ? random->Uniform(std::min<uint64_t>(original.size(), 5000)) : random->Uniform(original.size());
      content = original.substr(0, random->OneIn(2) ? length : length / 4096 * 4096);
      return true;
    }
    case Way::kExtended:
      content = original + std::string(random->OneIn(2) ? random->Range(1, 100) : 4096 * random->Range(1, 64),
                                       random->OneIn(2) ? '\0' : 'x');
      return true;
    case Way::kEmpty:
      return true;
    case Way::kMissing:
      return true;
    case Way::kElsewhere: {
      std::string other = mutation->file;
      other[7] = other[7] == '0' ? '1' : '0';  // region-0/… and region-1/…
      return take(files_.present, other);
    }
    case Way::kOlder:
      // What lists lead to is then what it was, or is not there.
      return in_lists_ && take(files_.older, mutation->file);
    default:
      return take(files_.foreign, mutation->file);
  }
}

}  // namespace braiddb::test
