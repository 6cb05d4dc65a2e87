#include "levels/lb_tree/lb_entry_tree.h"

#include <xxhash.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "lb_tree/lb_leaf_changes.h"
#include "util/mutant.h"

namespace braiddb {
namespace {

// A leaf is split in place unless one pair of neighbors in so many has equal words: new leaves have longer words then.
constexpr uint32_t kTies = 8;
// A leaf that keeps less than one entry in so many slots after removals is merged with its right neighbor, if that has room.
constexpr uint32_t kSparse = 4;
// Number of entries that a forward copy prefetches before it compares one of them.
constexpr std::ptrdiff_t kFetchedEntries = 8;

}  // namespace

bool IsLbEntryTreeRoot(const LeafTreeRoot& root, uint64_t database_id, uint64_t number) {
  return IsLeafTreeRoot(root, kLbEntryTreeMagic, database_id, number) && IsLbLeafSize(root.leaf_bytes) &&
         root.leaf_bytes > kLbBlockBytes;
}

uint64_t LbEntryWords::Tag(uint64_t tree_id, PmPtr leaf, uint32_t skip) {
  return Mix64(Mix64(tree_id ^ skip) ^ leaf.raw()) << 16 | skip;
}

uint8_t LbEntryWords::Fingerprint(const KeyOrder& order, Slice key) {
  return order.equal_means_same() ? static_cast<uint8_t>(XXH3_64bits(key.data(), key.size()) >> 56) : 0;
}

// ---- Life

LbEntryTree::LbEntryTree(const LeafTreeParts& parts, const EntryKeys* keys, LeafTreeRoot* root)
    : LeafTree(parts, root, BlockStart::kAtXpLine, "LB+-Tree"), keys_(*keys) {}

Status LbEntryTree::Create(RegionSet* regions, SegmentAllocator* segments, const LevelPlace& place) {
  LeafTreeRoot* root = nullptr;
  PmPtr first;
  Status status = CreateRoot(regions, segments, kLbEntryTreeMagic, kLeafBytes, BlockStart::kAtXpLine, place, &root, &first);
  if (!status.ok()) return status;
  const LbLeaf leaf(regions->Resolve<uint64_t>(first), kLeafBytes / kLbBlockBytes);
  leaf.Make(regions->persistence(), std::span<const LbTaggedEntry>(), MakeLink(first.raw(), PmPtr()),
            LbEntryWords::Tag(root->tree_id, first, 0));
  return LinkFirst(regions, root, first);
}

Status LbEntryTree::Open(const LeafTreeParts& parts, const EntryKeys* keys, uint32_t threads, bool verify,
                         std::unique_ptr<LbEntryTree>* result) {
  auto* root = static_cast<LeafTreeRoot*>(parts.place.Find(*parts.regions, 0, sizeof(LeafTreeRoot)));
  if (root == nullptr || !IsLbEntryTreeRoot(*root, parts.regions->database_id(), parts.place.number)) {
    return Status::Corruption("the root of the LB+-Tree is missing or damaged; restore the database from a copy");
  }
  std::unique_ptr<LbEntryTree> tree(new LbEntryTree(parts, keys, root));
  Status status = tree->Load(threads, verify);
  if (status.ok()) *result = std::move(tree);
  return status;
}

// ---- Reads

template <class Target>
InnerNodes::Range LbEntryTree::ReadLeaf(const Target& target, bool before, Words* words) const {
  for (;;) {
    const InnerNodes::Range range = FindLeaf(target, before);
    const LbLeaf leaf = At(range.leaf);
    leaf.FetchAll();
    BRAIDDB_SYNC_POINT("LbEntryTree::FoundLeaf");
    const VersionLock* const lock = VersionOf(range.leaf);
    const uint64_t version = lock->BeginRead();
    words->skip = LbEntryWords::SkipOf(leaf.tag());
    words->count = leaf.Collect(words->entries);
    // A forward copy is usually followed by one of the next leaf.
    const PmPtr next = LinkTarget(leaf.link());
    if (!before && parts_.regions->Holds(next)) At(next).FetchAll();
    if (lock->IsCurrent(version) && inner_.IsCurrent(range)) return range;
  }
}

uint64_t LbEntryTree::PrefixIn(const Words& words) const {
  if (words.skip == 0 || words.count == 0) return 0;
  const LogEntry* const entry = keys_.EntryAt(PmPtr(words.entries[0].value));
  return entry == nullptr ? 0 : parts_.order->Prefix(entry->key());
}

// Words decide. The keys of entries with equal words are compared, after a prefetch of all of them.
void LbEntryTree::AppendSorted(Words* words, uint64_t prefix, std::vector<Element>* elements) const {
  LbEntry* const begin = words->entries;
  LbEntry* const end = begin + words->count;
  std::sort(begin, end, [](const LbEntry& a, const LbEntry& b) { return a.key < b.key; });
  const size_t first = elements->size();
  bool has_ties = false;
  for (const LbEntry* entry = begin; entry != end; ++entry) {
    elements->push_back({LbEntryWords::Prefix(entry->key, words->skip, prefix), entry->value});
    has_ties |= entry != begin && entry->key == entry[-1].key;
  }
  if (!has_ties) return;
  const auto at = [&](const LbEntry* entry) { return elements->begin() + static_cast<std::ptrdiff_t>(first + (entry - begin)); };
  for (const LbEntry* entry = begin; entry != end; ++entry) {
    const bool is_tie = (entry != begin && entry->key == entry[-1].key) || (entry + 1 != end && entry->key == entry[1].key);
    if (is_tie) keys_.Prefetch(*at(entry));
  }
  for (const LbEntry* tie = begin; tie != end;) {
    const LbEntry* const behind =
        std::find_if(tie, const_cast<const LbEntry*>(end), [&](const LbEntry& e) { return e.key != tie->key; });
    if (behind - tie > 1) std::sort(at(tie), at(behind), [this](const Element& a, const Element& b) { return Less(a, b); });
    tie = behind;
  }
}

// A forward copy needs only the entries from the target on, so smaller words are left out before the sort.
template <class Target>
void LbEntryTree::Copy(const Target& target, bool before, LeafCopy* copy) const {
  Words words;
  copy->range = ReadLeaf(target, before, &words);
  copy->elements.clear();
  copy->is_exact = true;
  copy->is_cut = false;
  const KeyOrder& order = *parts_.order;
  // A target at the end of the range need not begin as the leaf's keys do.
  const bool is_behind = before && !copy->range.is_last && CompareToSeparator(order, target, copy->range.high) >= 0;
  const uint64_t prefix = PrefixIn(copy->range, words);
  if (!before && BeginsAlike(copy->range)) {
    const uint64_t word = WordBehind(order, target, words.skip);
    words.count = static_cast<uint32_t>(
        std::remove_if(words.entries, words.entries + words.count, [word](const LbEntry& entry) { return entry.key < word; }) -
        words.entries);
  }
  AppendSorted(&words, prefix, &copy->elements);
  if (is_behind) return;
  const auto is_before = [&](const Element& element) {
    if (element.key != target.prefix) return element.key < target.prefix;
    if constexpr (std::is_same_v<Target, SearchKey>) {
      return Compare(element, target) < 0;
    } else {
      return target.rest != nullptr && Compare(element, SearchKey(target.prefix, target.rest->key(), target.rest->sequence)) < 0;
    }
  };
  // If words decide, only elements with the target's word are compared with it.
  auto begin = copy->elements.begin(), end = copy->elements.end();
  if (BeginsAlike(copy->range)) {
    const uint64_t word = WordBehind(order, target, words.skip);
    const LbEntry* const entries = words.entries;
    const auto less = [](const LbEntry& entry, uint64_t key) { return entry.key < key; };
    const auto greater = [](uint64_t key, const LbEntry& entry) { return key < entry.key; };
    end = begin + (std::upper_bound(entries, entries + words.count, word, greater) - entries);
    begin += std::lower_bound(entries, entries + words.count, word, less) - entries;
  }
  // The caller reads these entries next.
  for (auto element = begin; !before && element < copy->elements.end() && element - begin < kFetchedEntries; ++element)
    keys_.Prefetch(*element);
  const auto at = std::partition_point(begin, end, is_before);
  if (before) {
    copy->elements.erase(at, copy->elements.end());
  } else {
    copy->elements.erase(copy->elements.begin(), at);
  }
}

void LbEntryTree::CopyLeaf(const SearchKey& target, bool before, LeafCopy* copy, uint32_t /*enough*/) const {
  Copy(target, before, copy);
}

void LbEntryTree::CopyLeaf(const Separator& target, bool before, LeafCopy* copy, uint32_t /*enough*/) const {
  Copy(target, before, copy);
}

void LbEntryTree::VisitElements(const SearchKey& target, const Visitor& visit) const {
  const uint8_t fingerprint = LbEntryWords::Fingerprint(*parts_.order, target.key);
  SearchKey from = target;
  for (bool is_first = true;; is_first = false) {
    Words found;
    const InnerNodes::Range range = ReadMatches(from, target, fingerprint, &found);
    for (uint32_t i = 1; i < found.count; ++i) keys_.Prefetch({0, found.entries[i].value});
    for (uint32_t i = 0; i < found.count; ++i) {
      const LogEntry* const entry = keys_.EntryAt(PmPtr(found.entries[i].value));
      if (entry == nullptr) return;  // RegionSet::damage_seen tells the caller
      const Element element = {parts_.order->Prefix(entry->key()), found.entries[i].value};
      // A merge of leaves may have brought elements of the leaf before.
      if (element.key != target.prefix || (!is_first && entry->sequence() > from.sequence)) continue;
      if (visit(element) == Visited::kEnough) return;
    }
    if (range.is_last || range.high.prefix != target.prefix || range.high.rest == nullptr) return;
    if (parts_.order->Compare(range.high.rest->key(), target.key) != 0) return;
    from = SearchKey(target.prefix, range.high.rest->key(), range.high.rest->sequence);
  }
}

InnerNodes::Range LbEntryTree::ReadMatches(const SearchKey& from, const SearchKey& target, uint8_t fingerprint,
                                           Words* found) const {
  for (;;) {
    const InnerNodes::Range range = inner_.Find(from);
    const LbLeaf leaf = At(range.leaf);
    leaf.FetchAll();
    BRAIDDB_SYNC_POINT("LbEntryTree::FoundLeaf");
    const VersionLock* const lock = VersionOf(range.leaf);
    const uint64_t version = lock->BeginRead();
    found->skip = LbEntryWords::SkipOf(leaf.tag());
    found->count = leaf.FindAll(fingerprint, LbEntryWords::Word(*parts_.order, target, found->skip), found->entries);
    if (lock->IsCurrent(version) && inner_.IsCurrent(range)) return range;
  }
}

// ---- Changes

void LbEntryTree::CollectSorted(PmPtr leaf, std::vector<Element>* elements) const {
  Words words;
  words.skip = LbEntryWords::SkipOf(At(leaf).tag());
  words.count = At(leaf).Collect(words.entries);
  AppendSorted(&words, PrefixIn(words), elements);
}

LbTaggedEntry LbEntryTree::TaggedOf(const Element& element, uint32_t skip) const {
  const SearchKey key = KeyOf(element);
  return {{LbEntryWords::Word(*parts_.order, key, skip), element.value}, LbEntryWords::Fingerprint(*parts_.order, key.key)};
}

// A leaf without a border on one side may get keys that begin otherwise.
uint32_t LbEntryTree::WriteLeaf(PmPtr place, const Separator& low, const Separator* high, std::span<const Element> elements,
                                PmPtr next) {
  const bool is_first = low.prefix == 0 && low.rest == nullptr;
  const uint32_t skip =
      is_first || high == nullptr ? 0 : std::min(CommonBytes(*parts_.order, low, *high), LbEntryWords::kMaxSkip);
  for (const Element& element : elements) keys_.Prefetch(element);
  std::vector<LbTaggedEntry> entries;
  entries.reserve(elements.size());
  for (const Element& element : elements) entries.push_back(TaggedOf(element, skip));
  At(place).Make(persistence(), entries, MakeLink(place.raw(), next), LbEntryWords::Tag(root_->tree_id, place, skip));
  return HintFor(skip);
}

// A leaf that becomes nearly empty is reorganized too, since only a reorganization merges leaves.
bool LbEntryTree::HasRoom(const InnerNodes::Range& range, std::span<const LeafChange> changes) const {
  if (!BeginsAlike(range)) return false;
  const auto removed = static_cast<size_t>(std::ranges::count_if(changes, &LeafChange::negative));
  const size_t entries = UsedIn(range.leaf) + changes.size() - 2 * removed;
  return entries <= Capacity() && (entries > Capacity() / kSparse || changes.size() > removed || IsOnly(range));
}

// STEPS  1. A removed version gives its slot to its copy, if there is one; otherwise to an added version of its key.
//        2. Remove the others.  3. Add the rest.
// CRASH  Each new value counts by itself, so a copy in another slot than its original could be there beside it.
// If the free slots are too few, the removals are published first. Readers wait in between, so that they see all or nothing.
bool LbEntryTree::Change(const InnerNodes::Range& range, std::span<const LeafChange> changes) {
  const LbLeaf leaf = At(range.leaf);
  const uint32_t skip = LbEntryWords::SkipOf(leaf.tag());
  LbEntry entries[LbLeaf::kMaxEntries];
  uint8_t positions[LbLeaf::kMaxEntries];
  const uint32_t count = leaf.Collect(entries, positions);
  const auto position_of = [&](const Element& element) {
    for (uint32_t i = 0; i < count; ++i) {
      if (entries[i].value == element.value) return static_cast<uint32_t>(positions[i]);
    }
    return LbLeaf::kMaxEntries;  // a change that the caller should not have made
  };
  std::optional<LbLeaf::Changes> slots(leaf);
  std::vector<LbTaggedEntry> added;
  std::vector<const LeafChange*> given, taken;  // added elements of one key that have no slot yet; removed ones that have theirs
  for (size_t begin = 0, end = 0; begin < changes.size(); begin = end) {
    while (end < changes.size() && (end == begin || SameKey(changes[end - 1].element, changes[end].element))) ++end;
    given.clear();
    taken.clear();
    for (size_t i = begin; i < end; ++i) (changes[i].negative ? taken : given).push_back(&changes[i]);
    // Replaces the removed element by the given one, or removes it if there is none.
    const auto take = [&](const LeafChange* removed, auto replacement) {
      const uint32_t position = position_of(removed->element);
      if (position == LbLeaf::kMaxEntries) return;
      if (replacement == given.end()) return slots->Remove(position);
      slots->Replace(position, (*replacement)->element.value);
      given.erase(replacement);
    };
    std::erase_if(taken, [&](const LeafChange* removed) {
      const uint64_t sequence = keys_.KeyOf(removed->element).sequence;
      const auto copy =
          std::ranges::find_if(given, [&](const LeafChange* e) { return keys_.KeyOf(e->element).sequence == sequence; });
      if (copy == given.end()) return false;
      take(removed, copy);
      return true;
    });
    for (const LeafChange* removed : taken) take(removed, given.empty() ? given.end() : std::prev(given.end()));
    for (const LeafChange* change : given) added.push_back(TaggedOf(change->element, skip));
  }
  VersionLock* const version = VersionOf(range.leaf);
  const bool is_full = added.size() > slots->free();
  bool is_durable = true;
  if (is_full) {
    version->Lock();
    slots->Publish(persistence());
    // ORDER: the removals before their slots get other entries. [CC-76]
    if (!BRAIDDB_MUTANT("lb-removals-not-fenced")) is_durable = persistence()->Drain();
    CountLines(slots->lines());
    slots.emplace(leaf);
  }
  // ORDER: entries and fingerprints before the words that make them count. [CC-76]
  if (slots->Place(persistence(), added) && !BRAIDDB_MUTANT("lb-changed-line-not-fenced")) is_durable &= persistence()->Drain();
  if (!is_full) version->Lock();
  slots->Publish(persistence());
  version->Unlock();
  CountLines(slots->lines());
  return persistence()->Drain() && is_durable;
}

// ---- Splits in place

// Not if many words are equal: they would stay so in the part that stays.
bool LbEntryTree::SplitsInPlace(const InnerNodes::Range& range, std::span<const Element> elements) const {
  if (!BeginsAlike(range)) return false;
  const uint32_t skip = LbEntryWords::SkipOf(At(range.leaf).tag());
  if (!parts_.order->equal_means_same() || skip >= LbEntryWords::kMaxSkip) return true;
  LbEntry entries[LbLeaf::kMaxEntries];
  const uint32_t count = At(range.leaf).Collect(entries);
  std::sort(entries, entries + count, [](const LbEntry& a, const LbEntry& b) { return a.key < b.key; });
  uint32_t ties = 0;
  for (uint32_t i = 1; i < count; ++i) ties += entries[i].key == entries[i - 1].key;
  return ties * kTies < elements.size();
}

void LbEntryTree::PrepareSplit(PmPtr leaf, std::span<const Element> kept, PmPtr next) {
  LbEntry entries[LbLeaf::kMaxEntries];
  uint8_t positions[LbLeaf::kMaxEntries];
  const uint32_t count = At(leaf).Collect(entries, positions);
  uint32_t bitmaps[LbLeaf::kMaxBlocks] = {};
  for (uint32_t i = 0; i < count; ++i) {
    const bool stays = std::ranges::any_of(kept, [&](const Element& element) { return element.value == entries[i].value; });
    if (stays) bitmaps[positions[i] / LbLeaf::kSlots] |= 1u << positions[i] % LbLeaf::kSlots;
  }
  At(leaf).PrepareSplit(persistence(), bitmaps, MakeLink(leaf.raw(), next));
  kept_in_block_0_ = bitmaps[0];
}

void LbEntryTree::CommitSplit(PmPtr leaf) {
  VersionOf(leaf)->Lock();
  At(leaf).SwitchTo(kept_in_block_0_);
}

bool LbEntryTree::EndSplit(PmPtr leaf) {
  VersionOf(leaf)->Unlock();
  CountLines(1 + leaf_bytes_ / kLbBlockBytes);
  return BRAIDDB_MUTANT("lb-entry-split-not-flushed") || At(leaf).PersistSplit(persistence());
}

// ---- Opens

void LbEntryTree::Scan(PmPtr place, Scanned* found) const {
  const LbLeaf leaf = At(place);
  if (!IsValid(place)) return;
  LbEntry entries[LbLeaf::kMaxEntries];
  const uint32_t count = leaf.Collect(entries);
  const uint32_t skip = LbEntryWords::SkipOf(leaf.tag());
  found->valid = true;
  found->next = leaf.link();
  found->hint = skip;
  found->has_words = skip == 0;
  found->empty = count == 0;
  found->elements = count;
  if (count == 0) return;
  const auto [least, greatest] =
      std::minmax_element(entries, entries + count, [](const LbEntry& a, const LbEntry& b) { return a.key < b.key; });
  found->least = least->key;
  found->greatest = greatest->key;
}

// The ranges that an open finds may be larger than before: a range begins at the leaf's first entry.
uint32_t LbEntryTree::HintOf(PmPtr /*leaf*/, uint32_t scanned, const Separator& low, const Separator* high) const {
  const bool begins_alike = scanned == 0 || (high != nullptr && CommonBytes(*parts_.order, low, *high) >= scanned);
  return begins_alike ? HintFor(scanned) : 0;
}

}  // namespace braiddb
