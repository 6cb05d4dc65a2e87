// One database of a campaign: its first life, its images, and theirs.
#include <libpmemobj.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "braiddb/check.h"
#include "braiddb/db.h"
#include "db/db_impl.h"
#include "db/test_hooks.h"
#include "pmem/segment_directory.h"
#include "tests/crash_test/campaign.h"
#include "tests/crash_test/crash_database.h"
#include "tests/crash_test/crash_oracle.h"
#include "tests/crash_test/crash_workload.h"
#include "tests/crash_test/image_files.h"
#include "tests/crash_test/scheduler.h"
#include "tests/crash_test/store_tracer.h"
#include "tests/support/db_test_util.h"
#include "tests/support/pmem_store.h"

namespace braiddb::test {
namespace {

constexpr uint64_t kSwitchPeriod = 150;  // atomic operations
constexpr uint64_t kSwitchPeriodJudging = 1500;
// Trees of families keep a segment of 256 KiB in each region.
constexpr uint64_t kMostBytesWhenEmpty = (4ull << 20) + 2 * (256 << 10);

class DatabaseRun {
 public:
  DatabaseRun(const CampaignOptions& options, uint64_t database, std::string directory, CampaignCounters* counters)
      : options_(options),
        directory_(std::move(directory)),
        counters_(*counters),
        random_(options.seed * 1'000'003 + database),
        regions_(options.regions != 0 ? options.regions
                 : database % 3 == 1  ? 2
                                      : 1),
        // Not by the rest of three, as the regions: nine in a row have each kind with both numbers of regions.
        l1_(static_cast<L1Kind>(options.l1 >= 0 ? options.l1 : database / 3 % std::size(kL1Names))),
        families_(std::popcount(database % 8) % 2 == 1),
        transactions_(database % 7 < 3    ? CrashDatabase::Transactions::kPessimistic
                      : database % 7 == 3 ? CrashDatabase::Transactions::kOptimistic
                                          : CrashDatabase::Transactions::kNone),
        eadr_(options.eadr >= 0 ? options.eadr != 0 : database % 5 == 4),
        creation_(database % 7 == 2),
        workload_(regions_, l1_, database % 10 == 3 || database % 10 == 8, database % 4 / 2 == 1, &random_) {}

  void Run() {
    const CrashRecord record = FirstLife();
    int copy_on_write = 1;
    if (pmemobj_ctl_set(nullptr, "copy_on_write.at_open", &copy_on_write) != 0) Violate("no copy on write");
    scheduler::SetPeriod(kSwitchPeriodJudging);
    JudgeRecord(record, 1, options_.images_per_database);
  }

 private:
  // ---- The first life

  CrashRecord FirstLife() {
    counters_.Doing("working with the new database");
    scheduler::SetPeriod(kSwitchPeriod);
    const std::string path = directory_ + "/database";
    CrashOracle oracle(CrashWorkload::kLanes);
    StoreTracer tracer(path, TracerOptions(1), &oracle);
    CrashDatabase db;
    Must(Open(path, &tracer, creation_ ? SetPoolsMappedHook : SetDatabaseFoundHook, &db), "creating the database");
    const uint64_t parts = CountParts(db.get());
    WorkOnAllLanes(&db, &oracle, options_.ops - options_.ops / 2);
    if (random_.OneIn(2)) Must(workload_.ClearEnd(&db, &oracle, &random_), "deleting the last keys");
    WorkOnAllLanes(&db, &oracle, options_.ops / 2);
    if (random_.OneIn(2)) Must(workload_.ClearEnd(&db, &oracle, &random_), "deleting the last keys");
    Accumulate(&counters_.work, db->GetStatistics());
    counters_.parts += CountParts(db.get()) - parts;
    Must(db->Close(), "closing the database");
    tracer.Detach();
    db.reset();
    return FinishLife(&tracer);
  }

  void WorkOnAllLanes(CrashDatabase* db, CrashOracle* oracle, uint64_t operations) {
    Status statuses[CrashWorkload::kLanes];
    std::vector<std::thread> writers;
    for (size_t lane = 0; lane < CrashWorkload::kLanes; ++lane) {
      writers.emplace_back(
          [&, lane, seed = random_.Next()] { statuses[lane] = workload_.Work(db, oracle, lane, operations, seed); });
    }
    for (auto& writer : writers) writer.join();
    for (const Status& status : statuses) Must(status, "working with the database");
  }

  StoreTracer::Options TracerOptions(int depth) {
    StoreTracer::Options options;
    options.seed = random_.Next();
    options.eadr = eadr_;
    options.one_in_fences = depth == 1 ? 1 : 12;
    options.one_in_stores = depth == 1 ? 150 : 1500;
    return options;
  }

