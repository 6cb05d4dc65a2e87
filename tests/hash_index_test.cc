// HashIndex: growth, joins, overflow pages, opens, and damage.
#include "hash_index/hash_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "tests/support/hash_store.h"
#include "util/random.h"

namespace braiddb::test {
namespace {

class HashIndexTest : public testing::TestWithParam<uint32_t> {
 protected:
  // The only entry of a key.
  static PmPtr EntryOf(uint64_t key) { return NumberedEntries::Entry(key, 0); }
  void AddAll(uint64_t begin, uint64_t end) {
    std::vector<HashChange> changes;
    for (uint64_t i = begin; i < end; ++i) {
      changes.push_back(store_.Change(i, PmPtr(), EntryOf(i)));
      model_.insert(EntryOf(i).raw());
    }
    ASSERT_OK(store_.Apply(changes));
  }
  void RemoveAll(uint64_t begin, uint64_t end) {
    std::vector<HashChange> changes;
    for (uint64_t i = begin; i < end; ++i) {
      changes.push_back(store_.Change(i, EntryOf(i), PmPtr()));
      model_.erase(EntryOf(i).raw());
    }
    ASSERT_OK(store_.Apply(changes));
  }
  // A valid page; null if there is none with this number.
  HashPage* Page(size_t number) {
    HashPage* found = nullptr;
    store_.segments()->ForEachIndex([&](Segment* segment) {
      for (uint64_t at = HashPage::kBytes; at + HashPage::kBytes <= segment->capacity(); at += HashPage::kBytes) {
        auto* const page = store_.regions()->Resolve<HashPage>(segment->ptr(at));
        if (page->IsValid(store_.root()->tree_id, segment->ptr(at)) && number-- == 0) found = page;
      }
    });
    return found;
  }

