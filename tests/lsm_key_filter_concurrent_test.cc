// The filter: no key that was added is denied, and few others are not.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "index/key_hash.h"
#include "lsm/key_filter.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

// Another process finds the keys that the filter had when it was listed, and those that came to the listed parts later.
TEST(KeyFilterTest, OtherProcessesAttach) {
  const auto heap = SharedHeap::Create();
  const auto mapped = SharedMemory::Attach(heap->memory().OpenToRead(), false, 1);
  const auto hash_of = [](uint64_t i) { return (i + 1) * 0x9e3779b97f4a7c15ull; };
  const auto add = [&](KeyFilter* filter, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      const uint64_t hash = hash_of(i);
      filter->Add({&hash, 1});
    }
  };
  const auto has_all = [&](const KeyFilter& filter, uint64_t count) {
    uint64_t found = 0;
    for (uint64_t i = 0; i < count; ++i) found += filter.MayContain(hash_of(i)) ? 1 : 0;
    return found == count;
  };
  const auto own = KeyFilter::Create(10, 500);
  add(own.get(), 0, 1000);
  EXPECT_GT(own->parts(), 1u);
  EXPECT_TRUE(own->Shared().empty());
  EXPECT_EQ(KeyFilter::Attach(*mapped, own->Shared()), nullptr);
  const auto shared = own->CopyTo(heap.get());
  ASSERT_NE(shared, nullptr);
  EXPECT_EQ(shared->keys(), own->keys());
  const auto attached = KeyFilter::Attach(*mapped, shared->Shared());
  ASSERT_NE(attached, nullptr);
  EXPECT_TRUE(has_all(*attached, 1000));
  uint64_t positives = 0;
  for (uint64_t i = 10'000; i < 20'000; ++i) positives += attached->MayContain(hash_of(i)) ? 1 : 0;
  EXPECT_LT(positives, 1000u);
  add(shared.get(), 1000, 1010);
  EXPECT_TRUE(has_all(*attached, 1010));
  add(shared.get(), 1010, 20'000);
  EXPECT_GT(shared->parts(), attached->parts());
  EXPECT_TRUE(has_all(*KeyFilter::Attach(*mapped, shared->Shared()), 20'000));
  std::vector<SharedRange> parts = shared->Shared();
  for (const SharedRange bad : {SharedRange{0, 64}, {8, 64}, {mapped->bytes(), 64}, {4096, 0}, {4096, UINT64_MAX}}) {
    parts.back() = bad;
    EXPECT_EQ(KeyFilter::Attach(*mapped, parts), nullptr);
  }
}

// As of numbered keys of one kind.
uint64_t HashOf(uint64_t number, char kind = 'k') {
  char key[9] = {kind};
  memcpy(key + 1, &number, 8);
  return KeyHash(Slice(key, sizeof(key)));
}

void AddRange(KeyFilter* filter, uint64_t begin, uint64_t end) {
  KeyFilterWriter writer(nullptr, filter);
  for (uint64_t i = begin; i < end; ++i) writer.Add(HashOf(i));
  writer.Finish();
}

double ShareOfOthers(const KeyFilter& filter) {
  constexpr uint64_t kOthers = 100000;
  uint64_t maybe = 0;
  for (uint64_t i = 0; i < kOthers; ++i) maybe += filter.MayContain(HashOf(i, 'o'));
  return static_cast<double>(maybe) / kOthers;
}

TEST(KeyFilter, KnowsItsKeysAndFewOthers) {
  for (const auto& [bits, most] : {std::pair{4u, 0.35}, {8u, 0.035}, {10u, 0.015}, {14u, 0.005}}) {
    SCOPED_TRACE(bits);
    const auto filter = KeyFilter::Create(bits, 100000);
    ASSERT_NE(filter, nullptr);
    EXPECT_EQ(ShareOfOthers(*filter), 0.0);
    AddRange(filter.get(), 0, 100000);
    for (uint64_t i = 0; i < 100000; ++i) ASSERT_TRUE(filter->MayContain(HashOf(i)));
    EXPECT_LT(ShareOfOthers(*filter), most);
    EXPECT_LE(filter->bytes(), 100000u * bits / 8 + 4096);
    EXPECT_GE(filter->keys(), 75000u);
    EXPECT_LE(filter->keys(), 100000u);
  }
}

TEST(KeyFilter, IsFullWhenItMayNotGrow) {
  EXPECT_EQ(KeyFilter::Create(10, 1000, 1000), nullptr);
  const auto filter = KeyFilter::Create(10, 1000, 3000);  // a second part would make it 4000
  ASSERT_NE(filter, nullptr);
  AddRange(filter.get(), 0, 900);
  EXPECT_FALSE(filter->is_full());
  AddRange(filter.get(), 900, 3000);
  EXPECT_TRUE(filter->is_full());
  EXPECT_LE(filter->bytes(), 3000u);
  for (uint64_t i = 0; i < 3000; ++i) ASSERT_TRUE(filter->MayContain(HashOf(i)));
  EXPECT_EQ(ShareOfOthers(*filter), 1.0);
}

TEST(KeyFilter, GrowsWithItsKeys) {
  const auto filter = KeyFilter::Create(10, 1000);
  ASSERT_NE(filter, nullptr);
  AddRange(filter.get(), 0, 120000);  // seven parts
  for (uint64_t i = 0; i < 120000; ++i) ASSERT_TRUE(filter->MayContain(HashOf(i)));
  EXPECT_LT(ShareOfOthers(*filter), 0.08);
  EXPECT_LT(filter->bytes(), 2u * 120000 * 10 / 8);
}

// Whatever is left of the bytes when they are divided.
TEST(KeyFilter, ASecondPartHasRoom) {
  for (const uint32_t bits : {7, 10, 64}) {
    for (const uint64_t bytes : {60000, 60064, 60128, 60200, 123457}) {
      SCOPED_TRACE(std::to_string(bits) + " bits, " + std::to_string(bytes) + " bytes");
      const uint64_t keys = KeyFilter::KeysOfFirstPart(bits, bytes);
      EXPECT_GE(keys * bits / 8, bytes / 3 - 128);
      const auto filter = KeyFilter::Create(bits, keys, bytes);
      ASSERT_NE(filter, nullptr);
      AddRange(filter.get(), 0, 2 * keys);
      EXPECT_EQ(filter->parts(), 2u);
      EXPECT_FALSE(filter->is_full());
      EXPECT_LE(filter->bytes(), bytes);
    }
  }
  EXPECT_GT(KeyFilter::KeysOfFirstPart(10, UINT64_MAX), uint64_t{1} << 40);
}

TEST(KeyFilter, KeysThatAreThereTakeNoRoom) {
  const auto filter = KeyFilter::Create(10, 1000);
  ASSERT_NE(filter, nullptr);
  for (int round = 0; round < 50; ++round) AddRange(filter.get(), 0, 900);
  EXPECT_LE(filter->keys(), 900u);
  EXPECT_LT(filter->bytes(), 2000u);
}

// They are looked for in the last part only, and are in it once.
TEST(KeyFilter, KeysThatAreNew) {
  const auto filter = KeyFilter::Create(10, 1000);
  ASSERT_NE(filter, nullptr);
  {
    KeyFilterWriter writer(filter.get(), nullptr, true);
    for (uint64_t i = 0; i < 5000; ++i) writer.Add(HashOf(i));
  }
  for (uint64_t i = 0; i < 5000; ++i) ASSERT_TRUE(filter->MayContain(HashOf(i)));
  const uint64_t keys = filter->keys();
  EXPECT_GE(keys, 4900u);
  EXPECT_LT(ShareOfOthers(*filter), 0.05);
  const auto add_again = [&](uint64_t begin, uint64_t end) {
    KeyFilterWriter writer(filter.get(), nullptr, true);
    for (uint64_t i = begin; i < end; ++i) writer.Add(HashOf(i));
  };
  add_again(4000, 5000);  // in the last part, which is made for 4000 and begins at 3000
  EXPECT_EQ(filter->keys(), keys);
  for (int round = 0; round < 3; ++round) add_again(0, 500);
  EXPECT_GT(filter->keys(), keys + 400);
  EXPECT_LE(filter->keys(), keys + 500);
}

TEST(KeyFilter, SmallOnesWork) {
  const auto filter = KeyFilter::Create(1, 1);
  ASSERT_NE(filter, nullptr);
  AddRange(filter.get(), 0, 500);
  for (uint64_t i = 0; i < 500; ++i) EXPECT_TRUE(filter->MayContain(HashOf(i)));
}

TEST(KeyFilter, WritesToBoth) {
  const auto one = KeyFilter::Create(10, 100);
  const auto other = KeyFilter::Create(10, 100);
  KeyFilterWriter writer(one.get(), other.get());
  for (uint64_t i = 0; i < 77; ++i) writer.Add(HashOf(i));
  writer.Finish();
  for (uint64_t i = 0; i < 77; ++i) EXPECT_TRUE(one->MayContain(HashOf(i)) && other->MayContain(HashOf(i)));
}

TEST(KeyFilter, AWriterLeavesNothingBehind) {
  for (uint64_t count = 1; count <= 200; ++count) {
    const auto filter = KeyFilter::Create(10, 1000);
    {
      KeyFilterWriter writer(filter.get(), nullptr);
      for (uint64_t i = 0; i < count; ++i) writer.Add(KeyHash(std::to_string(i)));
    }
    EXPECT_EQ(filter->keys(), count);
    for (uint64_t i = 0; i < count; ++i) ASSERT_TRUE(filter->MayContain(KeyHash(std::to_string(i)))) << i << " of " << count;
  }
}

// Two threads add, and tell how far they are; readers ask for what is there by then.
TEST(KeyFilter, ReadersWhileItGrows) {
  constexpr uint64_t kKeys = 40000;
  const auto filter = KeyFilter::Create(10, 500);
  ASSERT_NE(filter, nullptr);
  std::atomic<uint64_t> added[2] = {0, kKeys};
  std::vector<std::thread> threads;
  for (uint64_t half = 0; half < 2; ++half) {
    threads.emplace_back([&, half] {
      for (uint64_t i = half * kKeys; i < (half + 1) * kKeys; i += 100) {
        AddRange(filter.get(), i, i + 100);
        added[half].store(i + 100, std::memory_order_release);
      }
    });
    threads.emplace_back([&, half] {
      Random random(half);
      for (uint64_t known = 0; known < (half + 1) * kKeys;) {
        known = added[half].load(std::memory_order_acquire);
        if (known == half * kKeys) continue;
        for (int i = 0; i < 50; ++i) {
          const uint64_t key = half * kKeys + random.Uniform(known - half * kKeys);
          ASSERT_TRUE(filter->MayContain(HashOf(key)));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace braiddb::test
