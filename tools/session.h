// Session: one open database, as the verbs of the command line and of the shell use it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "tools/output.h"

namespace braiddb::tools {

enum class Access : uint8_t {
  kRead,    // changes no byte of the database
  kWrite,   // the database must exist
  kCreate,  // the database is created if it does not exist
};

// How a database is opened. The fields with "creation" have an effect only if the database is created.
struct OpenSettings {
  Access access = Access::kRead;
  std::string secondary;                  // with kRead: the directory of a secondary that reads beside a running program
  uint32_t regions = 0;                   // creation
  std::vector<std::string> region_paths;  // creation
  L1Kind l1 = {};                         // creation
};

// Thread safety: one thread at a time; `db` may be used by several.
class Session {
 public:
  Session() = default;
  // Closes the database; call Close to learn of an error.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Opens with the stored options, and with all column families.
  //   NotSupported  a family has a comparator that is not built in
  //   Busy          a program has the database open
  Status Open(const std::string& path, const OpenSettings& settings);
  Status Close();
  // Whether a program has the database open for writing, and this session reads beside it.
  bool is_live() const { return is_live_; }
  // Whether this session reads a copy that follows the database of a program.
  bool is_secondary() const { return is_secondary_; }
  // NotSupported if the session is live: only the program has `what`. The message recommends --secondary.
  Status RefuseLive(const std::string& what) const;

  // Null if there is no such family.
  ColumnFamilyHandle* Find(const std::string& family) const;
  // The same for `this->family`.
  Status Current(ColumnFamilyHandle** handle) const;
  // Creates the family if it does not exist.
  Status FindOrCreate(const std::string& family, ColumnFamilyHandle** handle);

  std::unique_ptr<DB> db;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> families;  // the default one first
  std::string path;
  Access access = Access::kRead;
  std::string family = kDefaultColumnFamilyName;  // the family that verbs use
  Style style;

 private:
  bool is_live_ = false;
  bool is_secondary_ = false;
};

// Finds the kind of last level with this name. Returns false for an unknown name.
bool ParseL1(const std::string& name, L1Kind* kind);
std::string NameOf(L1Kind kind);

}  // namespace braiddb::tools