  HashStore store_{GetParam()};
  HashStore::Entries model_;
};

INSTANTIATE_TEST_SUITE_P(Regions, HashIndexTest, testing::Values(1, 3));

TEST_P(HashIndexTest, AnEmptyIndexHasNoPages) {
  EXPECT_EQ(store_.index()->GetStats().pages, 0u);
  EXPECT_TRUE(store_.Of(7).empty());
  EXPECT_TRUE(store_.All().empty());
  EXPECT_OK(store_.index()->Shrink());
  store_.Reopen();
  EXPECT_TRUE(store_.All().empty());
}

TEST_P(HashIndexTest, GrowsAndShrinksAndIsThereAfterAnOpen) {
  constexpr uint64_t kEntries = 40000;
  for (uint64_t i = 0; i < kEntries; i += 500) AddAll(i, i + 500);
  EXPECT_EQ(store_.All(), model_);
  const HashIndex::Stats grown = store_.index()->GetStats();
  EXPECT_GT(grown.splits, kEntries / HashPage::kSlots / 2);
  EXPECT_EQ(grown.overflow_pages, 0u);
  // Pages are at least half full on average.
  EXPECT_LT(grown.pages, 2 * kEntries / HashPage::kSlots);
  for (uint64_t i = 0; i < kEntries; i += 97) EXPECT_EQ(store_.Of(i), HashStore::Entries{EntryOf(i).raw()});
  store_.Reopen();
  EXPECT_EQ(store_.All(), model_);
  EXPECT_EQ(store_.index()->GetStats().pages, grown.pages);
  RemoveAll(200, kEntries);
  EXPECT_OK(store_.index()->Shrink());
  store_.epochs()->Reclaim();
  EXPECT_EQ(store_.All(), model_);
  const HashIndex::Stats shrunk = store_.index()->GetStats();
  EXPECT_LE(shrunk.pages, 8u);
  EXPECT_GT(shrunk.joins, 0u);
  EXPECT_GE(shrunk.free_pages, grown.pages - shrunk.pages);
  store_.Reopen();
  EXPECT_EQ(store_.All(), model_);
  AddAll(kEntries, kEntries + 5000);
  store_.Reopen();
  EXPECT_EQ(store_.All(), model_);
}

// More versions of one key than its buckets have slots, among other keys.
TEST_P(HashIndexTest, ManyEntriesOfOneSignatureLieInOverflowPages) {
  constexpr uint64_t kVersions = 1000;
  constexpr uint64_t kHot = 1;
  HashStore::Entries versions;
  for (uint64_t i = 0; i < kVersions; ++i) {
    const PmPtr version = NumberedEntries::Entry(kHot, i);
    ASSERT_OK(store_.Apply(store_.Change(kHot, PmPtr(), version)));
    versions.insert(version.raw());
    model_.insert(version.raw());
    if (i % 2 == 0) AddAll(10 + i, 11 + i);
  }
  EXPECT_GE(store_.index()->GetStats().overflow_pages, kVersions / HashPage::kSlots);
  EXPECT_EQ(store_.Of(kHot), versions);
  EXPECT_EQ(store_.All(), model_);
  store_.Reopen();
  EXPECT_EQ(store_.Of(kHot), versions);
  EXPECT_EQ(store_.All(), model_);
  // The other keys' page is split beside the overflow pages.
  AddAll(50000, 60000);
  EXPECT_GT(store_.index()->GetStats().splits, 20u);
  EXPECT_EQ(store_.All(), model_);
  for (const uint64_t version : versions) {
    ASSERT_OK(store_.Apply(store_.Change(kHot, PmPtr(version), PmPtr())));
    model_.erase(version);
  }
  EXPECT_EQ(store_.All(), model_);
  // The empty overflow pages are freed.
  EXPECT_GT(store_.index()->GetStats().overflow_pages, 0u);
  ASSERT_OK(store_.index()->Shrink());
  EXPECT_EQ(store_.index()->GetStats().overflow_pages, 0u);
  EXPECT_EQ(store_.All(), model_);
  store_.Reopen();
  EXPECT_EQ(store_.All(), model_);
  EXPECT_EQ(store_.index()->GetStats().overflow_pages, 0u);
}

// Signatures that begin alike would make a directory with a cell for each of their bits.
TEST_P(HashIndexTest, SignaturesThatWereChosenDoNotMakeAHugeDirectory) {
  store_.keys.signature_of = [](uint64_t key) { return key * 0x9e3779b97f4a7c15ull >> 40; };  // the first 40 bits are zero
  std::vector<HashChange> changes;
  for (uint64_t i = 0; i < 6000; ++i) {
    changes.push_back(store_.Change(i, PmPtr(), EntryOf(i)));
    model_.insert(EntryOf(i).raw());
  }
  ASSERT_OK(store_.Apply(changes));
  EXPECT_EQ(store_.All(), model_);
  EXPECT_LT(store_.index()->DramBytes(), 1u << 20);
  store_.Reopen();
  EXPECT_EQ(store_.All(), model_);
}

TEST_P(HashIndexTest, RandomChangesMatchAModel) {
  Random random(5);
  std::map<uint64_t, std::vector<uint64_t>> model;  // from keys to entries
  uint64_t next = 0;
  for (int round = 0; round < 600 / kSlowdown; ++round) {
    std::vector<HashChange> changes;
    const bool grows = round / 60 % 2 == 0;
    for (int i = 0; i < 60; ++i) {
      // Few keys have many entries.
      const uint64_t key = random.OneIn(8) ? random.Uniform(3) : random.Uniform(6000);
      std::vector<uint64_t>& entries = model[key];
      const uint64_t signature = store_.keys.signature_of(key);
      if (std::ranges::any_of(changes, [&](const auto& change) { return change.signature == signature; })) continue;
      const PmPtr added = NumberedEntries::Entry(key, next++ % NumberedEntries::kVersions);
      if (!entries.empty() && random.OneIn(grows ? 4 : 2)) {
        changes.push_back({signature, PmPtr(entries.back()), PmPtr()});
        entries.pop_back();
      } else if (!entries.empty() && random.OneIn(2)) {
        changes.push_back({signature, PmPtr(entries.front()), added});
        entries.front() = added.raw();
      } else if (grows || random.OneIn(3)) {
        entries.push_back(added.raw());
        changes.push_back({signature, PmPtr(), added});
      }
    }
    ASSERT_OK(store_.Apply(changes));
    if (random.OneIn(20)) {
      ASSERT_OK(store_.index()->Shrink());
    }
    if (random.OneIn(30)) store_.Reopen();
    if (round % 10 != 0) continue;
    HashStore::Entries all;
    for (const auto& [key, entries] : model) all.insert(entries.begin(), entries.end());
    ASSERT_EQ(store_.All(), all) << "round " << round;
  }
}

TEST_P(HashIndexTest, AChangeOfAnEntryThatIsNotThereIsAnError) {
  AddAll(0, 10);
  EXPECT_CODE(store_.Apply(store_.Change(3, EntryOf(4), PmPtr())), kCorruption);
  EXPECT_CODE(store_.Apply(store_.Change(99, EntryOf(99), NumberedEntries::Entry(99, 1))), kCorruption);
}

// ---- Damage

TEST_P(HashIndexTest, ADamagedRootIsRefused) {
  AddAll(0, 10);
  store_.root()->page_bytes ^= 1;
  EXPECT_CODE(store_.Rebuild(), kCorruption);
  store_.root()->page_bytes ^= 1;
  EXPECT_OK(store_.Rebuild());
}

// Each bit of each header word of some pages. The index is refused, or has all entries.
TEST_P(HashIndexTest, ADamagedPageIsRefused) {
  AddAll(0, 4000);
  for (const size_t number : {size_t{0}, size_t{3}}) {
    HashPage* const page = Page(number);
    ASSERT_NE(page, nullptr);
    uint64_t* const words[] = {&page->state, &page->prefix, &page->next};
    for (uint64_t* const word : words) {
      for (int bit = 0; bit < 64; ++bit) {
        *word ^= uint64_t{1} << bit;
        EXPECT_CODE(store_.Rebuild(), kCorruption) << "bit " << bit;
        *word ^= uint64_t{1} << bit;
      }
    }
  }
  ASSERT_OK(store_.Rebuild());
  EXPECT_EQ(store_.All(), model_);
}

// An open reads no further than the marks. A mark that is damaged counts as all blocks.
TEST_P(HashIndexTest, ADamagedMarkHidesNoPage) {
  AddAll(0, 4000);
  std::vector<uint64_t*> marks;
  store_.segments()->ForEachIndex([&](Segment* segment) {
    marks.push_back(reinterpret_cast<uint64_t*>(segment->data() + HashMark::kOffset));
    const uint64_t blocks = segment->capacity() / HashPage::kBytes - 1;
    EXPECT_LE(HashMark::Blocks(segment->data(), store_.root()->tree_id, segment->generation(), blocks), blocks);
  });
  ASSERT_FALSE(marks.empty());
  for (uint64_t* const mark : marks) {
    for (int bit = 0; bit < 64; ++bit) {
      *mark ^= uint64_t{1} << bit;
      ASSERT_OK(store_.Rebuild()) << "bit " << bit;
      EXPECT_EQ(store_.All(), model_);
      *mark ^= uint64_t{1} << bit;
    }
  }
}

TEST_P(HashIndexTest, AMissingPartitionIsRefused) {
  AddAll(0, 50);
  HashPage* const page = Page(0);
  const uint64_t state = page->state;
  page->state = 0;
  EXPECT_CODE(store_.Rebuild(), kCorruption);
  page->state = state;
  EXPECT_OK(store_.Rebuild());
}

TEST(HashIndexSpaceTest, AFullRegionIsReported) {
  HashStore store(1, 40 << 20);
  store.keys.signature_of = [](uint64_t key) { return Mix64(key); };
  Status status;
  uint64_t added = 0;
  while (status.ok() && added < 10000000) {
    std::vector<HashChange> changes;
    for (uint64_t i = 0; i < 1000; ++i) changes.push_back(store.Change(added + i, PmPtr(), NumberedEntries::Entry(added + i, 0)));
    status = store.Apply(changes);
    added += status.ok() ? 1000 : 0;
  }
  EXPECT_CODE(status, kNoSpace);
  EXPECT_GE(store.All().size(), added);
  store.Reopen();
  EXPECT_GE(store.All().size(), added);
  // Removals need no space.
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_OK(store.Apply(store.Change(i, NumberedEntries::Entry(i, 0), PmPtr())));
}

}  // namespace
}  // namespace braiddb::test
