// Test support: an LB+-Tree without a database.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <ostream>
#include <vector>

#include "lb_tree/lb_tree.h"
#include "tests/support/db_test_util.h"
#include "tests/support/pmem_store.h"

namespace braiddb::test {

struct LbTreeStore {
  static constexpr uint64_t kSegmentSize = 256ull << 10;

  LbTreeStore(uint32_t region_count, uint32_t leaf_bytes, bool move_entries = true, uint64_t max_region_size = 256ull << 20,
              PersistMode mode = PersistMode::kEmulated)
      : move_entries_(move_entries) {
    options_.database_path = directory_.File("db");
    options_.database_id = kFixedDatabaseId;
    options_.regions = region_count;
    options_.max_region_size = max_region_size;
    options_.persist_mode = mode;
    std::filesystem::create_directories(options_.database_path);
    EXPECT_OK(Store::Open(options_, kSegmentSize, &store_));
    EXPECT_OK(LbTree::Create(regions(), segments(), leaf_bytes));
    EXPECT_OK(Rebuild());
  }

  // As after a crash without a loss of lines: everything in DRAM is gone.
  void Reopen() {
    tree_.reset();
    EXPECT_OK(Store::Open(options_, kSegmentSize, &store_));
    EXPECT_OK(Rebuild());
  }
  // The same on regions that stay mapped.
  Status Rebuild(uint32_t threads = 2) {
    tree_.reset();
    return LbTree::Open({regions(), segments(), {}, move_entries_}, threads, &tree_);
  }

  // The same with a new segment allocator.
  Status ReopenInPlace() {
    tree_.reset();
    store_.allocator.reset();
    const Status status = SegmentAllocator::Open(regions(), kSegmentSize, &store_.allocator);
    return status.ok() ? Rebuild(1) : status;
  }

  LbTree* tree() const { return tree_.get(); }
  RegionSet* regions() const { return store_.regions.get(); }
  SegmentAllocator* segments() const { return store_.allocator.get(); }
  LbTreeRoot* root() const { return static_cast<LbTreeRoot*>(regions()->Metadata(0, MetadataSlot::kL1)); }

  std::vector<LbEntry> Forward() const {
    std::vector<LbEntry> all;
    LbTree::LeafCopy copy;
    for (tree()->CopyLeaf(0, &copy);; tree()->CopyLeafFrom(copy.high, &copy)) {
      all.insert(all.end(), copy.entries.begin(), copy.entries.end());
      if (copy.is_last) return all;
    }
  }
  std::vector<LbEntry> Backward() const {
    std::vector<LbEntry> all;
    LbTree::LeafCopy copy;
    for (tree()->CopyLeaf(UINT64_MAX, &copy);; tree()->CopyLeafBefore(copy.low, &copy)) {
      all.insert(all.end(), copy.entries.rbegin(), copy.entries.rend());
      if (copy.is_first) break;
    }
    std::reverse(all.begin(), all.end());
    return all;
  }

 private:
  const bool move_entries_;
  TestDirectory directory_;
  RegionSetOptions options_;
  Store store_;
  std::unique_ptr<LbTree> tree_;
};

}  // namespace braiddb::test

namespace braiddb {

inline void PrintTo(const LbEntry& entry, std::ostream* out) { *out << std::hex << entry.key << ":" << std::dec << entry.value; }

}  // namespace braiddb
