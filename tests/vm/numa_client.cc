// numa_client: two threads, one on each NUMA node, write and read keys of their own in a database with a region on each node.
// Prints the nodes of persistent lists that the threads visited: "visits <local> <remote>". For scripts/test-vm.
#include <sched.h>

#include <boost/program_options.hpp>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braiddb/db.h"

namespace braiddb::vm {
namespace {

constexpr int kKeys = 3000;  // of each thread

void Check(const Status& status, const char* what) {
  if (status.ok()) return;
  std::cerr << "numa_client: " << what << ": " << status.ToString() << "\n";
  std::exit(1);
}

// CPU i is the only one of NUMA node i.
void RunOnNode(int node) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(static_cast<size_t>(node), &cpus);
  if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0) std::exit(2);
}

std::string Key(int node, int number) { return std::to_string(node) + "/" + std::to_string(1'000'000 + number); }

template <class Body>
void OnEachNode(const Body& body) {
  std::vector<std::thread> threads;
  for (int node = 0; node < 2; ++node) {
    threads.emplace_back([&body, node] {
      RunOnNode(node);
      body(node);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

int Run(const std::string& path, const std::vector<std::string>& region_paths, const std::vector<int>& region_nodes) {
  Options options;
  options.create_if_missing = true;
  options.region_paths = region_paths;
  options.region_nodes = region_nodes;
  options.lookup_cache_size = 0;  // reads follow the lists
  options.l1_index_size = 0;
  std::unique_ptr<DB> db;
  Check(DB::Open(options, path, &db), "Open");
  OnEachNode([&](int node) {
    for (int i = 0; i < kKeys; ++i) Check(db->Put(WriteOptions(), Key(node, i), std::string(100, 'v')), "Put");
  });
  Check(db->CompactRange(CompactRangeOptions(), nullptr, nullptr), "CompactRange");
  OnEachNode([&](int node) {
    std::string value;
    for (int i = 0; i < kKeys; ++i) Check(db->Get(ReadOptions(), Key(node, i), &value), "Get");
  });
  std::string nodes;
  if (db->GetProperty("braiddb.region-nodes", &nodes)) std::cout << nodes;
  const Statistics statistics = db->GetStatistics();
  std::cout << "visits " << statistics.local_visits << " " << statistics.remote_visits << "\n";
  Check(db->Close(), "Close");
  return 0;
}

}  // namespace
}  // namespace braiddb::vm

int main(int argc, char** argv) {
  namespace po = boost::program_options;
  std::string db;
  std::vector<std::string> region_paths;
  std::vector<int> region_nodes;
  po::options_description known("numa_client: visits of list nodes, local and remote; see scripts/test-vm");
  auto add = known.add_options();
  add("db", po::value(&db)->required(), "directory of the database, which is made");
  add("region_path", po::value(&region_paths)->required(), "a directory for a region; given twice");
  add("region_node", po::value(&region_nodes), "Options::region_nodes: the NUMA node of a region; given twice, or not at all");
  try {
    po::variables_map values;
    po::store(po::command_line_parser(argc, argv).options(known).run(), values);
    po::notify(values);
  } catch (const std::exception& error) {
    std::cerr << "numa_client: " << error.what() << "\n" << known;
    return 2;
  }
  return braiddb::vm::Run(db, region_paths, region_nodes);
}
