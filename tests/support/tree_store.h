// Test support: an NV-Tree without a database, and what it should hold.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "leaf_tree/leaf_cursor.h"
#include "nvtree/nv_tree.h"
#include "tests/support/db_test_util.h"
#include "tests/support/pmem_store.h"
#include "util/random.h"

namespace braiddb::test {

// What elements stand for: element.value is the number of a name.
class Names final : public ElementKeys {
 public:
  struct Name {
    std::string key;
    uint64_t sequence;
  };
  explicit Names(const KeyOrder* order) : order_(order) {}

  SearchKey KeyOf(const Element& element) const override {
    const Name& name = names_[element.value];
    EXPECT_FALSE(name.sequence == kGone) << "asked of an element that was taken back";
    return SearchKey(*order_, name.key, name.sequence);
  }
  void Prefetch(const Element& element) const override { EXPECT_LT(element.value, names_.size()); }
  Element Add(const std::string& key, uint64_t sequence) {
    names_.push_back({key, sequence});
    return {order_->Prefix(key), names_.size() - 1};
  }
  const Name& Of(const Element& element) const { return names_[element.value]; }
  // As an entry whose segment was released: nobody may look at it again.
  void Forget(const Element& element) { names_[element.value].sequence = kGone; }

  bool Less(const Element& a, const Element& b) const {
    const Name& x = names_[a.value];
    const Name& y = names_[b.value];
    const int by_key = order_->Compare(x.key, y.key);
    return by_key != 0 ? by_key < 0 : x.sequence > y.sequence;
  }

 private:
  static constexpr uint64_t kGone = UINT64_MAX;
  const KeyOrder* const order_;
  std::vector<Name> names_;
};

struct TreeStore {
  static constexpr uint64_t kSegmentSize = 256ull << 10;

  TreeStore(uint32_t region_count, uint32_t leaf_bytes, const ElementKeys* keys, const KeyOrder* order,
            uint64_t max_region_size = 256ull << 20)
      : keys_(keys), order_(order) {
    options_.database_path = directory_.File("db");
    options_.database_id = kFixedDatabaseId;
    options_.regions = region_count;
    options_.max_region_size = max_region_size;
    options_.persist_mode = PersistMode::kEmulated;
    std::filesystem::create_directories(options_.database_path);
    EXPECT_OK(Store::Open(options_, kSegmentSize, &store_));
    EXPECT_OK(NvTree::Create(store_.regions.get(), store_.allocator.get(), leaf_bytes));
    Attach();
  }

  // As after a crash without a loss of lines: everything in DRAM is gone. `close`: as after a clean close.
  void Reopen(bool close = false) {
    if (close) {
      EXPECT_OK(tree_->Close());
    }
    tree_.reset();
    epochs_ = std::make_unique<EpochManager>();
    EXPECT_OK(Store::Open(options_, kSegmentSize, &store_));
    Attach();
  }
  // The same on regions that stay mapped.
  Status Rebuild(uint32_t threads = 2, bool verify = false) {
    tree_.reset();
    epochs_ = std::make_unique<EpochManager>();
    return NvTree::Open({regions(), store_.allocator.get(), epochs_.get(), order_, keys_}, threads, verify, &tree_);
  }
  void Attach() { ASSERT_OK(Rebuild()); }

  NvTree* tree() const { return tree_.get(); }
  EpochManager* epochs() const { return epochs_.get(); }
  RegionSet* regions() const { return store_.regions.get(); }
  SegmentAllocator* segments() const { return store_.allocator.get(); }

  std::vector<Element> Forward() const {
    std::vector<Element> elements;
    LeafCursor cursor(tree());
    for (cursor.SeekToFirst(); cursor.element() != nullptr; cursor.Next()) elements.push_back(*cursor.element());
    return elements;
  }
  std::vector<Element> Backward() const {
    std::vector<Element> elements;
    LeafCursor cursor(tree());
    for (cursor.SeekToLast(); cursor.element() != nullptr; cursor.Prev()) elements.push_back(*cursor.element());
    std::reverse(elements.begin(), elements.end());
    return elements;
  }

 private:
  const ElementKeys* const keys_;
  const KeyOrder* const order_;
  TestDirectory directory_;
  RegionSetOptions options_;
  Store store_;
  std::unique_ptr<EpochManager> epochs_ = std::make_unique<EpochManager>();
  std::unique_ptr<NvTree> tree_;
};

}  // namespace braiddb::test

namespace braiddb {

// For GoogleTest, which looks where Element is.
inline void PrintTo(const Element& element, std::ostream* out) {
  *out << std::hex << element.key << ":" << std::dec << element.value;
}

}  // namespace braiddb
