// The MANIFEST alone: commits across power cuts, one behind the other. [CC-2]
#include <gtest/gtest.h>
#include <unistd.h>
#include <xxhash.h>

#include <cstring>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "log/range_record.h"
#include "lsm/manifest.h"
#include "tests/support/entry_store.h"
#include "tests/support/power_cut.h"

namespace braiddb::test {
namespace {

using Luck = PowerCut::Luck;

// Ends a child process at fence number `at`, counted from 0.
class ExitAtFence final : public PersistObserver {
 public:
  static constexpr int kExitCode = 42;
  explicit ExitAtFence(int at) : left_(at) {}
  void OnFlush(const void*, size_t) override {}
  void OnDrain() override {
    if (left_-- == 0) _exit(kExitCode);
  }

 private:
  int left_;
};

using Summary = std::vector<uint64_t>;
Summary SummaryOf(const ManifestState& state) {
  Summary summary = {state.log_boundary, state.next_id, state.merge_id, state.merging_tables, state.clean};
  for (const ManifestState::Table& table : state.tables) {
    summary.insert(summary.end(), {table.id, table.boundary, table.entries});
    summary.insert(summary.end(), table.heads.begin(), table.heads.end());
  }
  return summary;
}

class ManifestTest : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    ManifestState state;
    state.comparator = "test";
    for (uint64_t id = 1; id <= 3; ++id) AddTable(&state, 100 * id);
    ASSERT_OK(Manifest::Create(store_.regions(), state));
    before_ = state;
    fresh_.emplace(store_.regions());
  }

  void AddTable(ManifestState* state, uint64_t boundary) {
    std::vector<uint64_t> heads(GetParam() * kMaxHeight);
    heads[0] = 64 * state->next_id;
    state->tables.push_back({state->next_id++, boundary, 10, heads});
    state->log_boundary = boundary;
  }
  // What a flush, or the end of a merge, commits; drawn again after a crash it says nearly the same.
  ManifestState Next(const ManifestState& state) {
    ManifestState next = state;
    if (next.tables.size() > 8) {
      next.tables.erase(next.tables.begin(), next.tables.begin() + 2);
    } else {
      AddTable(&next, state.log_boundary + random_.Range(1, 2));
    }
    return next;
  }

  // Opens the MANIFEST and commits, two or three times in all, until the power fails at this fence. Returns what may be there
  // then. `forget`: false for the canary.
  std::vector<Summary> LiveUntil(uint64_t fence, Luck luck, bool forget) {
    ManifestState state;
    std::vector<Summary> allowed = {SummaryOf(before_)};
    PowerCut cut(store_.regions(), fence);
    try {
      Manifest manifest;
      if (!forget) cut.TakeOutFlushesOf(OtherSlot());
      EXPECT_OK(Manifest::Open(store_.regions(), &manifest, &state));
      cut.TakeOutFlushesOf(nullptr);
      allowed = {SummaryOf(state)};
      for (int i = 0; i < 2; ++i) {
        const ManifestState next = Next(state);
        allowed.push_back(SummaryOf(next));
        EXPECT_OK(manifest.Commit(next));
        allowed = {SummaryOf(next)};
        state = next;
      }
      cut.Lose(Luck::kNothing, &random_);
    } catch (const PowerCut::Failed&) {
      cut.Lose(luck, &random_);
    }
    return allowed;
  }

  // Whether one of so many databases, each of which loses power ten times, is ever other than it may be.
  bool OneIsWrong(int databases, bool forget) {
    const ManifestState first = before_;
    for (int i = 0; i < databases; ++i) {
      fresh_->Restore(store_.regions());
      before_ = first;
      for (int life = 0; life < 10; ++life) {
        const Luck luck =
            random_.OneIn(2) ? Luck::kSomeLines : PowerCut::kEveryLuck[random_.Uniform(std::size(PowerCut::kEveryLuck))];
        const std::vector<Summary> allowed = LiveUntil(random_.Uniform(random_.OneIn(2) ? 2 : 6), luck, forget);
        const Status status = Read(&before_);
        if (!status.ok() || std::find(allowed.begin(), allowed.end(), SummaryOf(before_)) == allowed.end()) return true;
      }
    }
    return false;
  }

