// braiddb dump: prints what is in a database, for people or as JSON.
#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "check/check_files.h"
#include "check/list_check.h"
#include "check/media.h"
#include "log/log_reader.h"
#include "tools/command.h"
#include "util/format.h"

namespace braiddb::tools {
namespace {

using Json = nlohmann::ordered_json;

// Bytes as text: printable ones as they are, the others and % as %XX.
std::string Escaped(Slice bytes) {
  std::string text;
  for (const char c : bytes) {
    if (c >= 0x20 && c < 0x7f && c != '%') {
      text += c;
    } else {
      text += Format("%%%02X", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return text;
}

const char* NameOf(SegmentState state) {
  static constexpr const char* kNames[] = {"unused", "free", "open", "sealed", "index", "copies"};
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

Json ManifestOf(const Media& media) {
  if (!media.manifest_is_sound()) return nullptr;
  const ManifestState& state = media.manifest();
  Json tables = Json::array();
  for (const ManifestState::Table& table : state.tables)
    tables.push_back({{"id", table.id}, {"boundary", table.boundary}, {"entries", table.entries}});
  return {{"generation", media.manifest_generation()},
          {"comparator", state.comparator},
          {"l1", state.l1_kind == static_cast<uint8_t>(L1Kind::kNvTree) ? "nv_tree" : "braided_skiplist"},
          {"log_boundary", state.log_boundary},
          {"last_sequence", state.last_sequence},
          {"next_id", state.next_id},
          {"l1_entries_estimate", state.l1_entries},
          {"merge_id", state.merge_id},
          {"merging_tables", state.merging_tables},
          {"clean", state.clean},
          {"tables", std::move(tables)}};
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

Json EntryOf(const Media& media, PmPtr place, const LogEntry& entry) {
  return {{"region", place.region()},
          {"offset", place.offset()},
          {"sequence", entry.sequence()},
          {"type", entry.type() == EntryType::kPut ? "put" : "delete"},
          {"batch", entry.is_batch_member()},
          {"state", entry.sequence() >= media.manifest().log_boundary ? "to replay"
                    : entry.is_dead()                                 ? "dead"
                    : entry.is_obsolete()                             ? "moved"
                                                                      : "live"},
          {"height", entry.height()},
          {"key", Escaped(entry.key())},
          {"value", Escaped(entry.value())}};
}

template <class Visit>
void ForEachEntry(const Media& media, const Visit& visit) {
  for (const MediaSegment& segment : media.segments()) {
    if (!segment.holds_log()) continue;
    LogReader reader(media.Resolve(segment.start()), segment.generation, segment.limit());
    while (const LogEntry* entry = reader.NextValid()) visit(segment.start() + reader.entry_offset(), *entry);
  }
}

// A list of objects, one a line: its fields as name=value.
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
    manifest.erase("tables");
    PrintLines("manifest", Json::array({manifest}));
    PrintLines("table", tables);
  }
  PrintLines("segment", json["segments"]);
  PrintLines("level", json["levels"]);
  PrintLines("finding", json["findings"]);
}

Json LevelsOf(const Media& media, const Comparator* comparator, Findings* findings) {
  ListCounts counts;
  if (!media.lists_are_there()) return Json::array();
  CheckLists(media, KeyOrder(comparator), findings, &counts);
  return Json::array({{{"level", 0}, {"tables", media.manifest().tables.size()}, {"entries", counts.l0_entries}},
                      {{"level", 1}, {"entries", counts.l1_entries}, {"older_versions", counts.obsolete_entries}}});
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
  const CheckOptions options = line.MakeCheckOptions("reading");
  posix::Fd lock;
  CheckReport report;
  Findings findings(&report);
  std::unique_ptr<Media> media;
  Status status = LockForReading(line.Positional(0), &lock);
  if (status.ok()) status = Media::Load(line.Positional(0), options.region_paths, &findings, &media);
  const Comparator* comparator = BytewiseComparator();
  if (status.ok() && media->manifest_is_sound())
    status = ChooseComparator(media->manifest().comparator, options.comparator, &comparator);
  if (!status.ok()) return CannotLook(status);

  const std::vector<SegmentContents> contents = CheckSegments(
      *media, [](uint64_t) {}, &findings);
  Json json{{"database", line.Positional(0)}, {"regions", RegionsOf(*media)}, {"manifest", ManifestOf(*media)}};
  json["segments"] = Json::array();
  for (size_t i = 0; i < contents.size(); ++i) json["segments"].push_back(SegmentOf(*media, media->segments()[i], contents[i]));
  json["levels"] = LevelsOf(*media, comparator, &findings);
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

}  // namespace braiddb::tools
