// On which NUMA nodes regions are, which of them threads write to, and what is remote.
#include <gtest/gtest.h>

#include <climits>
#include <memory>
#include <set>
#include <thread>

#include "pmem/region.h"
#include "pmem/region_nodes.h"
#include "tests/support/fake_system.h"
#include "tests/support/region_set_test.h"

namespace braiddb::test {
namespace {

class RegionNodesTest : public RegionSetTest {
 protected:
  RegionNodesTest() {
    fs::create_directories(dir_.Sub("root"));
    system_ = std::make_unique<FakeSystem>(dir_.Sub("root"));
    for (const char* name : {"mount0", "mount1", "mount2"}) {
      fs::create_directories(dir_.Sub(name));
      mounts_.push_back(fs::canonical(dir_.Sub(name)).string());
    }
    options_.system_root = system_->root();
    options_.region_paths = {mounts_[0] + "/db", mounts_[1] + "/db"};
    options_.info_log = [this](std::string_view line) { log_.append(line).append("\n"); };
  }
  // The regions that threads of that node (a dense number) write to.
  static std::set<uint32_t> HomesOf(const RegionSet& set, uint32_t node) {
    std::set<uint32_t> homes;
    for (uint32_t thread = 0; thread < 8; ++thread) homes.insert(set.nodes().HomeOf(node, thread));
    return homes;
  }
  using Homes = std::set<uint32_t>;

