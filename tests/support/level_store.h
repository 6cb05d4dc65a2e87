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

 private:
  std::shared_ptr<const BraidedSkipList> l1_;
};

}  // namespace braiddb::test
