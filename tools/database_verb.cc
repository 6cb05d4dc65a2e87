#include "tools/database_verb.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "tools/child_job.h"

namespace braiddb::tools {

namespace po = boost::program_options;

namespace {

constexpr DatabaseVerb kVerbs[] = {
    {"approximate-size", "", "measure keys and values between two keys", Access::kRead, 0, 0, AddRangeOptions,
     ApproximateSizeVerb},
    {"compact", "", "merge everything into the last level and drop old versions", Access::kWrite, 0, 0, AddRangeOptions,
     CompactVerb},
    {"count", "", "count the keys", Access::kRead, 0, 0, AddRangeOptions, CountVerb},
    {"create-family", "<name>", "create a column family", Access::kWrite, 1, 1, AddCreateFamilyOptions, CreateFamilyVerb},
    {"delete", "<key>...", "delete keys, or all keys of a range", Access::kWrite, 0, kAnyNumber, AddDeleteOptions, DeleteVerb},
    {"drop-family", "<name>", "drop a column family and its keys", Access::kWrite, 1, 1, nullptr, DropFamilyVerb},
    {"families", "", "list the column families", Access::kRead, 0, 0, nullptr, FamiliesVerb},
    {"flush", "", "flush the memtables and checkpoint", Access::kWrite, 0, 0, nullptr, FlushVerb},
    {"get", "<key>...", "print the values of keys", Access::kRead, 1, kAnyNumber, nullptr, GetVerb},
    {"log", "", "print the updates that the log still has", Access::kRead, 0, 0, AddLogOptions, LogVerb},
    {"options", "", "print the stored options", Access::kRead, 0, 0, nullptr, OptionsVerb},
    {"properties", "[<name>...]", "print properties", Access::kRead, 0, kAnyNumber, nullptr, PropertiesVerb},
    {"put", "<key> [<value>]", "write a key", Access::kWrite, 1, 2, AddPutOptions, PutVerb},
    {"scan", "", "print keys and values in their order", Access::kRead, 0, 0, AddScanOptions, ScanVerb},
    {"stat", "", "print what the database is and holds", Access::kRead, 0, 0, nullptr, StatVerb},
};

}  // namespace

std::span<const DatabaseVerb> DatabaseVerbs() { return kVerbs; }

const DatabaseVerb* FindDatabaseVerb(std::string_view name) {
  const auto* found = std::find_if(std::begin(kVerbs), std::end(kVerbs), [name](const auto& verb) { return verb.name == name; });
  return found == std::end(kVerbs) ? nullptr : found;
}

// Parses the arguments of one call of a verb.
class VerbParser {
 public:
  // The shell's calls name no database.
  VerbParser(const DatabaseVerb& verb, bool names_database) : verb_(verb), names_database_(names_database) {
    usage_ = std::string(names_database ? "braiddb " : "") + std::string(verb.name) + " [option...]";
    if (names_database) usage_ += " <database>";
    if (!verb.arguments.empty()) usage_ += " " + std::string(verb.arguments);
    auto add = options_.add_options();
    add("help", "this text");
    add("family", po::value<std::string>()->value_name("NAME"), "the column family; default: default");
    add("hex", "keys and values are hexadecimal, in arguments and in output");
    add("escape", "bytes that are not printable, and %, are %XX, in arguments and in output");
    add("json", "print JSON, an object a line; bytes that are not UTF-8 are in fields <name>_hex");
    add("table", "print columns");
    if (names_database && verb.access == Access::kRead && verb.run != LogVerb) {  // a copy has no history
      add("secondary", po::value<std::string>()->value_name("DIRECTORY"),
          "read beside a program that has the database open; DIRECTORY keeps a copy of the database");
    }
    if (verb.add_options != nullptr) verb.add_options(add);
  }

  // Returns false if the verb must not run; *exit_code says how the call ends.
  bool Parse(const Arguments& given, VerbArguments* arguments, int* exit_code) {
    po::options_description all;
    po::positional_options_description places;
    all.add(options_).add_options()("positional", po::value(&arguments->positional_));
    if (names_database_ && verb_.run == LogVerb) all.add_options()("secondary", po::value<std::string>());  // refused with advice
    places.add("positional", -1);
    try {
      ParseOptions(given, all, places, &arguments->map_);
    } catch (const po::error& error) {
      return Fail(error.what(), exit_code);
    }
    if (arguments->Has("help")) {
      std::ostringstream text;
      text << options_;
      std::printf("usage: %s\n\n%s.\n\n%s", usage_.c_str(), std::string(verb_.what).c_str(), text.str().c_str());
      *exit_code = kSound;
      return false;
    }
    if (names_database_) {
      if (arguments->positional_.empty()) return Fail("no database given", exit_code);
      database_ = arguments->positional_.front();
      if (database_.empty()) return Fail("the database is an empty text", exit_code);
      arguments->positional_.erase(arguments->positional_.begin());
    }
    const size_t count = arguments->positional_.size();
    if (count < verb_.least) return Fail("arguments are missing", exit_code);
    if (count > verb_.most) return Fail("'" + arguments->positional_[verb_.most] + "' is one argument too many", exit_code);
    if (arguments->Has("hex") && arguments->Has("escape")) return Fail("--hex and --escape exclude each other", exit_code);
    return true;
  }

