// Counts of lines, XPLines and fences: of one thread by figures that were worked out by hand, of several beside each other.
#include <gtest/gtest.h>

#include <atomic>
#include <ostream>
#include <set>
#include <thread>
#include <vector>

#include "pmem/persistence.h"
#include "pmem/write_counter.h"
#include "tests/support/db_test_util.h"
#include "util/thread_index.h"

namespace braiddb {

bool operator==(const PmWrites& a, const PmWrites& b) {
  return a.lines == b.lines && a.xp_lines == b.xp_lines && a.fences == b.fences;
}
void PrintTo(const PmWrites& writes, std::ostream* out) {
  *out << writes.lines << " lines, " << writes.xp_lines << " XPLines, " << writes.fences << " fences";
}

namespace {

constexpr uint64_t kXpLine = WriteCounter::kXpLine;

TEST(WriteCounterTest, CountsLinesFencesAndXpLines) {
  WriteCounter counter;
  alignas(256) static char memory[1024];
  counter.OnFlush(memory + 60, 8);  // two lines of one XPLine
  counter.OnFlush(memory + 128, 64);
  EXPECT_EQ(counter.writes(), (PmWrites{3, 0, 0})) << "XPLines count at the fence";
  counter.OnDrain();
  EXPECT_EQ(counter.writes(), (PmWrites{3, 1, 1}));
  counter.OnFlush(memory, 0);
  counter.OnFlush(memory, 1);
  counter.OnFlush(memory + 255, 2);
  counter.OnDrain();
  EXPECT_EQ(counter.writes(), (PmWrites{6, 3, 2}));
  counter.OnDrain();
  EXPECT_EQ(counter.writes(), (PmWrites{6, 3, 3}));
}

TEST(WriteCounterTest, AnXpLineCountsOnceBetweenTwoFencesInWhateverOrder) {
  alignas(256) static char memory[8 * kXpLine];
  const auto at = [](uint64_t xp_line, uint64_t offset) { return memory + xp_line * kXpLine + offset; };
  WriteCounter counter;
  counter.OnFlush(at(5, 0), 64);
  counter.OnFlush(at(2, 0), 64);
  counter.OnFlush(at(5, 192), 64);
  counter.OnFlush(at(1, 0), 3 * kXpLine);  // 1, 2, 3
  counter.OnFlush(at(2, 128), 64);
  counter.OnFlush(at(4, 0), 64);
  counter.OnDrain();
  EXPECT_EQ(counter.writes(), (PmWrites{5 + 12, 5, 1}));
  counter.OnFlush(at(5, 0), 64);  // behind a fence it counts once more
  counter.OnDrain();
  EXPECT_EQ(counter.writes(), (PmWrites{18, 6, 2}));
}

// More stretches than are kept before they are merged; against a set.
TEST(WriteCounterTest, ManyFlushesBetweenTwoFences) {
  test::Random random(1);
  WriteCounter counter;
  PmWrites expected;
  for (int round = 0; round < 20; ++round) {
    std::set<uint64_t> xp_lines;
    const uint64_t span = random.Range(1, 20'000) * kXpLine;
    const uint64_t flushes = random.Range(1, 20'000) / test::kSlowdown + 1;
    for (uint64_t i = 0; i < flushes; ++i) {
      const uint64_t begin = (1 << 20) + random.Uniform(span);
      const uint64_t bytes = random.Skewed(2000) + 1;
      counter.OnFlush(reinterpret_cast<const void*>(begin), bytes);
      for (uint64_t line = begin / 64; line <= (begin + bytes - 1) / 64; ++line) {
        ++expected.lines;
        xp_lines.insert(line / 4);
      }
    }
    counter.OnDrain();
    ++expected.fences;
    expected.xp_lines += xp_lines.size();
    ASSERT_EQ(counter.writes(), expected);
  }
}

TEST(PersistenceWritesTest, NothingIsCountedUnlessAskedFor) {
  alignas(256) static char memory[256];
  Persistence persistence(PersistMode::kEmulated, {});
  EXPECT_FALSE(persistence.counts_writes());
  EXPECT_TRUE(persistence.Persist(memory, 256));
  EXPECT_EQ(persistence.writes(), PmWrites());
  persistence.CountWrites();
  EXPECT_TRUE(persistence.counts_writes());
  EXPECT_TRUE(persistence.Persist(memory, 256));
  EXPECT_EQ(persistence.writes(), (PmWrites{4, 1, 1}));
}

TEST(PersistenceWritesTest, ModesAndInjectedLatencies) {
  alignas(256) static char memory[256];
  EmulationOptions slow;
  slow.write_latency_ns = 1;
  const struct {
    PersistMode mode;
    EmulationOptions emulation;
  } kCounting[] = {{PersistMode::kCacheLine, {}}, {PersistMode::kEadr, {}}, {PersistMode::kEmulated, slow}};
  for (const auto& [mode, emulation] : kCounting) {
    Persistence persistence(mode, emulation);
    persistence.CountWrites();
    EXPECT_TRUE(persistence.Persist(memory + 10, 60));
    EXPECT_EQ(persistence.writes(), (PmWrites{2, 1, 1})) << static_cast<int>(mode);
  }
  Persistence paged(PersistMode::kPage, {});
  paged.CountWrites();
  EXPECT_FALSE(paged.counts_writes());
  EXPECT_TRUE(paged.Drain());
  EXPECT_EQ(paged.writes(), PmWrites());
}

// An observer that comes and goes takes nothing from the counts.
TEST(PersistenceWritesTest, ObserversSeeAndCountsCount) {
  alignas(256) static char memory[256];
  WriteCounter observer;
  Persistence persistence(PersistMode::kEmulated, {});
  persistence.CountWrites();
  persistence.SetObserver(&observer);
  EXPECT_TRUE(persistence.Persist(memory, 100));
  persistence.SetObserver(nullptr);
  EXPECT_TRUE(persistence.Persist(memory, 100));
  EXPECT_EQ(observer.writes(), (PmWrites{2, 1, 1}));
  EXPECT_EQ(persistence.writes(), (PmWrites{4, 2, 2}));
}

// Each thread's XPLines are its own: a fence is its thread's, and two threads that write one XPLine write it twice.
TEST(PersistenceWritesTest, AFenceIsOfItsThreadOnly) {
  alignas(256) static char memory[256];
  Persistence persistence(PersistMode::kEmulated, {});
  persistence.CountWrites();
  persistence.Flush(memory, 8);
  std::thread([&] { EXPECT_TRUE(persistence.Persist(memory + 64, 8)); }).join();
  EXPECT_EQ(persistence.writes(), (PmWrites{2, 1, 1}));
  EXPECT_TRUE(persistence.Persist(memory, 8));
  EXPECT_EQ(persistence.writes(), (PmWrites{3, 2, 2}));
}

// A thread that is ending has given back its index, and so has no counter: its writes count all the same, each flush for itself.
TEST(PersistenceWritesTest, AThreadWithoutACounterIsCounted) {
  struct WritesAtItsEnd {
    ~WritesAtItsEnd() {
      persistence->Flush(memory, 0);
      persistence->Flush(memory, 100);
      persistence->Flush(memory, 8);
      EXPECT_EQ(ThreadIndex(), kNoThreadIndex);
      EXPECT_TRUE(persistence->Drain());
    }
    Persistence* persistence;
    char* memory;
  };
  alignas(256) static char memory[256];
  Persistence persistence(PersistMode::kEmulated, {});
  persistence.CountWrites();
  std::thread([&] {
    static thread_local WritesAtItsEnd first{&persistence, memory};  // destroyed last
    EXPECT_TRUE(first.persistence->Persist(memory, 8));
  }).join();
  EXPECT_EQ(persistence.writes(), (PmWrites{1 + 3, 1 + 2, 1 + 1}));
}

// Waves of threads that come and end, while another one reads: sums only grow, and nothing is lost.
TEST(PersistenceWritesTest, ThreadsThatEndLoseNothing) {
  constexpr int kWaves = 20, kThreads = 8;
  constexpr uint64_t kWrites = 500;
  alignas(256) static char memory[kThreads][1024];
  Persistence persistence(PersistMode::kEmulated, {});
  persistence.CountWrites();
  std::atomic<bool> done{false};
  std::thread reader([&] {
    PmWrites last;
    while (!done) {
      const PmWrites now = persistence.writes();
      EXPECT_TRUE(now.lines >= last.lines && now.xp_lines >= last.xp_lines && now.fences >= last.fences);
      last = now;
    }
  });
  for (int wave = 0; wave < kWaves; ++wave) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (uint64_t i = 0; i < kWrites; ++i) {
          persistence.Flush(memory[t], 64);
          persistence.Flush(memory[t] + 512, 200);
          EXPECT_TRUE(persistence.Drain());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    const uint64_t all = (wave + 1) * kThreads * kWrites;
    EXPECT_EQ(persistence.writes(), (PmWrites{5 * all, 2 * all, all}));
  }
  done = true;
  reader.join();
}

}  // namespace
}  // namespace braiddb
