// The open of an NV-Tree: what is damaged is an error, or not used.
#include <gtest/gtest.h>

#include "leaf_tree/inner_image.h"
#include "tests/support/tree_store.h"

namespace braiddb::test {
namespace {

// Whatever happens to the image of the inner nodes: the leaves say what is there.
TEST(NvTreeOpenTest, ADamagedImageIsNotUsed) {
  const KeyOrder order(BytewiseComparator());
  Names names(&order);
  TreeStore store(2, 512, &names, &order);
  std::vector<LeafChange> changes;
  for (uint64_t i = 0; i < 400; ++i) changes.push_back({names.Add("a prefix that all have " + NumberedKey(i), 1)});
  ASSERT_OK(store.tree()->Apply(changes));
  ASSERT_OK(store.Rebuild());
  const std::vector<Element> sound = store.Forward();
  auto* root = static_cast<LeafTreeRoot*>(store.regions()->Metadata(0, MetadataSlot::kL1));
  ASSERT_OK(store.tree()->Close());
  const PmPtr place = LinkTarget(root->image);
  const auto* header = store.regions()->Resolve<ImageHeader>(place);
  const std::string image(reinterpret_cast<const char*>(header), sizeof(ImageHeader) + header->bytes);
  ASSERT_GT(image.size(), 1000u);
  for (size_t bit = 0; bit < (image.size() + 8) * 8; bit += 5) {
    const size_t segments = store.tree()->GetStats().free_leaves;
    ASSERT_OK(store.tree()->Close());
    auto* written = store.regions()->Resolve<uint8_t>(LinkTarget(root->image));
    uint8_t& byte = bit / 8 < image.size() ? written[bit / 8] : reinterpret_cast<uint8_t*>(&root->image)[bit / 8 - image.size()];
    byte ^= static_cast<uint8_t>(1 << bit % 8);
    ASSERT_OK(store.Rebuild());
    EXPECT_FALSE(store.tree()->GetStats().from_image) << bit;
    ASSERT_EQ(store.Forward(), sound) << bit;
    EXPECT_EQ(store.tree()->GetStats().free_leaves, segments);
    if (bit % 50 == 0) store.Reopen();
    root = static_cast<LeafTreeRoot*>(store.regions()->Metadata(0, MetadataSlot::kL1));
  }
  ASSERT_OK(store.tree()->Close());
  ASSERT_OK(store.Rebuild());
  EXPECT_TRUE(store.tree()->GetStats().from_image);
  EXPECT_EQ(store.Forward(), sound);
  ASSERT_OK(store.tree()->Close());
  ASSERT_OK(store.Rebuild(2, true));
  EXPECT_FALSE(store.tree()->GetStats().from_image) << "verified";
}

TEST(NvTreeOpenTest, WrongSizesAndDamageAreErrors) {
  const KeyOrder order(BytewiseComparator());
  const PlainKeys keys;
  TreeStore store(1, 512, &keys, &order);
  std::vector<LeafChange> changes;
  for (uint64_t i = 0; i < 300; ++i) changes.push_back({{i * 1000, i}});
  ASSERT_OK(store.tree()->Apply(changes));
  for (const uint32_t bytes : {0u, 64u, 511u, 768u, 8192u}) {
    EXPECT_CODE(NvTree::Create(store.regions(), store.segments(), bytes), kInvalidArgument);
  }
  auto* root = static_cast<LeafTreeRoot*>(store.regions()->Metadata(0, MetadataSlot::kL1));
  auto* first = store.regions()->Resolve<Leaf>(LinkTarget(root->first));
  auto* second = store.regions()->Resolve<Leaf>(LinkTarget(first->next));
  const std::vector<Element> sound = store.Forward();
  // Every bit of the root and of two leaves, as far as they are in use.
  const auto flip = [&](void* begin, size_t bytes, size_t step) {
    for (size_t bit = 0; bit < bytes * 8; bit += step) {
      // The marks of elements that are not there say nothing.
      const bool is_mark = begin != root && bit >= offsetof(Leaf, negative) * 8 && bit < offsetof(Leaf, shape) * 8;
      if (is_mark && bit >= offsetof(Leaf, negative) * 8 + static_cast<Leaf*>(begin)->count()) continue;
      uint8_t& byte = static_cast<uint8_t*>(begin)[bit / 8];
      byte ^= static_cast<uint8_t>(1 << bit % 8);
      EXPECT_CODE(store.Rebuild(), kCorruption) << bit;
      byte ^= static_cast<uint8_t>(1 << bit % 8);
    }
  };
  flip(root, offsetof(LeafTreeRoot, image), 1);
  flip(first, Leaf::kHeaderBytes + first->count() * sizeof(Element), 3);
  flip(second, Leaf::kHeaderBytes + second->count() * sizeof(Element), 7);
  // A link to another leaf of the tree.
  const uint64_t link = root->first;
  root->first = first->next;
  EXPECT_CODE(store.Rebuild(), kCorruption);
  root->first = link;
  ASSERT_OK(store.Rebuild());
  EXPECT_EQ(store.Forward(), sound);
}

}  // namespace
}  // namespace braiddb::test