  // The one that counts.
  void* Object(uint64_t* bytes) {
    *bytes = objects_[which_].bytes;
    return const_cast<void*>(objects_[which_].data);
  }
  Status Read(ManifestState* state) {
    for (size_t i = 0; i < 2; ++i) {
      objects_[i] = {};
      objects_[i].data = store_.regions()->Metadata(0, kManifestPlaces[i], &objects_[i].bytes);
    }
    return Manifest::ReadNewest(objects_, GetParam(), state, &generation_, &which_);
  }
  // That which the next commit goes to, as documented in docs/FORMAT.md.
  uint8_t* OtherSlot() {
    uint64_t bytes = 0;
    ManifestState state;
    EXPECT_OK(Read(&state));
    auto* const object = static_cast<uint8_t*>(Object(&bytes));
    return object + 64 + (generation_ + 1) % 2 * reinterpret_cast<const uint64_t*>(object)[2];
  }

  EntryStore store_{GetParam()};
  Random random_{7};
  ManifestState before_;  // what the MANIFEST says
  uint64_t generation_ = 0;
  ManifestObject objects_[2];
  size_t which_ = 0;
  std::optional<RegionImage> fresh_;
};

INSTANTIATE_TEST_SUITE_P(Regions, ManifestTest, testing::Values(1, 2));

TEST_P(ManifestTest, AfterPowerCutsItIsAsBeforeACommitOrAsAfterIt) { EXPECT_FALSE(OneIsWrong(2000 / kSlowdown, true)); }

// Its lines are completed by those of the next commit, which has the same number.
TEST_P(ManifestTest, ATornCommitThatIsNotForgottenIsNoticed) { EXPECT_TRUE(OneIsWrong(2000, false)); }

// A process is killed in a commit, and only when the MANIFEST was opened again the power fails. [CC-46]
TEST_P(ManifestTest, AnOpenMakesDurableWhatItFinds) {
  for (uint64_t round = 0; round < 8; ++round) {
    Manifest manifest;
    ManifestState before, found, there;
    ASSERT_OK(Manifest::Open(store_.regions(), &manifest, &before));
    PowerCut cut(store_.regions(), round % 2);
    EXPECT_THROW((void)manifest.Commit(Next(before)), PowerCut::Failed);
    cut.Kill();
    ASSERT_OK(Manifest::Open(store_.regions(), &manifest, &found));
    EXPECT_NE(SummaryOf(found), SummaryOf(before));
    cut.Lose(Luck::kNothing, &random_);
    ASSERT_OK(Read(&there));
    EXPECT_EQ(SummaryOf(there), SummaryOf(found));
  }
}

