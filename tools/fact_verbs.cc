// braiddb stat, properties, options, log: verbs that print facts about a database.
#include <cstdio>

#include "braiddb/options_file.h"
#include "tools/database_verb.h"
#include "tools/follow_log.h"
#include "tools/interrupt.h"

namespace braiddb::tools {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

constexpr const char* kNumbers[] = {"num-immutable-mem-table",
                                    "num-l0-tables",
                                    "num-entries-active-mem-table",
                                    "num-entries-imm-mem-tables",
                                    "num-entries-l0",
                                    "num-entries-l1",
                                    "estimate-num-keys",
                                    "cur-size-active-mem-table",
                                    "cur-size-all-mem-tables",
                                    "l1-dram-bytes",
                                    "lookup-cache-bytes",
                                    "filter-bytes",
                                    "dram-bytes",
                                    "pm-bytes-reserved",
                                    "pm-bytes-in-segments",
                                    "pm-bytes-punched",
                                    "pm-bytes-live",
                                    "l1-pm-bytes",
                                    "num-segments",
                                    "num-free-segments",
                                    "num-snapshots",
                                    "oldest-snapshot-sequence",
                                    "num-live-readers",
                                    "num-running-flushes",
                                    "num-running-compactions",
                                    "num-range-tombstones",
                                    "last-sequence-number",
                                    "background-errors",
                                    "is-write-stopped"};
constexpr const char* kTexts[] = {"levels", "l1", "visits-per-get", "region-nodes", "persist-mode", "stats"};

// Adds a property under another name. Adds nothing if a live reader does not have the property.
void AddNumber(const Session& session, ColumnFamilyHandle* family, const char* fact, const char* property, Facts* facts) {
  uint64_t value = 0;
  const bool is_known = session.db->GetIntProperty(family, std::string("braiddb.") + property, &value);
  if (is_known || !session.is_live()) facts->Add(fact, value);
}

// The smallest sequence number from which the log has all updates; behind the last one if there is none.
uint64_t OldestUpdate(DB* db) {
  uint64_t low = 1;
  uint64_t high = db->GetLatestSequenceNumber() + 1;
  std::unique_ptr<TransactionLogIterator> iterator;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (db->GetUpdatesSince(middle, &iterator).IsNotFound()) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Prints each update of a batch as one row.
class UpdatePrinter : public WriteBatch::Handler {
 public:
  UpdatePrinter(uint64_t sequence, RowPrinter* rows) : sequence_(sequence), rows_(rows) {}
  void Put(Slice key, Slice value) override { (void)Print("put", 0, key, value); }
  void Delete(Slice key) override { (void)Print("delete", 0, key, {}); }
  void Merge(Slice key, Slice operand) override { (void)Print("merge", 0, key, operand); }
  Status PutCF(uint32_t family, Slice key, Slice value) override { return Print("put", family, key, value); }
  Status DeleteCF(uint32_t family, Slice key) override { return Print("delete", family, key, {}); }
  Status MergeCF(uint32_t family, Slice key, Slice operand) override { return Print("merge", family, key, operand); }
  Status DeleteRangeCF(uint32_t family, Slice begin, Slice end) override { return Print("delete-range", family, begin, end); }

 private:
  Status Print(const char* what, uint32_t family, Slice key, Slice value) {
    rows_->Print({std::to_string(sequence_++), std::to_string(family), what, key, value});
    return Status::OK();
  }

  uint64_t sequence_;
  RowPrinter* const rows_;
};

}  // namespace

int StatVerb(Session& session, const VerbArguments&) {
  ColumnFamilyHandle* family = nullptr;
  if (Status status = session.Current(&family); !status.ok()) return Failed(status);
  Facts facts;
  std::string persist_mode;
  facts.Add("database", session.path);
  facts.Add("column_families", session.families.size());
  facts.Add("column_family", family->GetName());
  facts.Add("last_level", NameOf(family->GetOptions().l1));
  facts.Add("comparator", family->GetOptions().comparator->Name());
  facts.Add("regions", session.db->GetOptions().regions);
  if (session.db->GetProperty("braiddb.persist-mode", &persist_mode)) facts.Add("persist_mode", persist_mode);
  AddNumber(session, family, "keys_estimate", "estimate-num-keys", &facts);
  AddNumber(session, family, "l0_tables", "num-l0-tables", &facts);
  AddNumber(session, family, "l0_entries", "num-entries-l0", &facts);
  AddNumber(session, family, "last_level_entries", "num-entries-l1", &facts);
  AddNumber(session, family, "file_bytes", "pm-bytes-reserved", &facts);
  AddNumber(session, family, "punched_bytes", "pm-bytes-punched", &facts);
  AddNumber(session, family, "live_bytes", "pm-bytes-live", &facts);
  facts.Add("last_sequence", session.db->GetLatestSequenceNumber());
  facts.Print(session.style);
  return kSound;
}

int PropertiesVerb(Session& session, const VerbArguments& arguments) {
  ColumnFamilyHandle* family = nullptr;
  if (Status status = session.Current(&family); !status.ok()) return Failed(status);
  const bool is_selective = !arguments.positional().empty();
  Facts facts;
  int exit_code = kSound;
  const auto add = [&](const std::string& name) {
    uint64_t number = 0;
    std::string text;
    const std::string full = name.starts_with("braiddb.") || name.starts_with("rocksdb.") ? name : "braiddb." + name;
    if (session.db->GetIntProperty(family, full, &number)) {
      facts.Add(full, number);
    } else if (session.db->GetProperty(family, full, &text)) {
      facts.Add(full, text);
    } else if (is_selective) {
      std::fprintf(stderr, "braiddb: there is no property '%s'%s\n", full.c_str(),
                   session.is_live() ? " beside the program that has the database open" : "");
      exit_code = kDamaged;
    }
  };
  for (const std::string& name : arguments.positional()) add(name);
  if (!is_selective) {
    for (const char* name : kNumbers) add(name);
    for (const char* name : kTexts) add(name);
  }
  facts.Print(session.style);
  return exit_code;
}

int OptionsVerb(Session& session, const VerbArguments&) {
  std::vector<ColumnFamilyDescriptor> others;
  for (const auto& family : session.families) {
    if (family->GetID() != 0) others.push_back({family->GetName(), family->GetOptions()});
  }
  LoadedOptions stored;
  const Status status = LoadLatestOptions(session.path, &stored, true);
  if (!status.ok() && !status.IsNotFound()) return Failed(status);
  const std::string text = OptionsToText(status.ok() ? stored.options : session.db->GetOptions(), others);
  if (session.style.output != OutputForm::kJson) {
    std::printf("%s", text.c_str());
    return kSound;
  }
  Json json = Json::object();
  std::string section;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    line.erase(0, line.find_first_not_of(' '));
    const size_t equals = line.find('=');
    if (line.starts_with('[')) {
      section = line.substr(1, line.find_last_of(']') - 1);
    } else if (equals != std::string::npos && !line.starts_with('#')) {
      json[section][line.substr(0, equals)] = line.substr(equals + 1);
    }
  }
  std::printf("%s\n", WithHexFields(json).dump(2).c_str());
  return kSound;
}

