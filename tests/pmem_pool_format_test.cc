// PMDK's headers and part lists that are not as they should be: each is found, and named.
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "pmem/layout.h"
#include "pmem/part_list.h"
#include "pmem/pool_format.h"
#include "tests/support/pmem_temp_dir.h"

namespace braiddb {
namespace {

constexpr uint64_t kDescriptor = 4096;
constexpr uint64_t kDescriptorBytes = 2048;
constexpr uint64_t kLanes = kDescriptor + 1024;
constexpr uint64_t kLaneBytes = 3072;

// A pool in memory.
class PoolFormatTest : public testing::Test {
 protected:
  void SetUp() override {
    const test::PmemTempDir dir;
    std::unique_ptr<RegionSet> set;
    ASSERT_TRUE(RegionSet::Create(test::PmemOptions(dir.Sub("db")), &set).ok());
    set.reset();
    std::ifstream in(dir.Sub("db/region-0/000000.pmem"), std::ios::binary);
    pool_.assign(std::istreambuf_iterator<char>(in), {});
    ASSERT_EQ(Damage(), "");
    ASSERT_EQ(Chunks(), "");
    ASSERT_EQ(View().FindLaneDamage(), nullptr);
    ASSERT_FALSE(View().RedoPending());
  }

  PoolView View() const { return PoolView(reinterpret_cast<const uint8_t*>(pool_.data()), pool_.size()); }
  template <class T = uint64_t>
  T Get(uint64_t offset) const {
    T value;
    std::memcpy(&value, &pool_[offset], sizeof(value));
    return value;
  }
  template <class T>
  void Set(uint64_t offset, T value) {
    std::memcpy(&pool_[offset], &value, sizeof(value));
  }
  std::string Damage() const { return OrEmpty(View().FindDamage()); }
  std::string Chunks() const {
    return OrEmpty(View().ForEachChunks([](PoolView::Chunks, uint64_t, uint64_t) {}));
  }
  static std::string OrEmpty(const char* damage) { return damage == nullptr ? "" : damage; }

  // Runs `look` on the pool with `change` made to it.
  void With(const std::function<void()>& change, const std::function<void()>& look) {
    const std::string sound = pool_;
    change();
    look();
    pool_ = sound;
  }
  // Makes the checksum of PMDK's descriptor right again.
  void SealDescriptor() {
    uint32_t low = 0;
    uint32_t high = 0;
    for (uint64_t at = 0; at < kDescriptorBytes; at += 4) {
      low += at < kDescriptorBytes - 8 ? Get<uint32_t>(kDescriptor + at) : 0;
      high += low;
    }
    Set(kDescriptor + kDescriptorBytes - 8, uint64_t{high} << 32 | low);
  }

