#include "tests/differential/life.h"

#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "tests/differential/known_differences.h"

namespace braiddb::test {

namespace {

uint32_t NewSequenceOperation() {
  for (uint32_t i = 0; i < Operations().size(); ++i) {
    if (std::string(Operations()[i].name) == "NewSequence") return i;
  }
  std::abort();
}

// Operations that a database of this kind does not have are not drawn; those that it refuses are.
bool IsOfUse(const Operation& operation, const LifeOptions& options) {
  const std::string name = operation.name;
  const bool of_transactions = name.starts_with("Transaction") || name == "Begin";
  if (of_transactions && options.kind == DatabaseKind::kPlain) return false;
  return !(name.starts_with("Indexed") && options.reverse_order);
}

}  // namespace

Life DrawLife(uint64_t seed, size_t sequences, size_t calls_per_sequence) {
  const std::vector<Operation>& operations = Operations();
  Life life;
  life.seed = seed;
  Draw draw(seed * 0x9e3779b97f4a7c15 + 1);
  life.options.reverse_order = draw.Chance(20);
  life.options.prefix_length = draw.Chance(50) ? 0 : 1 + draw.Below(3);
  life.options.automatic_merges = draw.Chance(80);
  life.options.kind = static_cast<DatabaseKind>(draw.Below(3));
  life.options.adds_numbers = draw.Chance(20);
  if (draw.Chance(50)) life.options.write_buffer_size = 16 << 10;
  life.regions = draw.Chance(30) ? 2 : 1;
  const size_t last_level = draw.Below(7);
  life.last_level = last_level == 0   ? "nv_tree"
                    : last_level == 1 ? "sorted_runs"
                    : last_level == 2 ? "hybrid"
                    : last_level == 3 ? "lb_tree"
                                      : "braided_skiplist";
  for (size_t sequence = 0; sequence < sequences; ++sequence) {
    // Each sequence prefers some operations, so that these meet.
    std::vector<unsigned> weights;
    for (const Operation& operation : operations) {
      weights.push_back(IsOfUse(operation, life.options) ? operation.weight * (draw.Chance(30) ? 4 : 1) : 0);
    }
    const unsigned total = std::accumulate(weights.begin(), weights.end(), 0u);
    for (size_t i = 0; i < calls_per_sequence; ++i) {
      uint64_t place = draw.Below(total);
      uint32_t operation = 0;
      while (place >= weights[operation]) place -= weights[operation++];
      life.calls.push_back({operation, draw.Next()});
    }
    life.calls.push_back({NewSequenceOperation(), draw.Next()});
  }
  return life;
}

LifeResult RunLife(const Api& expected, const Api& tested, const Life& life, const std::string& directory,
                   const std::function<void(size_t)>& before, const std::function<void(const Step&, const Step&)>& after) {
  setenv("BRAIDDB_L1", life.last_level.c_str(), 1);
  const std::string roots = directory + "/region-0:" + directory + "/region-1";
  for (const char* each : {"/region-0", "/region-1"}) std::filesystem::create_directories(directory + each);
  setenv("BRAIDDB_REGION_ROOTS", life.regions > 1 ? roots.c_str() : "", 1);
  LifeResult result;
  result.known.resize(KnownDifferences().size());
  Machine first(expected, directory + "/expected", life.options);
  Machine second(tested, directory + "/tested", life.options);
  const uint32_t new_sequence = NewSequenceOperation();
  for (size_t at = 0; at < life.calls.size(); ++at) {
    before(at);
    const Step a = first.Run(life.calls[at]);
    const Step b = second.Run(life.calls[at]);
    after(a, b);
    ++result.calls;
    if (a.result != b.result || a.call != b.call) {
      const Difference difference{at, a.call, a.result, b.call == a.call ? b.result : b.call + ": " + b.result};
      const std::optional<size_t> known = FindKnownDifference(difference);
      if (!known) {
        result.difference = difference;
        return result;
      }
      ++result.known[*known];
      // What follows would differ, too.
      if (KnownDifferences()[*known].states_differ) return result;
    }
    result.sequences += life.calls[at].operation == new_sequence ? 1 : 0;
  }
  return result;
}

}  // namespace braiddb::test
