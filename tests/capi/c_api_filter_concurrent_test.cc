// Filters by a policy of the user's own: they answer for keys that nobody wrote to since, and never hide one that is there.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/capi/c_fixture.h"
#include "tests/support/wait_until.h"

namespace braiddb::test {
namespace {

// A policy whose filter is the exact set of keys.
struct ExactPolicy {
  std::atomic<int> made{0};
  std::atomic<int> asked{0};
  std::atomic<bool> says_no{false};

  static char* Create(void* state, const char* const* keys, const size_t* lengths, int count, size_t* length) {
    ++static_cast<ExactPolicy*>(state)->made;
    std::string all = "\n";
    for (int i = 0; i < count; ++i) all.append(keys[i], lengths[i]).append("\n");
    char* const result = static_cast<char*>(std::malloc(all.size()));
    all.copy(result, all.size());
    *length = all.size();
    return result;
  }
  static unsigned char MayMatch(void* state, const char* key, size_t key_length, const char* filter, size_t length) {
    auto* const policy = static_cast<ExactPolicy*>(state);
    ++policy->asked;
    if (policy->says_no) return 0;
    return std::string_view(filter, length).find("\n" + std::string(key, key_length) + "\n") != std::string_view::npos;
  }
  static const char* Name(void*) { return "exact"; }
};

class CApiFilterTest : public CApiTest {
 protected:
  CApiFilterTest()
      : handle_(braiddb_filterpolicy_create(
            &policy_, [](void*) {}, ExactPolicy::Create, ExactPolicy::MayMatch, ExactPolicy::Name)) {
    braiddb_options_set_filter_policy(options_, handle_);
  }
  ~CApiFilterTest() override {
    Close();
    braiddb_filterpolicy_destroy(handle_);
  }
  static std::string Key(int i) { return "key" + std::to_string(100'000 + i); }
  void Compact() { braiddb_compact_range(db_, nullptr, 0, nullptr, 0); }

  ExactPolicy policy_;
  braiddb_filterpolicy_t* const handle_;
};

TEST_F(CApiFilterTest, GetsAskTheFilterOfTheirKey) {
  Open();
  for (int i = 0; i < 3000; ++i) Put(Key(i), "v");
  EXPECT_EQ("v", Get(Key(0)));
  EXPECT_EQ(0, policy_.asked);  // nothing was compacted yet
  Compact();
  EXPECT_EQ(3, policy_.made);  // 1024 keys each
  EXPECT_EQ("v", Get(Key(0)));
  EXPECT_EQ("v", Get(Key(2999)));
  EXPECT_EQ(std::nullopt, Get("key1"));
  EXPECT_EQ(2, policy_.asked);  // what is before the first key has no filter
  policy_.says_no = true;
  EXPECT_EQ(std::nullopt, Get(Key(7)));
  EXPECT_EQ(nullptr, braiddb_get_pinned(db_, read_, Key(7).data(), 9, error_.pointer()));
  const braiddb_snapshot_t* const snapshot = braiddb_create_snapshot(db_);
  braiddb_readoptions_set_snapshot(read_, snapshot);
  EXPECT_EQ("v", Get(Key(7)));  // snapshots ask none
  braiddb_readoptions_set_snapshot(read_, nullptr);
  braiddb_release_snapshot(db_, snapshot);
}

TEST_F(CApiFilterTest, AWriteEndsTheFilterOfItsKeysOnly) {
  Open();
  for (int i = 0; i < 3000; ++i) Put(Key(i), "v");
  Compact();
  policy_.says_no = true;
  Put(Key(100) + "new", "v");
  EXPECT_EQ("v", Get(Key(100) + "new"));
  EXPECT_EQ("v", Get(Key(100)));
  EXPECT_EQ(std::nullopt, Get(Key(2000)));
  braiddb_writebatch_t* const batch = braiddb_writebatch_create();
  braiddb_writebatch_put(batch, Key(2000).data(), Key(2000).size(), "w", 1);
  braiddb_write(db_, write_, batch, error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_writebatch_destroy(batch);
  EXPECT_EQ("w", Get(Key(2000)));
  policy_.says_no = false;
  Compact();
  policy_.says_no = true;
  EXPECT_EQ(std::nullopt, Get(Key(2000)));
}

TEST_F(CApiFilterTest, NoKeyIsHiddenWhileFiltersAreMade) {
  Open();
  constexpr int kThreads = 3;
  constexpr int kKeys = 4000;
  std::atomic<bool> running{true};
  std::thread compactor([&] {
    while (running) Compact();
  });
  std::vector<std::thread> writers;
  std::atomic<int> hidden{0};
  for (int t = 0; t < kThreads; ++t) {
    writers.emplace_back([&, t] {
      char* error = nullptr;
      for (int i = t; i < kKeys; i += kThreads) {
        // Filters are there beside the second half of the writes.
        if (i >= kKeys / 2 && !WaitUntil([this] { return policy_.made > 0; })) return;
        const std::string key = Key(i * 7919 % kKeys);
        braiddb_put(db_, write_, key.data(), key.size(), "v", 1, &error);
        size_t length = 0;
        char* const value = braiddb_get(db_, read_, key.data(), key.size(), &length, &error);
        if (value == nullptr) ++hidden;
        braiddb_free(value);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  running = false;
  compactor.join();
  EXPECT_EQ(0, hidden);
  EXPECT_GT(policy_.made, 0);
}

}  // namespace
}  // namespace braiddb::test
