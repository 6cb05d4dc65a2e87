// braiddb families, create-family, drop-family.
#include <algorithm>
#include <cstdio>

#include "index/level_kind.h"
#include "tools/database_verb.h"

namespace braiddb::tools {
namespace {

namespace po = boost::program_options;

}  // namespace

void AddCreateFamilyOptions(VerbOptions add) {
  add("l1", po::value<std::string>()->value_name("KIND"),
      ("the last level: " + LevelKindNames(" or ") + "; default: as the default family's").c_str());
  add("comparator", po::value<std::string>()->value_name("NAME"), "the order of keys: bytewise or reverse-bytewise");
}

int FamiliesVerb(Session& session, const VerbArguments&) {
  const bool is_raw = session.style.output == OutputForm::kRaw;
  RowPrinter rows(session.style,
                  is_raw ? std::vector<std::string>{"family"}
                         : std::vector<std::string>{"family", "last_level", "comparator", "keys_estimate"},
                  {3});
  for (const auto& family : session.families) {
    if (is_raw) {
      rows.Print({family->GetName()});
      continue;
    }
    uint64_t keys = 0;
    session.db->GetIntProperty(family.get(), "braiddb.estimate-num-keys", &keys);
    rows.Print(
        {family->GetName(), NameOf(family->GetOptions().l1), family->GetOptions().comparator->Name(), std::to_string(keys)});
  }
  return kSound;
}

int CreateFamilyVerb(Session& session, const VerbArguments& arguments) {
  ColumnFamilyOptions options;
  options.l1 = session.db->DefaultColumnFamily()->GetOptions().l1;
  if (arguments.Has("l1") && !ParseL1(arguments.Get<std::string>("l1"), &options.l1))
    return Failed(Status::InvalidArgument("--l1 is neither " + LevelKindNames(" nor ")));
  const std::string comparator = arguments.Has("comparator") ? arguments.Get<std::string>("comparator") : "bytewise";
  if (comparator != "bytewise" && comparator != "reverse-bytewise")
    return Failed(Status::InvalidArgument("--comparator is neither bytewise nor reverse-bytewise"));
  if (comparator == "reverse-bytewise") options.comparator = ReverseBytewiseComparator();
  std::unique_ptr<ColumnFamilyHandle> handle;
  const Status status = session.db->CreateColumnFamily(options, arguments.positional()[0], &handle);
  if (!status.ok()) return Failed(status);
  session.families.push_back(std::move(handle));
  return kSound;
}

int DropFamilyVerb(Session& session, const VerbArguments& arguments) {
  const std::string& name = arguments.positional()[0];
  ColumnFamilyHandle* const handle = session.Find(name);
  if (handle == nullptr) return Failed(Status::NotFound("there is no column family '" + name + "'"));
  if (Status status = session.db->DropColumnFamily(handle); !status.ok()) return Failed(status);
  std::erase_if(session.families, [handle](const auto& family) { return family.get() == handle; });
  return kSound;
}

}  // namespace braiddb::tools
