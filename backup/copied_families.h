// CopiedFamily: the description of a column family in a backup.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backup/copy.h"

namespace braiddb {

struct CopiedFamily {
  uint32_t id = 0;  // in the backup's blocks
  std::string name;
  std::string comparator;  // name of the comparator
  L1Kind l1 = {};
  uint32_t nv_leaf_size = 0;
};
using CopiedFamilies = std::vector<CopiedFamily>;

// All families except the default family.
CopiedFamilies DescribeFamilies(const CopiedState& state);

// LAYOUT of the text: for each family a line "<id> <l1> <nv_leaf_size> <bytes of name> <bytes of comparator>", directly followed
// by name and comparator without separators.
std::string FamiliesToText(const CopiedFamilies& families);
bool FamiliesFromText(const std::string& text, CopiedFamilies* families);

// Creates a backup's families in a new database, and then writes the backup's blocks to it.
class FamilyWriter {
 public:
  // Returns InvalidArgument if a family's comparator is neither in `comparators` nor built in.
  Status Create(DB* db, const CopiedFamilies& families, const std::vector<const Comparator*>& comparators);
  Status Write(const WriteBatch& block);

 private:
  Status Renumber(const WriteBatch& block, WriteBatch* result) const;

  DB* db_ = nullptr;
  std::vector<uint32_t> ids_;  // family ids in the backup
  FamilyHandles handles_;      // the same families in the new database
};

}  // namespace braiddb
