// LbEntryTree: a LeafTree with the leaves of LB+-Tree (Liu, Chen, Wang: "LB+-Trees", VLDB '20) for log entries.
//
// LAYOUT         Leaves (lb_tree/lb_leaf.h) of kLeafBytes. An entry's value is the address of the log entry. All keys of a leaf
//                begin with the same `skip` bytes, which the leaf's tag says, and an entry's key word is the eight bytes behind
//                them (leaf_tree/separator.h). So words decide the order also if keys begin alike. The fingerprint is a byte of
//                the hash of the whole key. With a comparator of the user's, words and fingerprints are zero.
//                Tag: bits 0–15 skip; bits 16–63 a hash of it, of the leaf's address and of its tree.
// COMMIT POINT   Changes within a leaf: LbLeaf::Changes. A split in place: LbLeaf::CommitSplit; no log, as in the paper (3.4).
// RECOVERY       leaf_tree/leaf_tree.h. A leaf is valid if its link and its tag are.
// CONCURRENCY    A leaf changes in place, under its latch and its version lock. A reader copies what it needs, checks the
//                version, and then that the inner node by which it found the leaf has not changed. So the leaf's range was the
//                same while the reader copied. A reader that has found the version that it wants need not check the inner node:
//                a split takes only later versions away. Entries are visible before they are durable; the tables that have them
//                stay until the merge ends.
// DIFFERENCES    The paper's writers lock leaves in hardware transactions; here a merge changes leaves, many entries at once.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lb_tree/lb_leaf.h"
#include "lb_tree/version_lock.h"
#include "leaf_tree/entry_keys.h"
#include "leaf_tree/leaf_tree.h"
#include "util/sync_point.h"

namespace braiddb {

inline constexpr uint64_t kLbEntryTreeMagic = 0x3145544c'44415242;  // "BRADLTE1"

// Returns true if this is the valid root of the tree of this database and family (LevelPlace::number).
bool IsLbEntryTreeRoot(const LeafTreeRoot& root, uint64_t database_id, uint64_t number);

// The words and the fingerprint of keys in a leaf.
class LbEntryWords {
 public:
  static constexpr uint32_t kMaxSkip = InnerNodes::kMaxHint - 1;

  static uint64_t Tag(uint64_t tree_id, PmPtr leaf, uint32_t skip);
  static uint32_t SkipOf(uint64_t tag) { return static_cast<uint32_t>(tag & 0xffff); }
  static bool IsTag(uint64_t tree_id, PmPtr leaf, uint64_t tag) { return Tag(tree_id, leaf, SkipOf(tag)) == tag; }

  static uint64_t Word(const KeyOrder& order, const SearchKey& key, uint32_t skip) { return WordBehind(order, key, skip); }
  static uint8_t Fingerprint(const KeyOrder& order, Slice key);
  // The prefix of a key, from its word and the prefix of another key of the leaf.
  static uint64_t Prefix(uint64_t word, uint32_t skip, uint64_t other) {
    if (skip == 0) return word;
    if (skip >= sizeof(word)) return other;
    return (other & ~(~uint64_t{0} >> (8 * skip))) | word >> (8 * skip);
  }
};

// Thread safety: as LeafTree.
class LbEntryTree final : public LeafTree {
 public:
  // Two blocks: the tag needs the second one. Smaller leaves write less in a split, larger ones save inner nodes.
  static constexpr uint32_t kLeafBytes = 512;

  static Status Create(RegionSet* regions, SegmentAllocator* segments, const LevelPlace& place);
  // As NvTree::Open. `keys`: LeafTreeParts::keys.
  static Status Open(const LeafTreeParts& parts, const EntryKeys* keys, uint32_t threads, bool verify,
                     std::unique_ptr<LbEntryTree>* result);

  void CopyLeaf(const SearchKey& target, bool before, LeafCopy* copy, uint32_t enough = kAllElements) const override;
  void CopyLeaf(const Separator& target, bool before, LeafCopy* copy, uint32_t enough = kAllElements) const override;
  void FetchLeafOf(const SearchKey& target) const override { At(inner_.Find(target).leaf).FetchAll(); }
  void FetchLeafOf(const Separator& target) const override { At(inner_.Find(target).leaf).FetchAll(); }
  void VisitElements(const SearchKey& target, const Visitor& visit) const override;

  // Calls `visit(LogEntry*, PmPtr)` for entries that may have the target's key, and `on_leaf(PmPtr)` for each leaf that it reads,
  // until `is_found()`. Visits the leaf of the target, and the next ones while the key extends into them. An entry may be visited
  // twice. Returns the number of leaves of the key that it has read. REQUIRES: an epoch guard.
  template <class Visit, class OnLeaf, class IsFound>
  uint32_t Search(const SearchKey& target, const Visit& visit, const OnLeaf& on_leaf, const IsFound& is_found) const;

 private:
  LbEntryTree(const LeafTreeParts& parts, const EntryKeys* keys, LeafTreeRoot* root);

  // A copy of a leaf's entries.
  struct Words {
    uint32_t count = 0;
    uint32_t skip = 0;
    LbEntry entries[LbLeaf::kMaxEntries];
  };

