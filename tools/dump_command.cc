// braiddb dump: prints the content of a database, as text or as JSON.
#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "check/check_files.h"
#include "check/list_check.h"
#include "check/media.h"
#include "check/segment_check.h"
#include "index/level_kind.h"
#include "log/log_reader.h"
#include "pmem/list_kind.h"
#include "tools/child_job.h"
#include "tools/command.h"
#include "util/format.h"

namespace braiddb::tools {
namespace {

using Json = nlohmann::ordered_json;

const char* NameOf(SegmentState state) {
  static constexpr const char* kNames[] = {"unused", "free", "open", "sealed", "index", "copies", "flushed"};
  return kNames[static_cast<size_t>(state)];
}

Json RegionsOf(const Media& media) {
  Json regions = Json::array();
  for (uint32_t i = 0; i < media.regions(); ++i) {
    const RegionImage* image = media.image(i);
    Json region{{"region", i}};
    if (image == nullptr) {
      region["missing"] = true;
    } else {
      region["directory"] = image->directory();
      region["bytes"] = image->bytes();
      region["parts"] = image->list().parts;
      if (image->list_is_sound()) region["database"] = Format("%016" PRIx64, image->list().database_id);
    }
    if (const RegionRoot* root = media.root(i); root != nullptr) {
      region["format_version"] = root->format_version;
      region["generation_limit"] = root->generation_word >> 16;
    }
    regions.push_back(std::move(region));
  }
  return regions;
}

std::string NameOfLevel(uint8_t kind) {
  const LevelKind* const known = FindLevelKind(kind);
  return known != nullptr ? std::string(known->name) : "number " + std::to_string(kind);
}

Json ManifestOf(const Media& media) {
  if (!media.manifest_is_sound()) return nullptr;
  const ManifestState& state = media.manifest();
  Json tables = Json::array();
  for (const ManifestState::Table& table : state.tables)
    tables.push_back({{"id", table.id}, {"family", table.family}, {"boundary", table.boundary}, {"entries", table.entries}});
  Json families = Json::array();
  for (const ManifestState::Family& family : state.families) {
    families.push_back({{"id", family.id},
                        {"name", Escaped(family.name)},
                        {"number", family.number},
                        {"comparator", family.comparator},
                        {"l1", NameOfLevel(family.l1_kind)},
                        {"l1_entries_estimate", family.l1_entries},
                        {"dropped", family.dropped}});
  }
  return {{"generation", media.manifest_generation()},
          {"comparator", state.comparator},
          {"l1", NameOfLevel(state.l1_kind)},
          {"log_boundary", state.log_boundary},
          {"last_sequence", state.last_sequence},
          {"next_id", state.next_id},
          {"l1_entries_estimate", state.l1_entries},
          {"merge_id", state.merge_id},
          {"merging_tables", state.merging_tables},
          {"merging_family", state.merging_family},
          {"clean", state.clean},
          {"list_kind", NameOf(state.list_kind)},
          {"index_unified_logging", !state.copying_flush},
          {"tables", std::move(tables)},
          {"families", std::move(families)}};
}

Json SegmentOf(const Media& media, const MediaSegment& segment, const SegmentContents& contents) {
  Json json{{"region", segment.region}, {"offset", segment.data}, {"state", NameOf(segment.state)}, {"bytes", segment.capacity}};
  if (!segment.used()) return json;
  json["generation"] = segment.generation;
  if (segment.state == SegmentState::kSealed) {
    json["sealed_bytes"] = segment.sealed_bytes;
    json["last_sequence"] = segment.sealed_last_sequence;
  }
  json["live"] = contents.live.count;
  json["dead"] = contents.dead;
  json["to_replay"] = contents.to_replay;
  json["place"] = media.Place(segment.start());
  return json;
}

const char* StateOf(const Media& media, const LogEntry& entry) {
  if (media.IsListed(entry.family()) == Listed::kDropped) return "dropped";
  if (media.IsGarbage(entry)) return "garbage";
  if (entry.sequence() >= media.manifest().log_boundary) return "to replay";
  return entry.is_dead() ? "dead" : entry.is_obsolete() ? "moved" : "live";
}

Json EntryOf(const Media& media, PmPtr place, const LogEntry& entry) {
  return {{"region", place.region()},
          {"offset", place.offset()},
          {"family", entry.family()},
          {"sequence", entry.sequence()},
          {"type", entry.type() == EntryType::kPut ? "put"
                   : entry.is_operand()            ? "merge"
                                                   : "delete"},
          {"batch", entry.is_batch_member()},
          {"state", StateOf(media, entry)},
          {"height", entry.height()},
          {"key", Escaped(entry.key())},
          {"value", Escaped(entry.value())}};
}

template <class Visit>
void ForEachEntry(const Media& media, const Visit& visit) {
  for (const MediaSegment& segment : media.segments()) {
    if (!segment.holds_log()) continue;
    LogReader reader(media.Resolve(segment.start()), segment.entry_seed, segment.limit());
    while (const LogEntry* entry = reader.NextValid()) visit(segment.start() + reader.entry_offset(), *entry);
  }
}

// Prints a list of objects, one per line, with the fields as name=value.
void PrintLines(const char* title, const Json& list) {
  for (const Json& item : list) {
    std::printf("%s", title);
    for (const auto& [name, value] : item.items()) {
      std::printf(" %s=%s", name.c_str(), value.is_string() ? value.get<std::string>().c_str() : value.dump().c_str());
    }
    std::printf("\n");
  }
}

void PrintText(const Json& json) {
  PrintLines("region", json["regions"]);
  if (json["manifest"].is_null()) {
    std::printf("the MANIFEST is damaged or missing\n");
  } else {
    Json manifest = json["manifest"];
    const Json tables = manifest["tables"];
    const Json families = manifest["families"];
    manifest.erase("tables");
    manifest.erase("families");
    PrintLines("manifest", Json::array({manifest}));
    PrintLines("family", families);
    PrintLines("table", tables);
  }
  PrintLines("segment", json["segments"]);
  PrintLines("level", json["levels"]);
  PrintLines("finding", json["findings"]);
}

Json LevelsOf(const Media& media, const std::vector<KeyOrder>& orders, ReachedEntries* reached, Findings* findings) {
  Json levels = Json::array();
  if (!media.manifest_is_sound()) return levels;
  std::vector<ListCounts> counts;
  CheckLists(media, orders, findings, reached, &counts);
  for (size_t i = 0; i < counts.size(); ++i) {
    const MediaFamily& family = media.families()[i];
    if (!family.level_is_there) continue;
    levels.push_back({{"level", 0}, {"family", family.id}, {"tables", counts[i].tables}, {"entries", counts[i].l0_entries}});
    levels.push_back(
        {{"level", 1}, {"family", family.id}, {"entries", counts[i].l1_entries}, {"older_versions", counts[i].obsolete_entries}});
  }
  return levels;
}

int PrintDatabase(const CommandLine& line, bool as_json, bool entries) {
  const CheckOptions options = line.MakeCheckOptions({"reading the log", "reading the lists"});
  posix::Fd lock;
  CheckReport report;
  Findings findings(&report);
  std::unique_ptr<Media> media;
  Status status = LockForReading(line.Positional(0), &lock);
  if (status.ok()) status = Media::Load(line.Positional(0), options.region_paths, &findings, &media);
  std::vector<KeyOrder> orders;
  if (status.ok()) status = ChooseOrders(options, *media, &orders);
  if (!status.ok()) return CannotLook(status);

  const std::vector<SegmentContents> contents = CheckSegments(*media, options.progress, &findings);
  Json json{{"database", line.Positional(0)}, {"regions", RegionsOf(*media)}, {"manifest", ManifestOf(*media)}};
  json["segments"] = Json::array();
  for (size_t i = 0; i < contents.size(); ++i) json["segments"].push_back(SegmentOf(*media, media->segments()[i], contents[i]));
  ReachedEntries reached = MakeReachedEntries(*media, contents, options.progress);
  json["levels"] = LevelsOf(*media, orders, &reached, &findings);
  EndProgress();
  json["findings"] = Json::array();
  for (const CheckFinding& finding : report.findings)
    json["findings"].push_back({{"what", finding.what}, {"where", finding.where}});
  if (as_json) {
    std::printf("%s\n", json.dump(entries ? -1 : 2, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    PrintText(json);
  }
  if (!entries) return report.sound() ? kSound : kDamaged;
  ForEachEntry(*media, [&](PmPtr place, const LogEntry& entry) {
    const Json item = EntryOf(*media, place, entry);
    if (as_json) {
      std::printf("%s\n", item.dump().c_str());
    } else {
      PrintLines("entry", Json::array({item}));
    }
  });
  return report.sound() ? kSound : kDamaged;
}

}  // namespace

int RunDump(const Arguments& arguments) {
  namespace po = boost::program_options;
  CommandLine line("braiddb dump [option...] <database>", {"database"});
  bool as_json = false;
  bool entries = false;
  line.Add()("json", po::bool_switch(&as_json), "print JSON; with --entries an object a line, the first is the database")(
      "entries", po::bool_switch(&entries), "list the log entries too, in the order of their places");
  int exit_code = kSound;
  if (!line.Parse(arguments, &exit_code)) return exit_code;
  const auto dump = [&] { return PrintDatabase(line, as_json, entries); };
  return ChildJob{.action = "dumping", .work = dump, .after = [] { return "the output is cut"; }, .outlives_reader = false}.Run();
}

}  // namespace braiddb::tools
