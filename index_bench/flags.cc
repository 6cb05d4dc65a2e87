#include "index_bench/flags.h"

#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <iostream>
#include <sstream>

#include "nvtree/leaf.h"

namespace braiddb {
namespace {

namespace po = boost::program_options;

constexpr IndexKind kKinds[] = {IndexKind::kNvTree, IndexKind::kLbTree, IndexKind::kLbTreeStay, IndexKind::kLcbTree,
                                IndexKind::kCddsTree};
constexpr const char* kBenchmarks[] = {"load", "insert", "dense", "update", "search", "delete", "mixed"};

std::vector<std::string> Split(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream in(list);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}

std::string DefaultPath() {
  const char* base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  return std::string(base) + "/braiddb-index-bench-" + std::to_string(getpid());
}

int Refuse(const std::string& what) {
  std::cerr << "index_bench: " << what << "; --help lists the options\n";
  return 2;
}

// Returns an error text, or an empty text.
std::string Interpret(const std::string& trees, const std::string& sizes, const std::string& benchmarks, const std::string& flush,
                      IndexBenchFlags* flags) {
  for (const std::string& name : Split(trees)) {
    const size_t before = flags->trees.size();
    for (const IndexKind kind : kKinds) {
      if (name == NameOf(kind)) flags->trees.push_back(kind);
    }
    if (flags->trees.size() == before) return "there is no tree " + name;
    if (std::count(flags->trees.begin(), flags->trees.end(), flags->trees.back()) > 1) return name + " is there twice";
  }
  for (const std::string& size : Split(sizes)) {
    char* end = nullptr;
    const unsigned long bytes = std::strtoul(size.c_str(), &end, 10);
    for (const IndexKind kind : flags->trees) {
      if (*end != '\0' || bytes > kMaxLeafBytes || !IsNodeSize(kind, static_cast<uint32_t>(bytes)))
        return "nodes of " + std::string(NameOf(kind)) + " cannot have " + size + " bytes";
    }
    flags->node_bytes.push_back(static_cast<uint32_t>(bytes));
  }
  for (const std::string& name : Split(benchmarks)) {
    bool known = false;
    for (const char* benchmark : kBenchmarks) known |= name == benchmark;
    if (!known) return "there is no benchmark " + name;
    if (name == "load" && !flags->benchmarks.empty()) return "load comes first, since it needs an empty tree";
    flags->benchmarks.push_back(name);
  }
  if (flush != "clwb" && flush != "clflush") return "--flush is clwb or clflush";
  flags->flush_invalidates = flush == "clflush";
  if (flags->trees.empty() || flags->node_bytes.empty() || flags->benchmarks.empty()) return "there is nothing to run";
  if (flags->num == 0 || flags->rounds == 0) return "--num and --rounds must be at least 1";
  if (flags->insert_percent > 100) return "--insert_percent is at most 100";
  if (flags->fill_percent == 0 || flags->fill_percent > 100) return "--fill_percent is 1 to 100";
  return "";
}

}  // namespace

const char* NameOf(IndexKind kind) {
  switch (kind) {
    case IndexKind::kNvTree:
      return "nvtree";
    case IndexKind::kLbTree:
      return "lbtree";
    case IndexKind::kLbTreeStay:
      return "lbstay";
    case IndexKind::kLcbTree:
      return "lcb";
    case IndexKind::kCddsTree:
      return "cdds";
  }
  return "";
}

std::optional<int> ParseIndexBenchFlags(int argc, char** argv, IndexBenchFlags* flags) {
  std::string trees, sizes, benchmarks, flush;
  po::options_description all(
      "index_bench: NV-Tree and LB+-Tree without a database, beside the trees that NV-Tree's paper compares it with (FAST '15,\n"
      "section 4); 8-byte keys and values, one thread. Times and counts come from separate runs of the same operations",
      110, 70);
  auto add = all.add_options();
  add("help", "");
  add("trees", po::value(&trees)->default_value("nvtree,lbtree,lcb,cdds"),
      "comma-separated; they take turns at each benchmark. lbstay: LB+-Tree without entry moving");
  add("node_bytes", po::value(&sizes)->default_value("512,1024,2048,4096"),
      "comma-separated; lbtree and lbstay: any multiple of 256, the paper has 256");
  add("benchmarks", po::value(&benchmarks)->default_value("insert,update,search,delete"),
      "in this order, on one tree: load (sorted keys into the empty tree), insert, update, search, delete (each key once, in "
      "random order), dense (adjacent new keys, in random order), mixed (searches, and insertions of new keys)");
  add("num", po::value(&flags->num)->default_value(1000000), "keys; operations of each benchmark");
  add("insert_percent", po::value(&flags->insert_percent)->default_value(50), "mixed: percentage of insertions");
  add("fill_percent", po::value(&flags->fill_percent)->default_value(70),
      "load: percentage of a leaf's slots that LB+-Tree uses; the other trees fill leaves as they do when keys ascend");
  add("rounds", po::value(&flags->rounds)->default_value(1), "the median of so many is shown");
  add("flush", po::value(&flush)->default_value("clwb"), "instruction that flushes a line: clwb, or clflush as in the paper");
  add("write_latency_ns", po::value(&flags->write_latency_ns)->default_value(0), "injected for each flushed line");
  add("count", po::value(&flags->count)->default_value(true), "count flushed lines, fences and 256-byte XPLines too");
  add("path", po::value(&flags->path)->default_value(DefaultPath()), "directory for the regions; removed at the end");
  add("seed", po::value(&flags->seed)->default_value(1), "of keys and orders");
  add("csv", po::value(&flags->csv), "file for one line per measurement");
  po::variables_map values;
  try {
    po::store(po::command_line_parser(argc, argv).options(all).run(), values);
    po::notify(values);
  } catch (const po::error& error) {
    return Refuse(error.what());
  }
  if (values.count("help") != 0) {
    std::cout << all;
    return 0;
  }
  const std::string wrong = Interpret(trees, sizes, benchmarks, flush, flags);
  if (!wrong.empty()) return Refuse(wrong);
  return std::nullopt;
}

}  // namespace braiddb
