// CopiedFamily: what a backup says of a column family, beside what is in it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backup/copy.h"

namespace braiddb {

struct CopiedFamily {
  uint32_t id = 0;  // in the backup's blocks
  std::string name;
  std::string comparator;  // its name
  L1Kind l1 = L1Kind::kBraidedSkipList;
  uint32_t nv_leaf_size = 0;
};
using CopiedFamilies = std::vector<CopiedFamily>;

// All but the default one.
CopiedFamilies DescribeFamilies(const CopiedState& state);

// LAYOUT of the text: for each family a line "<id> <l1> <nv_leaf_size> <bytes of name> <bytes of comparator>", and behind it,
// without anything between or after them, name and comparator.
std::string FamiliesToText(const CopiedFamilies& families);
bool FamiliesFromText(const std::string& text, CopiedFamilies* families);

// Writes blocks of a backup to a new database, in which it makes the families first.
class FamilyWriter {
 public:
  // InvalidArgument if a family has a comparator that is none of these, and not built in.
  Status Create(DB* db, const CopiedFamilies& families, const std::vector<const Comparator*>& comparators);
  Status Write(const WriteBatch& block);

 private:
  Status Renumber(const WriteBatch& block, WriteBatch* result) const;

  DB* db_ = nullptr;
  std::vector<uint32_t> ids_;  // of the backup
  FamilyHandles handles_;      // of the same families in the database
};

}  // namespace braiddb