  CrashRecord FinishLife(StoreTracer* tracer) {
    if (!tracer->violation().empty()) Violate(tracer->violation());
    counters_.stores += tracer->stores();
    counters_.pmdk_stores += tracer->pmdk_stores();
    counters_.checked_pages += tracer->checked_pages();
    if (tracer->drain_return() != 0) counters_.drain_return = tracer->drain_return();
    for (const auto& [site, passed] : tracer->fences()) {
      if (auto* fence = counters_.FindFence(site)) fence->passed += passed;
    }
    CrashRecord record = tracer->TakeRecord();
    counters_.points += record.points.size();
    return record;
  }

  static const char* TextOf(CrashDatabase::Transactions transactions) {
    switch (transactions) {
      case CrashDatabase::Transactions::kPessimistic:
        return ", transactions";
      case CrashDatabase::Transactions::kOptimistic:
        return ", optimistic transactions";
      case CrashDatabase::Transactions::kNone:
        return "";
    }
    return "";
  }

  Status Open(const std::string& path, CrashDatabase* db) {
    return db->Open(workload_.DatabaseOptions(&random_), path, families_, transactions_);
  }
  // From the moment of this hook on, stores are traced.
  Status Open(const std::string& path, StoreTracer* tracer, void (*set_hook)(std::function<void(RegionSet*)>),
              CrashDatabase* db) {
    set_hook([tracer](RegionSet* regions) { tracer->Attach(regions); });
    const Status status = Open(path, db);
    set_hook(nullptr);
    return status;
  }

  static uint64_t CountParts(DB* db) {
    uint64_t parts = 0;
    for (uint32_t region = 0; region < RegionsOf(db)->count(); ++region)
      parts += RegionsOf(db)->impl()->region(region)->files()->list().parts.size();
    return parts;
  }

  // ---- Images

  // Looks at about `budget` images of the points of one life; the last point is always among them. Half of the others are drawn
  // from all points alike, half from all places in the code alike, so that what happens rarely is looked at, too.
  void JudgeRecord(const CrashRecord& record, uint32_t depth, uint64_t budget) {
    ImageFiles files(directory_ + "/image" + std::to_string(depth), record);
    std::map<std::pair<PointKind, FenceSite>, uint64_t> places;
    for (const CrashPoint& point : record.points) {
      ++places[{point.kind, point.site}];
      for (const auto& place : point.also) ++places[place];
    }
    const double wanted = static_cast<double>(std::max<uint64_t>(1, budget / options_.images_per_point));
    for (const CrashPoint& point : record.points) {
      const double alike = wanted / static_cast<double>(record.points.size());
      uint64_t rarest = places[{point.kind, point.site}];
      for (const auto& place : point.also) rarest = std::min(rarest, places[place]);
      const double by_place = wanted / static_cast<double>(places.size() * rarest);
      const bool last = &point == &record.points.back();
      if (!last && static_cast<double>(random_.Uniform(1'000'000)) >= (alike + by_place) / 2 * 1'000'000) continue;
      files.GoTo(point);
      JudgePoint(point, last, depth, &files);
    }
  }

  void JudgePoint(const CrashPoint& point, bool last, uint32_t depth, ImageFiles* files) {
    using enum ImageKind;
    static constexpr ImageKind kLineKinds[] = {kGuaranteed, kPrefixes, kWords, kEverything,
                                               kOneLine,    kPrefixes, kWords, kAllButOneLine};
    static constexpr ImageKind kEadrKinds[] = {kGuaranteed, kStoreOrder, kStoreOrder, kEverything};
    ++counters_.judged_points;
    ++counters_.by_point[static_cast<size_t>(point.kind)];
    counters_.dirty_lines += point.dirty.size();
    const uint32_t drawn = point.dirty.empty() ? 1 : options_.images_per_point;
    // What a close leaves is looked at; and since only the next life sees all of it, goes on once more.
    const uint32_t images = drawn + (last && depth < options_.depth ? 1 : 0);
    for (uint32_t i = 0; i < images; ++i) {
      const uint64_t turn = kind_turn_++;
      ImageKind kind = eadr_ ? kEadrKinds[turn % std::size(kEadrKinds)] : kLineKinds[turn % std::size(kLineKinds)];
      if (point.dirty.empty()) kind = kGuaranteed;
      if (i == drawn || (last && i == 0)) kind = kEverything;
      CountPlace(point.kind, point.site);
      for (const auto& [other_kind, site] : point.also) CountPlace(other_kind, site);
      Judge(point, kind, turn, depth, files, i == drawn || random_.OneIn(options_.lives_one_in));
    }
  }

  void CountPlace(PointKind kind, const FenceSite& site) {
    if (kind != PointKind::kBeforeFence && kind != PointKind::kAfterFence) return;
    if (auto* fence = counters_.FindFence(site)) ++(kind == PointKind::kBeforeFence ? fence->judged_before : fence->judged_after);
  }

