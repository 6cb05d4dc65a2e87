#include "db_stress/plan.h"

#include <algorithm>
#include <memory>
#include <sstream>

#include "db_stress/key_table.h"
#include "index/level_kind.h"
#include "lsm/memtable_type.h"

namespace braiddb::stress {

namespace {

uint64_t Between(Random* random, uint64_t low, uint64_t high) { return low + random->Uniform(high - low + 1); }
uint32_t SmallBetween(Random* random, uint32_t low, uint32_t high) { return static_cast<uint32_t>(Between(random, low, high)); }

template <class T, size_t kCount>
T OneOf(Random* random, const T (&choices)[kCount]) {
  return choices[random->Uniform(kCount)];
}

// Mostly small memtables and segments, so that flushes and merges are frequent. Sometimes the defaults.
Options DrawOptions(const DatabasePlan& plan, const std::string& database, Random* random) {
  Options options;
  options.create_if_missing = true;
  options.comparator = plan.comparator(0);
  options.l1 = plan.l1;
  options.nv_leaf_size = 512u << random->Uniform(4);
  options.list_kind = random->OneIn(3) ? ListKind::kOblivious : ListKind::kBraided;  // fixed at creation
  options.regions = random->OneIn(4) ? 0 : plan.regions;                             // 0: as stored; fixed at creation
  if (plan.region_paths) {
    for (uint32_t i = 0; i < plan.regions; ++i) options.region_paths.push_back(RegionPath(database, i));
  }
  options.max_region_size = 512ull << Between(random, 20, 22);
  options.segment_size = random->OneIn(12) ? options.segment_size : 256ull << Between(random, 10, 13);
  options.persist_mode = random->OneIn(8) ? PersistMode::kPage : PersistMode::kAuto;

  options.memtable_size = random->OneIn(20) ? options.memtable_size : 16ull << Between(random, 10, 16);
  options.memtable = random->OneIn(2) ? MemtableKind::kHash : MemtableKind::kSkipList;
  options.memtable_max_entries = OneOf<uint64_t>(random, {1024, 4096, 65536});
  options.max_immutable_memtables = SmallBetween(random, 1, 6);
  options.checkpoint_tables = SmallBetween(random, 1, 6);
  options.index_unified_logging = !random->OneIn(4);  // fixed at creation

  options.l0_slowdown_writes_trigger = OneOf<uint32_t>(random, {2, 8, 64, 0});
  options.l1_index_size = OneOf<uint64_t>(random, {0, 4096, 1 << 20, 32 << 20});
  options.lookup_cache_size = OneOf<uint64_t>(random, {0, 256, 64 << 10, 32 << 20});
  options.filter_bits_per_key = OneOf<uint32_t>(random, {0, 4, 10, 10});
  options.compaction_threads = SmallBetween(random, 1, 4);
  options.l0_compaction_trigger = SmallBetween(random, 1, 4);
  options.recovery_threads = SmallBetween(random, 1, 4);
  options.disable_auto_compaction = random->OneIn(8);
  options.verify_at_open = random->OneIn(6);
  options.max_space_amplification = OneOf<double>(random, {1.05, 1.2, 1.2, 2});
  options.space_slack = OneOf<uint64_t>(random, {1 << 20, 8 << 20, 32 << 20, 32 << 20});
  options.kept_free_space = OneOf<uint64_t>(random, {0, 4 << 20, 64 << 20});
  options.bound_space = random->OneIn(6);
  if (random->OneIn(10)) options.dram_budget = (128ull << 20) + plan.regions * (20ull << 20);
  if (random->OneIn(8))
    options.lookup_cache_limit = std::make_shared<CacheLimit>(OneOf<uint64_t>(random, {0, 64 << 10, 1 << 20}));
  options.histograms = random->OneIn(4);
  options.count_pm_writes = random->OneIn(8);
  options.refresh_live_readers = random->OneIn(2);
  options.initial_region_size = OneOf<uint64_t>(random, {0, 0, 16 << 20, 64 << 20});
  return options;
}

const char* NameOf(Ending ending) {
  switch (ending) {
    case Ending::kKilled:
      return "killed";
    case Ending::kKilledOpening:
      return "killed while opening";
    case Ending::kKilledClosing:
      return "killed while closing";
    case Ending::kClosed:
      return "closed";
  }
  return "";
}

}  // namespace

DatabasePlan DrawDatabase(const Flags& flags, Random* random) {
  DatabasePlan plan;
  plan.seed = random->Next();
  plan.regions = SmallBetween(random, 1, flags.regions);
  const uint32_t most = random->OneIn(16) ? flags.max_key : std::min<uint32_t>(flags.max_key, 4000);
  plan.keys = SmallBetween(random, KeyTable::kMinKeys, std::max(most, KeyTable::kMinKeys));
  plan.reverse = random->OneIn(6);
  const std::vector<const LevelKind*> kinds = LevelKinds();
  plan.l1 = kinds[random->Uniform(kinds.size())]->id;
  if (flags.l1) plan.l1 = *flags.l1;
  plan.families = random->OneIn(3) ? 1 : SmallBetween(random, 1, flags.families);
  if (plan.families > 1 && random->OneIn(4)) plan.idle_families = OneOf<uint32_t>(random, {20, 100, 300});
  plan.region_paths = random->OneIn(4);
  plan.cycles = Between(random, 1, 2 * uint64_t{flags.fresh_every} - 1);
  return plan;
}

LifePlan DrawLife(const Flags& flags, const DatabasePlan& plan, const std::string& database, Random* random) {
  LifePlan life;
  life.seed = random->Next();
  life.options = DrawOptions(plan, database, random);
  const uint64_t ending = random->Uniform(100);
  life.ending = ending < 20   ? Ending::kKilledOpening
                : ending < 25 ? Ending::kKilledClosing
                : ending < 35 ? Ending::kClosed
                              : Ending::kKilled;
  life.patience = random->NextDouble();
  if (random->OneIn(2)) life.patience *= life.patience * life.patience;  // often after a few ms
  life.long_life = random->OneIn(100);
  life.check_before = flags.check_one_in != 0 && random->OneIn(flags.check_one_in);
  life.pmempool_before = flags.pmempool_one_in != 0 && random->OneIn(flags.pmempool_one_in);

  life.threads = SmallBetween(random, 1, flags.threads);
  life.write_percent = SmallBetween(random, 20, 95);
  life.shared_percent = SmallBetween(random, 2, 25);
  life.batch_percent = SmallBetween(random, 5, 40);
  life.admin_one_in = OneOf<uint32_t>(random, {300, 2000, 20000});
  life.hot = random->OneIn(2);
  life.verify_checksums = random->OneIn(3);
  life.sync = !random->OneIn(3);
  life.verify_at_end = random->OneIn(2);
  life.reads_only_first = random->OneIn(8);
  constexpr StoreKind kKinds[] = {StoreKind::kPlain, StoreKind::kPessimistic, StoreKind::kOptimistic};
  if (flags.transactions) life.kind = OneOf(random, kKinds);
  life.transaction_percent = SmallBetween(random, 5, 60);
  life.bank_percent = SmallBetween(random, 2, 40);
  // Long enough for the first catch-up, which reads the whole database.
  life.has_follower = life.seed % 6 == 0;
  if (life.has_follower) life.patience = 0.5 + life.patience / 2;
  return life;
}

std::vector<const Comparator*> DatabasePlan::comparators() const {
  std::vector<const Comparator*> all;
  for (uint32_t family = 0; family < families; ++family) all.push_back(comparator(family));
  return all;
}

std::string RegionPath(const std::string& database, uint32_t region) { return database + ".region" + std::to_string(region); }

std::string DatabasePlan::ToString() const {
  std::ostringstream text;
  text << "regions=" << regions << (region_paths ? " (paths of their own)" : "") << " keys=" << keys
       << (reverse ? " reverse" : "") << (l1 == Options().l1 ? "" : " " + std::string(FindLevelKind(l1)->name))
       << " families=" << families << " idle_families=" << idle_families << " seed=" << seed;
  return text.str();
}

std::string LifePlan::ToString() const {
  std::ostringstream text;
  text << NameOf(ending) << (check_before ? ", checked before" : "") << "; threads=" << threads << " writes=" << write_percent
       << "% shared=" << shared_percent << "% batches=" << batch_percent << "% admin=1/" << admin_one_in << (hot ? " hot" : "")
       << (kind == StoreKind::kPlain         ? ""
           : kind == StoreKind::kPessimistic ? " pessimistic"
                                             : " optimistic")
       << " transactions=" << transaction_percent << "% bank=" << bank_percent << "%"
       << (verify_checksums ? " verify_checksums" : "") << (reads_only_first ? " reads_only_first" : "")
       << (has_follower ? " follower" : "") << (sync ? "" : " no sync") << "; " << FindMemtableType(options.memtable)->name
       << " memtable_size=" << options.memtable_size << " memtable_max_entries=" << options.memtable_max_entries
       << " max_immutable_memtables=" << options.max_immutable_memtables << " checkpoint_tables=" << options.checkpoint_tables
       << " segment_size=" << options.segment_size << " l0_slowdown_writes_trigger=" << options.l0_slowdown_writes_trigger
       << " l0_compaction_trigger=" << options.l0_compaction_trigger << " compaction_threads=" << options.compaction_threads
       << " recovery_threads=" << options.recovery_threads << " l1_index_size=" << options.l1_index_size
       << " lookup_cache_size=" << options.lookup_cache_size << " filter_bits_per_key=" << options.filter_bits_per_key
       << (options.list_kind == ListKind::kOblivious ? " list_kind=oblivious" : "")
       << (options.index_unified_logging ? "" : " copying flushes")
       << (options.disable_auto_compaction ? " disable_auto_compaction" : "") << (options.verify_at_open ? " verify_at_open" : "")
       << (options.persist_mode == PersistMode::kPage ? " persist_mode=page" : "")
       << " max_space_amplification=" << options.max_space_amplification << " space_slack=" << options.space_slack
       << " kept_free_space=" << options.kept_free_space << " dram_budget=" << options.dram_budget
       << (options.bound_space ? " bound_space" : "") << (options.lookup_cache_limit ? " lookup_cache_limit" : "")
       << (options.histograms ? " histograms" : "") << (options.count_pm_writes ? " count_pm_writes" : "")
       << " initial_region_size=" << options.initial_region_size;
  return text.str();
}

}  // namespace braiddb::stress
