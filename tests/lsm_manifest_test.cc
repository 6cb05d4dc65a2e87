// The MANIFEST alone: commits across power cuts, one behind the other. [CC-2]
#include <gtest/gtest.h>

#include <optional>

#include "lsm/manifest.h"
#include "tests/support/entry_store.h"
#include "tests/support/power_cut.h"

namespace braiddb::test {
namespace {

using Luck = PowerCut::Luck;

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

  void* Object(uint64_t* bytes) { return store_.regions()->Metadata(0, MetadataSlot::kManifest, bytes); }
  Status Read(ManifestState* state) {
    uint64_t bytes = 0;
    const void* const object = Object(&bytes);
    return Manifest::Read(object, bytes, GetParam(), state, &generation_);
  }
  // That which the next commit goes to, as documented in docs/FORMAT.md.
  uint8_t* OtherSlot() {
    uint64_t bytes = 0;
    auto* const object = static_cast<uint8_t*>(Object(&bytes));
    ManifestState state;
    EXPECT_OK(Read(&state));
    return object + 64 + (generation_ + 1) % 2 * reinterpret_cast<const uint64_t*>(object)[2];
  }

  EntryStore store_{GetParam()};
  Random random_{7};
  ManifestState before_;  // what the MANIFEST says
  uint64_t generation_ = 0;
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

}  // namespace
}  // namespace braiddb::test