// Format 2, word by word as FORMAT.md had it: no families, and shorter records.
TEST_P(ManifestTest, FormatWithoutFamiliesIsRead) {
  const uint32_t regions = GetParam();
  constexpr uint64_t kHeader = 64, kRecord = 144, kMostTables = 512;
  const uint64_t table_bytes = 24 + 8 * uint64_t{regions} * kMaxHeight;
  const uint64_t slot_bytes = (kRecord + kMostTables * table_bytes + 63) & ~uint64_t{63};
  std::vector<uint64_t> object((kHeader + 2 * slot_bytes) / 8);
  auto* const bytes = reinterpret_cast<uint8_t*>(object.data());
  const uint64_t header[] = {0x464e4d4449415242, 5, slot_bytes};
  std::memcpy(bytes, header, sizeof(header));
  uint8_t* const slot = bytes + kHeader + slot_bytes;  // generation 5
  constexpr uint32_t kTables = 3;
  const auto record_bytes = static_cast<uint32_t>(kRecord + kTables * table_bytes);
  const auto put = [slot](uint64_t at, auto value) { std::memcpy(slot + at, &value, sizeof(value)); };
  put(8, uint64_t{5});
  put(16, uint32_t{2});
  put(20, record_bytes);
  const uint64_t numbers[] = {300, 299, 9, 12345, 8};  // boundary, last sequence number, next id, entries of L1, merge
  std::memcpy(slot + 24, numbers, sizeof(numbers));
  put(64, uint32_t{2});
  put(68, kTables);
  put(72, regions);
  put(76, static_cast<uint16_t>(kMaxHeight));
  put(78, uint8_t{1});
  put(79, uint8_t{1});
  std::memcpy(slot + 80, "test", 5);
  for (uint64_t i = 0; i < kTables; ++i) {
    const uint64_t at = kRecord + i * table_bytes;
    put(at, i + 1);
    put(at + 8, 100 * (i + 1));
    put(at + 16, 10 + i);
    put(at + 24, 64 * (i + 1));
  }
  put(0, uint64_t{XXH3_64bits(slot + 8, record_bytes - 8)});

  ManifestState state;
  uint64_t generation = 0;
  ASSERT_OK(Manifest::Read(bytes, 8 * object.size(), regions, &state, &generation));
  EXPECT_EQ(generation, 5u);
  EXPECT_EQ(state.comparator, "test");
  EXPECT_EQ(state.l1_kind, 1u);
  EXPECT_EQ(state.log_boundary, 300u);
  EXPECT_EQ(state.last_sequence, 299u);
  EXPECT_EQ(state.next_id, 9u);
  EXPECT_EQ(state.l1_entries, 12345u);
  EXPECT_EQ(state.merge_id, 8u);
  EXPECT_EQ(state.merging_tables, 2u);
  EXPECT_EQ(state.merging_family, 0u);
  EXPECT_TRUE(state.clean);
  EXPECT_TRUE(state.families.empty());
  ASSERT_EQ(state.tables.size(), kTables);
  for (uint64_t i = 0; i < kTables; ++i) {
    EXPECT_EQ(state.tables[i].id, i + 1);
    EXPECT_EQ(state.tables[i].boundary, 100 * (i + 1));
    EXPECT_EQ(state.tables[i].entries, 10 + i);
    EXPECT_EQ(state.tables[i].family, 0u);
    EXPECT_EQ(state.tables[i].heads.at(0), 64 * (i + 1));
  }
}

// What an older version would read as something else has a format that it refuses, and as long as it is there.
TEST_P(ManifestTest, WhatOlderVersionsDoNotKnowHasAFormatOfItsOwn) {
  Manifest manifest;
  ManifestState plain;
  ASSERT_OK(Manifest::Open(store_.regions(), &manifest, &plain));
  const auto format_of = [&](const ManifestState& state) {
    uint8_t* const slot = OtherSlot();
    EXPECT_OK(manifest.Commit(state));
    uint32_t format = 0;
    std::memcpy(&format, slot + 16, sizeof(format));
    ManifestState read;
    EXPECT_OK(Read(&read));
    return format;
  };
  ManifestState::Family family;
  family.id = 3;
  family.name = "family";
  family.comparator = "test";
  plain.families = {family};
  EXPECT_EQ(format_of(plain), 3u);
  ManifestState ranges = plain, runs = plain, runs_of_family = plain, oblivious = plain, copying = plain;
  ranges.families[0].name = kRangeTombstonesFamilyName;
  runs.l1_kind = runs_of_family.families[0].l1_kind = static_cast<uint8_t>(L1Kind::kSortedRuns);
  oblivious.list_kind = ListKind::kOblivious;
  copying.copying_flush = true;
  for (const ManifestState* state : {&ranges, &runs, &runs_of_family, &oblivious, &copying}) {
    EXPECT_EQ(format_of(*state), 4u);
    EXPECT_EQ(format_of(plain), 3u);
  }
}

