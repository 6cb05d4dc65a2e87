// Test support: log entries, tables of L0 and a braided skiplist of them, without a database.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "compaction/merge_journal.h"
#include "skiplist/braided_skiplist.h"
#include "tests/support/entry_store.h"

namespace braiddb::test {

// With an empty last level and a journal.
class LevelStore : public EntryStore {
 public:
  explicit LevelStore(uint32_t regions, PersistMode mode = PersistMode::kEmulated) : EntryStore(regions, mode) {
    Check(BraidedSkipList::Create(this->regions()));
    Check(MergeJournal::Create(this->regions()));
    Check(BraidedSkipList::Open(this->regions(), &order(), &l1_));
  }

  // As after a crash: everything in DRAM is lost. PmPtrs stay what they are.
  void Reopen() {
    l1_.reset();
    OpenRegions();
    Check(BraidedSkipList::Open(regions(), &order(), &l1_));
  }

  const BraidedSkipList& last_level() const { return *l1_; }
  const BraidedList& l1() const { return l1_->list(); }

  // What a list holds, in its order.
  std::vector<Version> Dump(const BraidedList& list) const {
    std::vector<Version> versions;
    for (const PmPtr pointer : Layer(list, 0, 0)) versions.push_back(VersionAt(pointer));
    return versions;
  }

  // Whether the bottom list is in strict order with no dead entry in it, and each upper list of each region has exactly the
  // entries of that region that are tall enough, in the same order.
  testing::AssertionResult IsWhole(const BraidedList& list) const {
    const std::vector<PmPtr> bottom = Layer(list, 0, 0);
    for (size_t i = 0; i < bottom.size(); ++i) {
      if (Resolve(bottom[i])->is_dead()) return testing::AssertionFailure() << "dead in the list: " << Text(bottom[i]);
      if (i > 0 && CompareEntries(order(), *Resolve(bottom[i - 1]), *Resolve(bottom[i])) >= 0) {
        return testing::AssertionFailure() << "out of order: " << Text(bottom[i - 1]) << ", " << Text(bottom[i]);
      }
    }
    for (uint32_t region = 0; region < regions()->count(); ++region) {
      for (uint32_t layer = 1; layer < kMaxHeight; ++layer) {
        std::vector<PmPtr> expected;
        for (const PmPtr pointer : bottom) {
          if (pointer.region() == region && Resolve(pointer)->height() > layer) expected.push_back(pointer);
        }
        const std::vector<PmPtr> found = Layer(list, region, layer);
        if (found == expected) continue;
        return testing::AssertionFailure() << "layer " << layer << " of region " << region << " has " << found.size()
                                           << " entries, the bottom list " << expected.size() << " for it, or others";
      }
    }
    return testing::AssertionSuccess();
  }

 private:
  std::vector<PmPtr> Layer(const BraidedList& list, uint32_t region, uint32_t layer) const {
    std::vector<PmPtr> pointers;
    const uint64_t* tower = list.head(region);
    // More entries than were ever written: it goes in a circle.
    while (pointers.size() <= written()) {
      const PmPtr pointer(LoadAcquire(&tower[layer]) & ~LogEntry::kTagBits);
      if (!pointer) break;
      if (!regions()->Contains(pointer, sizeof(LogEntry)) || (layer > 0 && pointer.region() != region)) {
        ADD_FAILURE() << "layer " << layer << " of region " << region << " leads to " << pointer.raw();
        break;
      }
      pointers.push_back(pointer);
      tower = Resolve(pointer)->next;
    }
    return pointers;
  }

  std::shared_ptr<const BraidedSkipList> l1_;
};

}  // namespace braiddb::test