  const std::string& database() const { return database_; }
  const po::options_description& options() const { return options_; }

 private:
  bool Fail(const std::string& why, int* exit_code) const {
    std::fprintf(stderr, "braiddb: %s\nusage: %s\n", why.c_str(), usage_.c_str());
    *exit_code = kCannotLook;
    return false;
  }

  const DatabaseVerb& verb_;
  const bool names_database_;
  std::string usage_;
  std::string database_;
  po::options_description options_{"Options"};
};

namespace {

void SetStyle(const VerbArguments& arguments, Session* session) {
  if (arguments.Has("family")) session->family = arguments.Get<std::string>("family");
  if (arguments.Has("hex")) session->style.bytes = ByteForm::kHex;
  if (arguments.Has("escape")) session->style.bytes = ByteForm::kEscape;
  if (arguments.Has("table")) session->style.output = OutputForm::kTable;
  if (arguments.Has("json")) session->style.output = OutputForm::kJson;
}

int OpenAndRun(const DatabaseVerb& verb, const std::string& database, const OpenSettings& settings,
               const VerbArguments& arguments) {
  Session session;
  if (Status status = session.Open(database, settings); !status.ok()) return Failed(status);
  SetStyle(arguments, &session);
  const int exit_code = verb.run(session, arguments);
  const Status status = session.Close();
  if (!status.ok() && exit_code != kCannotLook) return Failed(status);
  return exit_code;
}

}  // namespace

std::vector<std::string> OptionsOf(const DatabaseVerb& verb) {
  const VerbParser parser(verb, false);
  std::vector<std::string> names;
  for (const auto& option : parser.options().options()) names.push_back("--" + option->long_name());
  return names;
}

int RunDatabaseVerb(const DatabaseVerb& verb, const Arguments& given) {
  VerbParser parser(verb, true);
  VerbArguments arguments;
  int exit_code = kSound;
  if (!parser.Parse(given, &arguments, &exit_code)) return exit_code;
  OpenSettings settings;
  settings.access = verb.name == "put" && arguments.Has("create") ? Access::kCreate : verb.access;
  if (arguments.Has("secondary")) settings.secondary = arguments.Get<std::string>("secondary");
  if (verb.run == LogVerb && arguments.Has("secondary")) return Failed(NoHistory("a copy of a database"));
  if (verb.run == LogVerb && arguments.Has("follow")) {  // takes no lock, so that a program can open the database
    Session session;
    SetStyle(arguments, &session);
    return FollowLogVerb(parser.database(), session.style, arguments);
  }
  const auto work = [&] { return OpenAndRun(verb, parser.database(), settings, arguments); };
  if (verb.run != CompactVerb) return work();
  return ChildJob{.action = "compacting", .work = work, .after = [] { return "the next open finishes a merge that had begun"; }}
      .Run();
}

int RunInSession(const DatabaseVerb& verb, Session* session, const Arguments& given) {
  VerbParser parser(verb, false);
  VerbArguments arguments;
  int exit_code = kSound;
  if (!parser.Parse(given, &arguments, &exit_code)) return exit_code;
  if (verb.access != Access::kRead && session->access == Access::kRead)
    return Failed(Status::NotSupported("the database is open for reading only"));
  const std::string family = session->family;
  const Style style = session->style;
  SetStyle(arguments, session);
  exit_code = verb.run(*session, arguments);
  session->family = family;
  session->style = style;
  return exit_code;
}

bool ReadBytes(const Session& session, const std::string& text, std::string* bytes) {
  if (Decode(session.style.bytes, text, bytes)) return true;
  std::fprintf(stderr, "braiddb: '%s' is not %s\n", text.c_str(),
               session.style.bytes == ByteForm::kHex ? "an even number of hexadecimal digits" : "text with escapes %XX");
  return false;
}

int Failed(const Status& status) {
  std::fflush(stdout);
  return CannotLook(status);
}

}  // namespace braiddb::tools
