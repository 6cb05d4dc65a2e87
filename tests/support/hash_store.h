// Test support: a hash index without a database.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <span>

#include "hash_index/hash_index.h"
#include "tests/support/db_test_util.h"
#include "tests/support/pmem_store.h"
#include "util/random.h"

namespace braiddb::test {

// Entries that are addresses only. An entry's number and `signature_of` tell its signature.
class NumberedEntries final : public HashKeys {
 public:
  static constexpr uint64_t kVersions = 1 << 16;  // entries of one key
  static PmPtr Entry(uint64_t key, uint64_t version) { return PmPtr((key * kVersions + version + 1) * 8); }

  bool SignatureOf(PmPtr entry, uint64_t* signature) const override {
    *signature = signature_of((entry.raw() / 8 - 1) / kVersions);
    return true;
  }
  void Prefetch(PmPtr) const override {}

  // By default all signatures belong to one partition, so that its pages are split after few entries.
  std::function<uint64_t(uint64_t key)> signature_of = [](uint64_t key) { return Mix64(key) >> HashIndex::kPartitionBits; };
};

struct HashStore {
  static constexpr uint64_t kSegmentSize = 1 << 20;
  using Entries = std::set<uint64_t>;  // PmPtrs

  explicit HashStore(uint32_t region_count, uint64_t max_region_size = 256ull << 20) {
    options_.database_path = directory_.File("db");
    options_.database_id = kFixedDatabaseId;
    options_.regions = region_count;
    options_.max_region_size = max_region_size;
    options_.persist_mode = PersistMode::kEmulated;
    std::filesystem::create_directories(options_.database_path);
    EXPECT_OK(Store::Open(options_, kSegmentSize, &store_));
    EXPECT_OK(HashIndex::Create(regions(), segments()));
    EXPECT_OK(Rebuild());
  }
  ~HashStore() { index_.reset(); }

  // As after a crash without a loss of lines: everything in DRAM is gone.
  void Reopen() {
    Forget();
    EXPECT_OK(Store::Open(options_, kSegmentSize, &store_));
    EXPECT_OK(Rebuild());
  }
  // The same on regions that stay mapped.
  Status Rebuild(uint32_t threads = 2) {
    Forget();
    return HashIndex::Open({regions(), segments(), epochs_.get(), &keys, {}}, threads, &index_);
  }

  HashIndex* index() const { return index_.get(); }
  EpochManager* epochs() const { return epochs_.get(); }
  RegionSet* regions() const { return store_.regions.get(); }
  SegmentAllocator* segments() const { return store_.allocator.get(); }
  HashRoot* root() const { return static_cast<HashRoot*>(regions()->Metadata(0, MetadataSlot::kL1)); }

  // Applies changes and makes them durable.
  Status Apply(std::span<const HashChange> changes) {
    Status status = index_->Apply(changes);
    Persistence* const persistence = regions()->persistence();
    if (!persistence->Drain() && status.ok()) status = persistence->error();
    return status;
  }
  Status Apply(const HashChange& change) { return Apply({&change, 1}); }

  // The entries of a key, and all entries.
  Entries Of(uint64_t key) const {
    const EpochManager::Guard guard = epochs_->Enter();
    Entries entries;
    index_->VisitEntries(keys.signature_of(key), [&](PmPtr entry) {
      if ((entry.raw() / 8 - 1) / NumberedEntries::kVersions == key) entries.insert(entry.raw());
    });
    return entries;
  }
  Entries All() const {
    Entries entries;
    for (uint32_t i = 0; i < HashIndex::kPartitions; ++i) {
      index_->VisitPartition(i, [&](PmPtr entry, uint64_t bits, uint32_t count) {
        uint64_t signature = 0;
        EXPECT_TRUE(keys.SignatureOf(entry, &signature));
        EXPECT_EQ(signature >> (64 - HashIndex::kPartitionBits), i);
        EXPECT_EQ((signature ^ bits) >> (64 - count), 0u);
        EXPECT_TRUE(entries.insert(entry.raw()).second) << "an entry is there twice";
      });
    }
    return entries;
  }
  // A change of an entry of a key; null PmPtrs as in HashChange.
  HashChange Change(uint64_t key, PmPtr from, PmPtr to) const { return {keys.signature_of(key), from, to}; }

  NumberedEntries keys;

 private:
  // The reclaimers of pages belong to the epochs.
  void Forget() {
    index_.reset();
    epochs_ = std::make_unique<EpochManager>();
  }

  TestDirectory directory_;
  RegionSetOptions options_;
  Store store_;
  std::unique_ptr<EpochManager> epochs_ = std::make_unique<EpochManager>();
  std::unique_ptr<HashIndex> index_;
};

}  // namespace braiddb::test