  uint32_t Capacity() const override { return leaf_bytes_ / kLbBlockBytes * LbLeaf::kSlots; }
  uint32_t UsedIn(PmPtr leaf) const override { return At(leaf).Count(); }
  bool IsValid(PmPtr leaf) const override {
    const uint64_t tag = At(leaf).tag();
    return LbEntryWords::IsTag(root_->tree_id, leaf, tag) && At(leaf).IsValid(leaf.raw(), tag);
  }
  uint64_t* LinkOf(PmPtr leaf) const override { return At(leaf).LinkWord(); }
  void CollectSorted(PmPtr leaf, std::vector<Element>* elements) const override;
  uint32_t WriteLeaf(PmPtr place, const Separator& low, const Separator* high, std::span<const Element> elements,
                     PmPtr next) override;
  bool HasRoom(const InnerNodes::Range& range, std::span<const LeafChange> changes) const override;
  bool Change(const InnerNodes::Range& range, std::span<const LeafChange> changes) override;
  bool SplitsInPlace(const InnerNodes::Range& range, std::span<const Element> elements) const override;
  void PrepareSplit(PmPtr leaf, std::span<const Element> kept, PmPtr next) override;
  void CommitSplit(PmPtr leaf) override;
  bool EndSplit(PmPtr leaf) override;
  void Scan(PmPtr place, Scanned* found) const override;
  void FlushFound(PmPtr leaf) const override { At(leaf).FlushAll(persistence()); }
  uint32_t HintOf(PmPtr leaf, uint32_t scanned, const Separator& low, const Separator* high) const override;
  uint64_t ExtraBytes() const override { return sizeof(versions_); }

  LbLeaf At(PmPtr leaf) const { return LbLeaf(parts_.regions->Resolve<uint64_t>(leaf), leaf_bytes_ / kLbBlockBytes); }
  // Shared by the leaves with one hash.
  VersionLock* VersionOf(PmPtr leaf) const { return &versions_[Mix64(leaf.raw()) % versions_.size()]; }
  // A hint says that all keys of the leaf's range begin alike, and with how many bytes. 0: they may not.
  static bool BeginsAlike(const InnerNodes::Range& range) { return range.hint != 0; }
  static uint32_t HintFor(uint32_t skip) { return skip + 1; }
  static bool IsOnly(const InnerNodes::Range& range) {
    return range.is_last && range.low.prefix == 0 && range.low.rest == nullptr;
  }

  template <class Target>
  InnerNodes::Range FindLeaf(const Target& target, bool before) const {
    return before ? inner_.FindBefore(target) : inner_.Find(target);
  }
  // Copies the leaf of the target. Returns its range as of the copy.
  template <class Target>
  InnerNodes::Range ReadLeaf(const Target& target, bool before, Words* words) const;
  template <class Target>
  void Copy(const Target& target, bool before, LeafCopy* copy) const;
  // Copies the entries of the leaf of `from` that may have the target's key. Returns the leaf's range as of the copy.
  InnerNodes::Range ReadMatches(const SearchKey& from, const SearchKey& target, uint8_t fingerprint, Words* found) const;
  LbTaggedEntry TaggedOf(const Element& element, uint32_t skip) const;
  // Sorts entries and appends them as elements. `prefix`: of a key of the leaf.
  void AppendSorted(Words* words, uint64_t prefix, std::vector<Element>* elements) const;
  // The prefix of a key of the leaf. Reads an entry if the words do not say it.
  uint64_t PrefixIn(const InnerNodes::Range& range, const Words& words) const {
    return words.skip > 0 && BeginsAlike(range) ? range.low.prefix : PrefixIn(words);
  }
  uint64_t PrefixIn(const Words& words) const;

  const EntryKeys& keys_;
  uint32_t kept_in_block_0_ = 0;  // from PrepareSplit to CommitSplit, under the structure mutex
  mutable std::array<VersionLock, 512> versions_;
};

// WHY IT IS RIGHT  If is_found() after a leaf was read, the leaf had the version that the search wants. Writers take only
//                  versions away that come behind it (CONCURRENCY). Otherwise the range is checked, and the search begins again
//                  if a split came between.
template <class Visit, class OnLeaf, class IsFound>
uint32_t LbEntryTree::Search(const SearchKey& target, const Visit& visit, const OnLeaf& on_leaf, const IsFound& is_found) const {
  const uint8_t fingerprint = LbEntryWords::Fingerprint(*parts_.order, target.key);
  InnerNodes::Range range = inner_.Find(target);
  SearchKey from = target;
  for (uint32_t leaves = 1;;) {
    const LbLeaf leaf = At(range.leaf);
    leaf.Prefetch();
    on_leaf(range.leaf);
    BRAIDDB_SYNC_POINT("LbEntryTree::FoundLeaf");
    const VersionLock* const lock = VersionOf(range.leaf);
    const uint64_t version = lock->BeginRead();
    LbEntry found[LbLeaf::kMaxEntries];
    const uint64_t word = LbEntryWords::Word(*parts_.order, target, LbEntryWords::SkipOf(leaf.tag()));
    const uint32_t count = leaf.FindAll(fingerprint, word, found);
    if (!lock->IsCurrent(version)) {
      range = inner_.Find(from);
      continue;
    }
    for (uint32_t i = 1; i < count; ++i) keys_.Prefetch({0, found[i].value});
    for (uint32_t i = 0; i < count; ++i) {
      const PmPtr place(found[i].value);
      if (LogEntry* const entry = keys_.EntryAt(place); entry != nullptr) visit(entry, place);
    }
    if (is_found()) return leaves;
    if (!inner_.IsCurrent(range)) {
      range = inner_.Find(from);
      continue;
    }
    // The versions of one key may extend over several leaves.
    if (range.is_last || range.high.prefix != target.prefix || range.high.rest == nullptr) return leaves;
    const SeparatorRest* const border = range.high.rest;
    if (parts_.order->Compare(border->key(), target.key) != 0) return leaves;
    ++leaves;
    from = SearchKey(target.prefix, border->key(), border->sequence);
    range = inner_.Find(from);
  }
}

}  // namespace braiddb