  std::string pool_;
};

TEST_F(PoolFormatTest, DamageOfTheHeadersIsFound) {
  const auto expect = [&](const char* what, const std::function<void()>& change) {
    With(change, [&] { EXPECT_NE(Damage().find(what), std::string::npos) << what << ": " << Damage(); });
  };
  const uint64_t heap = View().heap_begin();
  expect("shorter", [&] { pool_.resize(8191); });
  expect("signature", [&] { Set(0, uint8_t{'x'}); });
  expect("unknown pool format", [&] { Set(kPoolMajorOffset, kPoolMajor + 1); });
  expect("checksum of the pool header", [&] { Set(100, ~Get(100)); });
  expect("checksum of the pool descriptor", [&] { Set(kDescriptor, ~Get(kDescriptor)); });
  expect("heap does not end", [&] { pool_.resize(8192); });
  expect("heap does not end", [&] { Set(kPoolHeapSizeOffset, Get(kPoolHeapSizeOffset) - 4096); });
  expect("heap does not end", [&] {
    pool_.resize(heap + 4096);
    Set(kPoolHeapSizeOffset, uint64_t{4096});
  });
  expect("lanes", [&] {
    Set(kLanes, heap + 8);
    SealDescriptor();
  });
  expect("lanes", [&] {
    Set(kLanes + 8, heap / kLaneBytes + 1);
    SealDescriptor();
  });
  expect("heap header", [&] { Set(heap, uint8_t{'x'}); });
  expect("heap header", [&] { Set(heap + 64, ~Get(heap + 64)); });
}

TEST_F(PoolFormatTest, DamageOfAnyLaneIsFound) {
  const uint64_t lanes = Get(kLanes);
  for (const uint64_t lane : {uint64_t{0}, Get(kLanes + 8) - 1}) {
    const uint64_t begin = lanes + lane * kLaneBytes;
    for (const uint64_t log : {0, 256, 960}) {
      With([&] { Set(begin + log + 8, uint64_t{1} << 40); }, [&] { EXPECT_NE(View().FindLaneDamage(), nullptr) << log; });
      With([&] { Set(begin + log, uint64_t{1}); },
           [&] {
             EXPECT_TRUE(View().RedoPending()) << log;
             // Undo logs belong to transactions, which are never made.
             EXPECT_EQ(View().FindLaneDamage() != nullptr, log == 960);
           });
    }
    With([&] { Set(begin + 960 + 64, uint64_t{1}); }, [&] { EXPECT_NE(View().FindLaneDamage(), nullptr); });
  }
}

// PMDK would walk along them without end.
TEST_F(PoolFormatTest, RedoEntriesThatAreNoneAreFound) {
  const uint64_t lane = Get(kLanes) + kLaneBytes;
  for (const auto& [log, entries] : {std::pair<uint64_t, uint64_t>{0, 12}, {256, 40}}) {
    for (uint64_t operation = 0; operation < 8; ++operation) {
      for (const uint64_t at : {uint64_t{0}, uint64_t{3}, entries - 1, entries}) {
        if (log == 256 && at == entries) continue;  // there an undo log begins, which is empty
        With(
            [&, log = log] {
              for (uint64_t i = 0; i < at; ++i) Set(lane + log + 64 + 16 * i, uint64_t{4096});
              Set(lane + log + 64 + 16 * at, operation << 61 | 4096);
            },
            [&, log = log, entries = entries] {
              EXPECT_EQ(View().FindLaneDamage() == nullptr, operation <= 2 || at == entries)
                  << log << " " << operation << " " << at;
            });
      }
    }
    // Behind the end of the log is what earlier ones left.
    With([&, log = log] { Set(lane + log + 64 + 16, uint64_t{7} << 61); }, [&] { EXPECT_EQ(View().FindLaneDamage(), nullptr); });
  }
}

TEST_F(PoolFormatTest, DamageOfTheChunksIsFound) {
  const uint64_t zone = View().heap_begin() + kHeapHeaderBytes;
  const uint64_t first = zone + sizeof(ZoneHeader);
  const uint32_t chunks = Get<ZoneHeader>(zone).chunks;
  const auto expect = [&](const char* what, const std::function<void()>& change) {
    With(change, [&] { EXPECT_NE(Chunks().find(what), std::string::npos) << Chunks(); });
  };
  expect("zone", [&] { Set(zone, ZoneHeader::kMagic + 1); });
  expect("zone", [&] { Set(zone + 4, chunks + 1); });
  expect("chunk header", [&] { Set(first, ChunkHeader{ChunkHeader::kUsed, 0, 0}); });
  expect("chunk header", [&] { Set(first, ChunkHeader{ChunkHeader::kUsed, 0, chunks + 1}); });
  expect("chunk header", [&] { Set(first, ChunkHeader{ChunkHeader::kFooter, 0, 1}); });
  expect("chunk header", [&] { Set(first, ChunkHeader{static_cast<ChunkHeader::Type>(ChunkHeader::kRun + 1), 0, 1}); });
  // A zone that PMDK has not come to holds nothing.
  int stretches = 0;
  const auto count = [&](PoolView::Chunks, uint64_t, uint64_t) { ++stretches; };
  With([&] { Set(zone, uint32_t{0}); }, [&] { EXPECT_EQ(View().ForEachChunks(count), nullptr); });
  EXPECT_EQ(stretches, 0);
  EXPECT_EQ(View().ForEachChunks(count), nullptr);
  EXPECT_GT(stretches, 0);
}

// ---- The part list

Status ParseWithChecksum(const std::string& body) {
  char line[32];
  std::snprintf(line, sizeof(line), "checksum %016" PRIx64 "\n", static_cast<uint64_t>(XXH3_64bits(body.data(), body.size())));
  PartList list;
  return PartList::Parse(body + line, "the/PARTS", &list);
}

TEST(PartListFormatTest, AWholeListThatMakesNoSenseIsCorruption) {
  const std::string title = "braiddb-parts 1\n";
  const std::string head = title + "database 00000000000000ff\nregion 0 of 2\n";
  const std::string part = "part 000000.pmem 8388608\n";
  const std::string next = "next 000001.pmem 8388608\n";
  ASSERT_TRUE(ParseWithChecksum(head + part).ok());
  ASSERT_TRUE(ParseWithChecksum(head + part + next).ok());
  for (const std::string& body :
       {title, title + "database\n", title + "database xyz\n" + part, title + "database ff\n", title + "database ff\nregion\n",
        title + "database ff\nregion 0\n" + part, head, head + part + "hello\n", head + part + next + next,
        head + part + next + part, head + "part 000001.pmem 8388608\n", head + "part 000000.pmem\n",
        head + "part 000000.pmem many\n", head + "part 000000.pmem 0\n", head + next, head + part + "no end of line"}) {
    const Status status = ParseWithChecksum(body);
    EXPECT_TRUE(status.IsCorruption()) << body << status.ToString();
    EXPECT_NE(status.message().find("the/PARTS"), std::string_view::npos);
  }
}

TEST(PartListFormatTest, OtherVersionsAreRefusedWithWhatToDo) {
  const std::string rest = "\ndatabase ff\nregion 0 of 1\npart 000000.pmem 8388608\n";
  Status status = ParseWithChecksum("braiddb-parts " + std::to_string(kRegionFormatVersion + 1) + rest);
  EXPECT_TRUE(status.IsNotSupported()) << status.ToString();
  EXPECT_NE(status.message().find("use a newer BraidDB"), std::string_view::npos) << status.ToString();
  status = ParseWithChecksum("braiddb-parts " + std::to_string(kRegionFormatVersion - 1) + rest);
  EXPECT_TRUE(status.IsNotSupported()) << status.ToString();
  EXPECT_NE(status.message().find("the BraidDB that wrote it"), std::string_view::npos) << status.ToString();
  EXPECT_TRUE(ParseWithChecksum("braiddb-parts x" + rest).IsCorruption());
}

}  // namespace
}  // namespace braiddb