void AddLogOptions(VerbOptions add) {
  add("since", po::value<uint64_t>()->value_name("SEQUENCE"), "from this sequence number on; default: the oldest update");
  add("follow", "go on with updates as a program writes them, until Ctrl-C; works beside the program");
}

int FollowLogVerb(const std::string& path, const Style& style, const VerbArguments& arguments) {
  return FollowLog(path, arguments.Has("since") ? arguments.Get<uint64_t>("since") : 0, style);
}

Status NoHistory(const std::string& what) {
  return Status::NotSupported(what +
                              " has no history; `braiddb log --follow <database>` reads the log beside the program: it prints " +
                              "the updates that the log still has, and then new ones");
}

int LogVerb(Session& session, const VerbArguments& arguments) {
  if (arguments.Has("follow")) return FollowLogVerb(session.path, session.style, arguments);
  if (session.is_live()) return Failed(NoHistory("a reader beside the program that has the database open"));
  if (session.is_secondary()) return Failed(NoHistory("a copy of a database"));
  const bool is_given = arguments.Has("since");
  const uint64_t since = is_given ? arguments.Get<uint64_t>("since") : OldestUpdate(session.db.get());
  if (!is_given && since > session.db->GetLatestSequenceNumber()) return kSound;
  RowPrinter rows = UpdateRows(session.style);
  std::unique_ptr<TransactionLogIterator> iterator;
  Status status = session.db->GetUpdatesSince(since, &iterator);
  const InterruptGuard guard;
  for (; status.ok() && iterator->Valid() && !IsInterrupted(); iterator->Next()) {
    const LoggedBatch batch = iterator->GetBatch();
    UpdatePrinter printer(batch.sequence, &rows);
    status = batch.updates->Iterate(&printer);
  }
  if (status.ok()) status = IsInterrupted() ? Status::Aborted("interrupted") : iterator->status();
  return status.ok() ? kSound : Failed(status);
}

}  // namespace braiddb::tools