  void Judge(const CrashPoint& point, ImageKind kind, uint64_t turn, uint32_t depth, ImageFiles* files, bool goes_on) {
    const bool lives_on = depth < options_.depth && goes_on;
    // The process dies, and the power does not fail until the next life: that one finds everything. What was being created is
    // removed by the next life, so nothing of it is left.
    const bool killed = lives_on && !eadr_ && !point.dirty.empty() && !point.files->creating() && random_.OneIn(2);
    if (killed) kind = ImageKind::kEverything;
    ++(depth == 1 ? counters_.first_images : counters_.second_images);
    ++counters_.by_kind[static_cast<size_t>(kind)];
    ++counters_.image;
    std::string text = std::string(NameOf(kind)) + " of " + std::to_string(point.dirty.size()) + " dirty lines " +
                       NameOf(point.kind) + ", crash " + std::to_string(depth) + ", " + std::to_string(regions_) +
                       (regions_ == 1 ? " region" : " regions") + ", " + kL1Names[static_cast<size_t>(l1_)] +
                       (families_ ? ", column families" : "") + TextOf(transactions_) + (eadr_ ? ", eADR" : "") +
                       (killed || was_killed_ ? ", the process was killed before" : "");
    counters_.Doing(text);
    current_directory_ = files->directory();
    std::vector<MediaLine> guaranteed;
    if (killed) guaranteed = files->GuaranteedOf(point);
    files->Apply(DrawImage(point, kind, turn, &random_));
    if (lives_on) {
      counters_.killed += killed;
      was_killed_ = killed;
      const CrashRecord record = LiveOn(point, files->directory(), std::move(guaranteed));
      JudgeRecord(record, depth + 1, options_.images_per_life);
      was_killed_ = false;
      current_directory_ = files->directory();
    } else {
      LookAt(point, files->directory());
    }
    files->TakeBack();
    if (counters_.image == options_.only_image) Violate("stopped at this image, as asked for");
  }

  std::vector<CrashContent> Check(CrashDatabase* db, const CrashOracle::Allowed& allowed, const char* when) {
    std::vector<CrashContent> seen;
    if (auto wrong = CheckAllowed(db, workload_.lane_keys(), allowed, &seen)) Violate(std::string(when) + *wrong);
    return seen;
  }

  // Opens the image, compares, closes. Now and then once more, and more thoroughly.
  void LookAt(const CrashPoint& point, const std::string& path) {
    if (!point.files->creating() && random_.OneIn(families_ ? 8 : 30))
      CheckFiles(path);  // what a family leaves behind shows there only
    const uint64_t growths = StoreTracer::growths();
    CrashDatabase db;
    Must(Open(path, &db), "open");
    const auto seen = Check(&db, *point.allowed, "");
    if (random_.OneIn(8)) {  // with what recovery left to be done in the background
      Must(db->CompactRange({}, nullptr, nullptr), "CompactRange after recovery");
      CrashOracle same(CrashWorkload::kLanes);
      same.Settle(seen);
      Check(&db, same.Current(), "after merging everything: ");
    }
    if (random_.OneIn(50)) CheckSpace(&db);
    Must(db->Close(), "close");
    if (random_.OneIn(5)) CheckLeaks(db.get());
    db.reset();
    if (point.files->creating() || !random_.OneIn(25)) return;
    // The pools were mapped privately: this is the same image again. But a part that was added meanwhile is there, and its heap
    // does not know of it: no crash leaves that.
    if (StoreTracer::growths() != growths) return;
    ++counters_.reopened;
    Must(Open(path, &db), "recovering once more");
    CrashOracle same(CrashWorkload::kLanes);
    same.Settle(seen);
    Check(&db, same.Current(), "recovered once more: ");
    Must(db->Close(), "close after recovering once more");
  }

  // The invariants hold at every instant, not only after recovery.
  void CheckFiles(const std::string& path) {
    ++counters_.file_checks;
    CheckReport report;
    Must(CheckDatabase({}, path, &report), "check");
    if (!report.sound()) Violate("check: " + report.findings[0].what + ": " + report.findings[0].where);
  }

  // Opens the image, compares, goes on working; all of it traced. `guaranteed`: of the point, if its process was killed.
  CrashRecord LiveOn(const CrashPoint& point, const std::string& path, std::vector<MediaLine> guaranteed) {
    CrashOracle oracle(*point.allowed);
    StoreTracer tracer(path, TracerOptions(2), &oracle);
    if (!guaranteed.empty()) tracer.Inherit(point.dirty, std::move(guaranteed));
    CrashDatabase db;
    Must(Open(path, &tracer, SetPoolsMappedHook, &db), "open");
    oracle.Settle(Check(&db, oracle.Current(), ""));
    tracer.NoteOperation(false);
    Must(workload_.Work(&db, &oracle, 0, random_.Range(2, 20), random_.Next()), "working after recovery");
    // On a thread of its own, which has another home region.
    Status status;
    std::thread([&, seed = random_.Next(), count = random_.Range(2, 20)] {
      status = workload_.Work(&db, &oracle, 1, count, seed);
    }).join();
    Must(status, "working after recovery");
    if (random_.OneIn(3)) Must(db->CompactRange({}, nullptr, nullptr), "CompactRange after recovery");
    Check(&db, oracle.Current(), "after going on: ");
    Must(db->Close(), "close");
    CheckLeaks(db.get());
    tracer.Detach();
    db.reset();
    return FinishLife(&tracer);
  }