// Numbers that no database writes are damage, whatever the checksum says.
TEST_P(ManifestTest, ImpossibleNumbersAreDamage) {
  Manifest manifest;
  ManifestState sound;
  ASSERT_OK(Manifest::Open(store_.regions(), &manifest, &sound));
  const std::pair<const char*, std::function<void(ManifestState*)>> forgeries[] = {
      {"boundary 0", [](ManifestState* state) { state->log_boundary = 0; }},
      {"boundary too large", [](ManifestState* state) { state->log_boundary = kMaxSequence + 1; }},
      {"sequence number too large", [](ManifestState* state) { state->last_sequence = UINT64_MAX; }},
      {"merge of a family that is not there",
       [](ManifestState* state) {
         state->merge_id = 7;
         state->merging_family = 5;
       }},
  };
  for (const auto& [what, forge] : forgeries) {
    SCOPED_TRACE(what);
    ManifestState forged = sound;
    forge(&forged);
    ASSERT_OK(manifest.Commit(forged));
    ASSERT_OK(manifest.Commit(forged));  // in both slots
    ManifestState read;
    EXPECT_CODE(Read(&read), kCorruption);
    ASSERT_OK(manifest.Commit(sound));
    EXPECT_OK(Read(&read));
  }
}

// Families, and tables of theirs, come back as they were committed.
TEST_P(ManifestTest, FamiliesAreKept) {
  Manifest manifest;
  ManifestState state;
  ASSERT_OK(Manifest::Open(store_.regions(), &manifest, &state));
  for (const uint32_t id : {1u, 7u, kMaxFamilies - 1}) {
    ManifestState::Family family;
    family.id = id;
    family.name = std::string(id % 256, 'n') + "é";
    family.comparator = "comparator " + std::to_string(id);
    family.l1_kind = static_cast<uint8_t>(id % 2);
    family.dropped = id == 7;
    family.number = state.next_id++;
    family.l1_entries = 100 * id;
    if (family.name.size() > kMaxFamilyName) family.name.resize(kMaxFamilyName);
    state.families.push_back(family);
  }
  AddTable(&state, state.log_boundary + 1);
  state.tables.back().family = 1;
  state.merge_id = state.next_id++;
  state.merging_tables = 1;
  state.merging_family = 1;
  ASSERT_OK(manifest.Commit(state));
  ManifestState found;
  ASSERT_OK(Manifest::Open(store_.regions(), &manifest, &found));
  EXPECT_EQ(SummaryOf(found), SummaryOf(state));
  EXPECT_EQ(found.tables.back().family, 1u);
  EXPECT_EQ(found.merging_family, 1u);
  ASSERT_EQ(found.families.size(), state.families.size());
  for (size_t i = 0; i < found.families.size(); ++i) {
    const ManifestState::Family& a = found.families[i];
    const ManifestState::Family& b = state.families[i];
    EXPECT_EQ(a.id, b.id);
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.comparator, b.comparator);
    EXPECT_EQ(a.l1_kind, b.l1_kind);
    EXPECT_EQ(a.dropped, b.dropped);
    EXPECT_EQ(a.number, b.number);
    EXPECT_EQ(a.l1_entries, b.l1_entries);
  }
}

// Tables are added until the MANIFEST has moved several times. Each state is there, and one object alone.
TEST_P(ManifestTest, GrowsWithWhatItSays) {
  Manifest manifest;
  ManifestState state, found;
  ASSERT_OK(Manifest::Open(store_.regions(), &manifest, &state));
  const uint64_t first_bytes = manifest.bytes();
  EXPECT_LT(first_bytes, 16u << 10) << "an empty database is small";
  size_t moves = 0;
  while (state.tables.size() < 300) {
    const uint64_t before = manifest.bytes();
    AddTable(&state, state.log_boundary + 1);
    ASSERT_OK(manifest.Commit(state));
    moves += manifest.bytes() != before;
    ASSERT_OK(Read(&found));
    ASSERT_EQ(SummaryOf(found), SummaryOf(state));
    ASSERT_EQ(objects_[1 - which_].data, nullptr) << "the old one is freed";
  }
  EXPECT_GE(moves, 4u);
  EXPECT_LE(manifest.bytes(), 4 * 300 * (32 + 160 * GetParam()) + 4096);
  store_.OpenRegions();
  ASSERT_OK(Manifest::Open(store_.regions(), &manifest, &found));
  EXPECT_EQ(SummaryOf(found), SummaryOf(state));
}

