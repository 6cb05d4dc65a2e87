#include "levels/nv_tree/nv_tree_media.h"

#include "check/leaf_walk.h"
#include "check/media.h"

namespace braiddb {
namespace {

class NvLeafReader final : public LeafReader {
 public:
  explicit NvLeafReader(const LeafTreeRoot& root) : tree_id_(root.tree_id), bytes_(static_cast<uint32_t>(root.leaf_bytes)) {}

  const char* name() const override { return "NV-Tree"; }
  BlockStart start() const override { return BlockStart::kAtLeafSize; }
  bool IsValid(const uint8_t* leaf, PmPtr place) const override { return IsValidLeaf(At(leaf), tree_id_, place, bytes_); }
  uint64_t LinkOf(const uint8_t* leaf) const override { return LoadRelaxed(&At(leaf).next); }
  void Collect(const uint8_t* leaf, std::vector<Element>* elements) const override { CollectLive(At(leaf), bytes_, elements); }
  bool Fits(const KeyOrder& order, const uint8_t*, const Element& element, Slice key) const override {
    return order.Prefix(key) == element.key;
  }
  bool IsHint(const uint8_t* leaf, uint32_t hint) const override { return hint == 0 || hint == At(leaf).sorted(); }

 private:
  static const Leaf& At(const uint8_t* leaf) { return *reinterpret_cast<const Leaf*>(leaf); }

  const uint64_t tree_id_;
  const uint32_t bytes_;
};

}  // namespace

bool NvTreeMedia::Load(Media* media, const MediaFamily& family, Findings* findings) {
  const auto* root = reinterpret_cast<const LeafTreeRoot*>(media->FindPlace(family, 0, sizeof(LeafTreeRoot)));
  if (root == nullptr || !IsNvTreeRoot(*root, media->root(0)->database_id, family.number)) {
    findings->Add("the root of the NV-Tree is missing or damaged", "region 0" + family.suffix());
    return false;
  }
  root_ = root;
  return true;
}

LevelCounts NvTreeMedia::Check(const LevelCheck& check) const { return CheckLeafTree(check, NvLeafReader(*root_), *root_); }

}  // namespace braiddb