  // Whatever PMDK has allocated, something refers to; every segment is free or in use, and known as that; nothing is half done.
  // REQUIRES: closed.
  void CheckLeaks(DB* db) {
    ++counters_.leak_checks;
    uint64_t in_use = 0;
    SegmentsOf(db)->ForEachIndex([&](Segment*) { ++in_use; });
    SegmentsOf(db)->ForEachLog([&](Segment* segment) {
      ++in_use;
      if (segment->state() == SegmentState::kOpen) Violate("a closed database has an open segment");
    });
    if (in_use != IntProperty(db, "braiddb.num-segments")) {
      Violate(std::to_string(in_use) + " segments are in use, " + std::to_string(IntProperty(db, "braiddb.num-segments")) +
              " are counted");
    }
    for (uint32_t i = 0; i < RegionsOf(db)->count(); ++i) {
      Region* region = RegionsOf(db)->impl()->region(i);
      SegmentDirectory directory(region);
      std::vector<SegmentDescriptor*> descriptors;
      Must(directory.Load(&descriptors), "reading the directory");
      for (const SegmentDescriptor* descriptor : descriptors) {
        const bool unused = descriptor->state_word == 0;
        if (unused != (descriptor->object.offset == 0)) Violate("a segment that is half taken or half given back");
      }
      const auto allocated = PoolObjects(region), reachable = AccountedObjects(region);
      if (allocated == reachable) continue;
      Violate("region " + std::to_string(i) + ": " + std::to_string(allocated.size()) + " objects are allocated, " +
              std::to_string(reachable.size()) + " are referred to");
    }
  }

  // With no key left, next to no space is in use.
  void CheckSpace(CrashDatabase* db) {
    ++counters_.space_checks;
    std::vector<std::unique_ptr<Transaction>> undecided;
    if (db->pessimistic() != nullptr) db->pessimistic()->GetAllPreparedTransactions(&undecided);
    for (const auto& transaction : undecided) Must(transaction->Rollback(), "rollback");
    undecided.clear();
    for (const auto& keys : workload_.lane_keys()) {
      for (const auto& key : keys) Must((*db)->Delete({}, db->FamilyOf(key), key), "delete");
    }
    std::vector<std::unique_ptr<ColumnFamilyHandle>> families;  // and what records of transactions are in
    Must(static_cast<DBImpl*>(db->get())->GetAllFamilies(&families), "GetAllFamilies");
    for (const auto& family : families) Must((*db)->CompactRange({}, family.get(), nullptr, nullptr), "CompactRange");
    families.clear();
    const uint64_t used = IntProperty(db->get(), "braiddb.pm-bytes-in-segments");
    if (used > kMostBytesWhenEmpty) Violate("an empty database holds " + std::to_string(used) + " bytes in segments");
  }

  void Must(const Status& status, const char* what) {
    if (!status.ok()) Violate(std::string(what) + ": " + status.ToString());
  }
  void Violate(const std::string& text) {
    std::strncpy(counters_.violation, text.c_str(), sizeof(counters_.violation) - 1);
    _exit(kDatabaseViolated);
  }

  const CampaignOptions& options_;
  const std::string directory_;
  CampaignCounters& counters_;
  Random random_;
  const uint32_t regions_;
  const L1Kind l1_;
  const bool families_;
  const CrashDatabase::Transactions transactions_;  // some operations are theirs, and some of these are prepared first
  const bool eadr_;
  const bool creation_;  // its power may fail while it is created
  CrashWorkload workload_;
  std::string current_directory_;
  bool was_killed_ = false;  // before the life whose crashes are looked at
  uint64_t kind_turn_ = 0;
};

}  // namespace

void RunDatabase(const CampaignOptions& options, uint64_t database, const std::string& directory, CampaignCounters* counters) {
  // Memory goes back to the system at the end only: libpmemobj takes megabytes at each open. Huge pages would be cleared for the
  // few bytes of a memtable.
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_ARENA_MAX, 1);
  scheduler::Start(options.seed * 7919 + database);
  DatabaseRun(options, database, directory, counters).Run();
  ++counters->databases;
  _exit(kDatabaseFine);
}

}  // namespace braiddb::test