  std::unique_ptr<FakeSystem> system_;
  std::vector<std::string> mounts_;
  std::string log_;
};

TEST_F(RegionNodesTest, ThreadsWriteToTheRegionWhoseDeviceIsOnTheirNode) {
  system_->MakeSwapped(mounts_[0], mounts_[1]);
  for (const bool is_new : {true, false}) {
    log_.clear();
    const auto set = is_new ? Create(options_) : Open(options_);
    ASSERT_NE(set, nullptr);
    EXPECT_EQ(HomesOf(*set, 0), Homes{1});
    EXPECT_EQ(HomesOf(*set, 1), Homes{0});
    EXPECT_EQ(set->nodes().RemoteRegions(0, 1), 0b01u) << "region 0 is on node 1";
    EXPECT_EQ(set->nodes().RemoteRegions(1, 0), 0b10u);
    EXPECT_NE(log_.find("region=0 node=1 writers=1 media=DAX device=pmem0 by="), std::string::npos) << log_;
    EXPECT_NE(log_.find("region=1 node=0 writers=0 media=DAX device=pmem1 by="), std::string::npos) << log_;
  }
  std::unique_ptr<RegionSet> readers;
  ASSERT_TRUE(RegionSet::OpenReadOnly(options_, &readers).ok());
  EXPECT_EQ(HomesOf(*readers, 0), Homes{1});
}

TEST_F(RegionNodesTest, AnOptionChoosesTheWritersAndNotWhatIsRemote) {
  system_->MakeSwapped(mounts_[0], mounts_[1]);
  options_.region_nodes = {0, 1};
  const auto set = Create(options_);
  ASSERT_NE(set, nullptr);
  EXPECT_EQ(HomesOf(*set, 0), Homes{0});
  EXPECT_EQ(HomesOf(*set, 1), Homes{1});
  EXPECT_EQ(set->nodes().RemoteRegions(0, 0), 0b01u) << "what threads of node 0 write to is remote";
  EXPECT_EQ(set->nodes().RemoteRegions(1, 1), 0b10u);
}

TEST_F(RegionNodesTest, OneOptionOfTwoIsEnough) {
  system_->MakeSwapped(mounts_[0], mounts_[1]);
  options_.region_nodes = {-1, 1};
  const auto set = Create(options_);
  ASSERT_NE(set, nullptr);
  EXPECT_EQ(HomesOf(*set, 1), (Homes{0, 1}));
  EXPECT_EQ(HomesOf(*set, 0), (Homes{0, 1})) << "of a node without a region: the nearest";
}

TEST_F(RegionNodesTest, WrongOptionsSayWhatIsWrong) {
  system_->MakeSwapped(mounts_[0], mounts_[1]);
  for (const std::vector<int>& nodes : {std::vector<int>{0}, {0, 1, 0}, {0, 2}, {-2, 0}}) {
    options_.region_nodes = nodes;
    EXPECT_TRUE(TryCreate(options_).IsInvalidArgument());
  }
  EXPECT_NE(TryCreate(options_).ToString().find("this machine has only 0, 1"), std::string::npos);
  EXPECT_FALSE(RegionSet::Exists(options_));
  options_.region_nodes.clear();
  ASSERT_NE(Create(options_), nullptr);
  options_.region_nodes = {0};
  EXPECT_TRUE(TryOpen(options_).IsInvalidArgument());
  std::unique_ptr<RegionSet> set;
  EXPECT_TRUE(RegionSet::OpenReadOnly(options_, &set).IsInvalidArgument());
  EXPECT_NE(Open([this] {
              options_.region_nodes.clear();
              return options_;
            }()),
            nullptr);
}

TEST_F(RegionNodesTest, RegionsOnOneDeviceShareItsNode) {
  system_->MakeSwapped(mounts_[0], mounts_[1]);
  options_.region_paths = {mounts_[1] + "/a", mounts_[1] + "/b"};
  const auto set = Create(options_);
  ASSERT_NE(set, nullptr);
  EXPECT_EQ(HomesOf(*set, 0), (Homes{0, 1})) << "spread";
  EXPECT_EQ(HomesOf(*set, 1), (Homes{0, 1})) << "the nearest, spread";
  EXPECT_EQ(set->nodes().RemoteRegions(0, 0), 0u);
  EXPECT_EQ(set->nodes().RemoteRegions(1, 0), 0b11u);
  EXPECT_NE(log_.find("regions 0 and 1 share the device pmem1"), std::string::npos) << log_;
}

TEST_F(RegionNodesTest, NodesWithoutCpusAreSharedByTheNearest) {
  system_->MakeSwapped(mounts_[0], mounts_[1]);
  system_->AddNode(4, "", "31 14 10");  // a memory device
  system_->Write("/sys/devices/system/node/node0/distance", "10 21 31\n");
  system_->Write("/sys/devices/system/node/node1/distance", "21 10 14\n");
  system_->Mount("0:77", mounts_[2], "tmpfs", "tmpfs", "rw", "rw,mpol=bind:4");
  options_.regions = 3;
  options_.region_paths.push_back(mounts_[2] + "/db");
  const auto set = Create(options_);
  ASSERT_NE(set, nullptr);
  EXPECT_EQ(HomesOf(*set, 0), Homes{1});
  EXPECT_EQ(HomesOf(*set, 1), (Homes{0, 2}));
  EXPECT_EQ(set->nodes().RemoteRegions(1, 0), 0b110u) << "nobody runs where region 2 is";
  EXPECT_NE(log_.find("region=2 node=4 writers=1 media=memory device=none by=mpol=bind:4"), std::string::npos) << log_;
}

TEST_F(RegionNodesTest, RegionsOfUnknownNodesAreWrittenByAll) {
  system_->AddNode(0, "0-1", "10 21");
  system_->AddNode(1, "2-3", "21 10");
  system_->AddBlockDevice("pmem0", "259:0", "ndbus0/region0/namespace0.0", "-1");
  system_->AddBlockDevice("pmem1", "259:1", "ndbus0/region1/namespace1.0", "1");
  system_->Mount("259:0", mounts_[0], "ext4", "/dev/pmem0", "rw", "rw,dax");
  system_->Mount("259:1", mounts_[1], "ext4", "/dev/pmem1", "rw", "rw,dax");
  const auto set = Create(options_);
  ASSERT_NE(set, nullptr);
  EXPECT_EQ(HomesOf(*set, 0), Homes{0});
  EXPECT_EQ(HomesOf(*set, 1), (Homes{0, 1}));
  EXPECT_EQ(set->nodes().RemoteRegions(0, 0), 0b10u) << "nothing says that region 0 is remote";
  EXPECT_NE(log_.find("region=0 node=unknown writers=0,1 "), std::string::npos) << log_;
}

TEST_F(RegionNodesTest, RegionsInMemoryAreOnTheNodesInTurn) {
  system_->AddNode(0, "0-1", "10 21");
  system_->AddNode(1, "2-3", "21 10");
  for (const std::string& mount : mounts_) system_->Mount("0:77", mount, "tmpfs", "tmpfs", "rw", "rw");
  {
    const auto set = Create(options_);
    ASSERT_NE(set, nullptr);
    EXPECT_EQ(HomesOf(*set, 0), Homes{0});
    EXPECT_EQ(HomesOf(*set, 1), Homes{1});
    EXPECT_EQ(set->nodes().places()[1].from, "turns");
    EXPECT_TRUE(set->ReserveBytes(40ull << 20).ok()) << "a node that is not there is a hint that fails";
  }
  {
    const auto set = Open(options_);
    ASSERT_NE(set, nullptr);
    // What this machine says of the memory, which has one node or several.
    for (const RegionPlace& place : set->nodes().places()) {
      EXPECT_EQ(place.from, "its memory");
      EXPECT_TRUE(NumaTopology::System().HasSystemNode(place.node)) << place.node;
    }
  }
  options_.region_nodes = {1, 0};
  const auto set = Open(options_);
  ASSERT_NE(set, nullptr);
  EXPECT_EQ(HomesOf(*set, 0), Homes{1});
  EXPECT_EQ(set->nodes().places()[0].from, "region_nodes");
  EXPECT_EQ(set->nodes().RemoteRegions(0, 1), 0b01u);
}

TEST_F(RegionNodesTest, OnOneNodeEachRegionStandsForOne) {
  system_->AddNode(0, "0-3", "10");
  {
    const auto set = Create(options_);
    ASSERT_NE(set, nullptr);
    EXPECT_EQ(HomesOf(*set, 0), (Homes{0, 1}));
    EXPECT_TRUE(set->nodes().stands());
    EXPECT_EQ(set->RemoteRegions(1) & 0b11, 0b01u);
    EXPECT_EQ(set->RemoteRegions(0) & 0b11, 0b10u);
  }
  options_.region_nodes = {0, 0};
  const auto set = Open(options_);
  ASSERT_NE(set, nullptr);
  EXPECT_FALSE(set->nodes().stands());
  EXPECT_EQ(set->RemoteRegions(set->HomeRegion()), 0u);
}

TEST(NumaTopologyTest, IsReadFromTheSystem) {
  const PmemTempDir dir;
  const FakeSystem nothing(dir.path());
  const NumaTopology one = NumaTopology::Read(dir.path());
  EXPECT_EQ(one.node_count(), 1u);
  EXPECT_EQ(one.SystemNode(0), 0);
  EXPECT_EQ(one.NodeOfCpu(77), 0u);
  FakeSystem system(dir.path());
  system.AddNode(0, "", "10 20 30");
  system.AddNode(2, "0,2-3", "20 10 17");
  system.AddNode(5, "1,4-99999999999", "30 17 10");
  const NumaTopology topology = NumaTopology::Read(dir.path());
  EXPECT_EQ(topology.node_count(), 2u);
  EXPECT_EQ(topology.system_nodes(), (std::vector<int>{0, 2, 5}));
  EXPECT_EQ(topology.SystemNode(1), 5);
  EXPECT_EQ(topology.NodeOfCpu(3), 0u);
  EXPECT_EQ(topology.NodeOfCpu(1), 1u);
  EXPECT_EQ(topology.NodeOfCpu(-1), 0u);
  EXPECT_EQ(topology.NodeOfCpu(1 << 20), 0u);
  EXPECT_EQ(topology.Distance(2, 5), 17);
  EXPECT_EQ(topology.Distance(5, 0), 30);
  EXPECT_EQ(topology.Distance(5, 7), INT_MAX);
  EXPECT_EQ(topology.Distance(kUnknownNumaNode, 0), INT_MAX);
  EXPECT_FALSE(topology.HasSystemNode(1));
}

}  // namespace
}  // namespace braiddb::test
