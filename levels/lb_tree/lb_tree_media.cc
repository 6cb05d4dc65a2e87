#include "levels/lb_tree/lb_tree_media.h"

#include "check/leaf_walk.h"
#include "check/media.h"
#include "levels/lb_tree/lb_entry_tree.h"

namespace braiddb {
namespace {

class LbLeafReader final : public LeafReader {
 public:
  explicit LbLeafReader(const LeafTreeRoot& root)
      : tree_id_(root.tree_id), blocks_(static_cast<uint32_t>(root.leaf_bytes) / kLbBlockBytes) {}

  const char* name() const override { return "LB+-Tree"; }
  BlockStart start() const override { return BlockStart::kAtXpLine; }
  bool IsValid(const uint8_t* leaf, PmPtr place) const override {
    const uint64_t tag = At(leaf).tag();
    return LbEntryWords::IsTag(tree_id_, place, tag) && At(leaf).IsValid(place.raw(), tag);
  }
  uint64_t LinkOf(const uint8_t* leaf) const override { return At(leaf).link(); }
  void Collect(const uint8_t* leaf, std::vector<Element>* elements) const override {
    LbEntry entries[LbLeaf::kMaxEntries];
    const uint32_t count = At(leaf).Collect(entries);
    for (uint32_t i = 0; i < count; ++i) elements->push_back({entries[i].key, entries[i].value});
  }
  bool Fits(const KeyOrder& order, const uint8_t* leaf, const Element& element, Slice key) const override {
    const uint32_t skip = LbEntryWords::SkipOf(At(leaf).tag());
    LbEntry found[LbLeaf::kMaxEntries];
    const uint32_t count = At(leaf).FindAll(LbEntryWords::Fingerprint(order, key),
                                            LbEntryWords::Word(order, SearchKey(order, key, kMaxSequence), skip), found);
    for (uint32_t i = 0; i < count; ++i) {
      if (found[i].key == element.key && found[i].value == element.value) return true;
    }
    return false;
  }
  bool IsHint(const uint8_t* leaf, uint32_t hint) const override {
    return hint == 0 || hint == LbEntryWords::SkipOf(At(leaf).tag()) + 1;
  }

 private:
  LbLeaf At(const uint8_t* leaf) const { return LbLeaf(reinterpret_cast<uint64_t*>(const_cast<uint8_t*>(leaf)), blocks_); }

  const uint64_t tree_id_;
  const uint32_t blocks_;
};

}  // namespace

bool LbTreeMedia::Load(Media* media, const MediaFamily& family, Findings* findings) {
  const auto* root = reinterpret_cast<const LeafTreeRoot*>(media->FindPlace(family, 0, sizeof(LeafTreeRoot)));
  if (root == nullptr || !IsLbEntryTreeRoot(*root, media->root(0)->database_id, family.number)) {
    findings->Add("the root of the LB+-Tree is missing or damaged", "region 0" + family.suffix());
    return false;
  }
  root_ = root;
  return true;
}

LevelCounts LbTreeMedia::Check(const LevelCheck& check) const { return CheckLeafTree(check, LbLeafReader(*root_), *root_); }

}  // namespace braiddb
