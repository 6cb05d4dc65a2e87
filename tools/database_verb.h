// DatabaseVerb: a verb that works on one open database. The command line opens the database for it; the shell has it open.
#pragma once

#include <boost/program_options.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/command.h"
#include "tools/session.h"

namespace braiddb::tools {

// The arguments of a verb without those that choose the database.
class VerbArguments {
 public:
  const std::vector<std::string>& positional() const { return positional_; }
  bool Has(const char* option) const { return map_.count(option) != 0; }
  // REQUIRES: Has(option), and T is the type in the verb's options.
  template <class T>
  const T& Get(const char* option) const {
    return map_[option].as<T>();
  }

 private:
  friend class VerbParser;
  std::vector<std::string> positional_;
  boost::program_options::variables_map map_;
};

using VerbOptions = boost::program_options::options_description_easy_init;

struct DatabaseVerb {
  std::string_view name;
  std::string_view arguments;  // behind the database, as the help shows them
  std::string_view what;
  Access access;
  size_t least;  // positional arguments behind the database
  size_t most;
  void (*add_options)(VerbOptions add);  // null if the verb has none of its own
  // Returns an ExitCode. `session.style` and `session.family` are set from the arguments.
  int (*run)(Session& session, const VerbArguments& arguments);
};

constexpr size_t kAnyNumber = ~size_t{0};

// All of them, in alphabetical order: the table for help, completion and the shell.
std::span<const DatabaseVerb> DatabaseVerbs();
// Null if there is none.
const DatabaseVerb* FindDatabaseVerb(std::string_view name);

// The options of a verb in the shell, each with two dashes.
std::vector<std::string> OptionsOf(const DatabaseVerb& verb);

// The command line: opens the database that the first positional argument names.
int RunDatabaseVerb(const DatabaseVerb& verb, const Arguments& arguments);
// The shell: `session` is open. Its style and family are those of the arguments during the call.
int RunInSession(const DatabaseVerb& verb, Session* session, const Arguments& arguments);

// ---- For verbs

// Reads `text` in the session's form of bytes. Prints an error and returns false if it has another form.
[[nodiscard]] bool ReadBytes(const Session& session, const std::string& text, std::string* bytes);
// Prints a failure of the database. Returns kCannotLook.
int Failed(const Status& status);

// The verbs, in the files of their groups.
int GetVerb(Session& session, const VerbArguments& arguments);
int ScanVerb(Session& session, const VerbArguments& arguments);
int CountVerb(Session& session, const VerbArguments& arguments);
int ApproximateSizeVerb(Session& session, const VerbArguments& arguments);
void AddRangeOptions(VerbOptions add);
void AddScanOptions(VerbOptions add);
int PutVerb(Session& session, const VerbArguments& arguments);
int DeleteVerb(Session& session, const VerbArguments& arguments);
int CompactVerb(Session& session, const VerbArguments& arguments);
int FlushVerb(Session& session, const VerbArguments& arguments);
void AddPutOptions(VerbOptions add);
void AddDeleteOptions(VerbOptions add);
int StatVerb(Session& session, const VerbArguments& arguments);
int PropertiesVerb(Session& session, const VerbArguments& arguments);
int OptionsVerb(Session& session, const VerbArguments& arguments);
int LogVerb(Session& session, const VerbArguments& arguments);
// NotSupported: `what` has no history. The message says how to print the updates of a database that a program has open.
Status NoHistory(const std::string& what);
// `log --follow`: reads a database that is not open here.
int FollowLogVerb(const std::string& path, const Style& style, const VerbArguments& arguments);
void AddLogOptions(VerbOptions add);
int FamiliesVerb(Session& session, const VerbArguments& arguments);
int CreateFamilyVerb(Session& session, const VerbArguments& arguments);
int DropFamilyVerb(Session& session, const VerbArguments& arguments);
void AddCreateFamilyOptions(VerbOptions add);

}  // namespace braiddb::tools