// The room that Reserve makes is for one table of copies of each family, and then for one flushed table of each.
TEST_P(ManifestTest, ReservesRoomForCopiesAndFlushes) {
  Manifest manifest;
  ManifestState state;
  ASSERT_OK(Manifest::Open(store_.regions(), &manifest, &state));
  for (uint32_t id = 1; id <= 100; ++id) {
    ManifestState::Family family;
    family.id = id;
    family.name = "f" + std::to_string(id);
    state.families.push_back(family);
  }
  ASSERT_OK(manifest.Reserve(state, Manifest::Room::kCopiesAndFlush));
  const uint64_t bytes = manifest.bytes();
  ASSERT_OK(manifest.Commit(state));
  ManifestState full = state;
  for (uint32_t id = 0; id <= 100; ++id) AddTable(&full, full.log_boundary + 1);
  EXPECT_TRUE(manifest.Fits(full, Manifest::Room::kCopies));
  for (uint32_t id = 0; id <= 100; ++id) {
    AddTable(&full, full.log_boundary);
    full.tables.back().id = kRelocationId;
  }
  ASSERT_OK(manifest.Commit(full));
  EXPECT_EQ(manifest.bytes(), bytes);
}

// Two objects, of which a crash has left the old one: they say the same, the newer one counts, and open frees the other.
TEST_P(ManifestTest, OpenFreesTheObjectThatGrowthLeft) {
  for (const bool is_published : {false, true}) {
    Manifest manifest;
    ManifestState state, found;
    ASSERT_OK(Manifest::Open(store_.regions(), &manifest, &state));
    ASSERT_OK(Read(&found));
    const size_t old = which_;
    void* copy = nullptr;
    const uint64_t bytes = objects_[old].bytes;
    ASSERT_OK(store_.regions()->AllocateMetadata(0, kManifestPlaces[1 - old], bytes, &copy));
    std::memcpy(copy, objects_[old].data, bytes);
    auto* const words = static_cast<uint64_t*>(copy);
    if (!is_published) words[0] = 0;
    ASSERT_OK(Manifest::Open(store_.regions(), &manifest, &found));
    EXPECT_EQ(SummaryOf(found), SummaryOf(state));
    ASSERT_OK(Read(&found));
    EXPECT_EQ(which_, old);
    EXPECT_EQ(objects_[1 - old].data, nullptr);
  }
}

// The power fails at each fence of a growth and of the commit behind it. RegionImage has no objects that are allocated meanwhile,
// so a child process is killed there instead; the crash test loses lines.
TEST_P(ManifestTest, GrowthIsCutShortAtEachFence) {
  Manifest manifest;
  ManifestState state;
  ASSERT_OK(Manifest::Open(store_.regions(), &manifest, &state));
  for (int at = 0;; ++at) {
    ManifestState next = state;
    for (int i = 0; i < 30; ++i) AddTable(&next, next.log_boundary + 1);
    next.tables.back().entries = static_cast<uint64_t>(at);
    const ManifestState before = state;
    while (manifest.Fits(next)) AddTable(&next, next.log_boundary + 1);
    store_.CloseRegions();
    const int code = RunInChild([&] {
      store_.OpenRegions();
      ExitAtFence exit_at_fence(at);
      ManifestState opened;
      Manifest of_child;
      if (!Manifest::Open(store_.regions(), &of_child, &opened).ok()) return 1;
      store_.regions()->persistence()->SetObserver(&exit_at_fence);
      return of_child.Commit(next).ok() ? 0 : 1;
    });
    store_.OpenRegions();
    ASSERT_OK(Manifest::Open(store_.regions(), &manifest, &state));
    EXPECT_TRUE(SummaryOf(state) == SummaryOf(before) || SummaryOf(state) == SummaryOf(next)) << at;
    EXPECT_EQ((store_.regions()->Metadata(0, kManifestPlaces[0]) == nullptr) +
                  (store_.regions()->Metadata(0, kManifestPlaces[1]) == nullptr),
              1);
    if (code == 0) break;
    ASSERT_EQ(code, ExitAtFence::kExitCode) << at;
  }
}

}  // namespace
}  // namespace braiddb::test
