#include "backup/copied_families.h"

#include <algorithm>
#include <locale>
#include <sstream>
#include <utility>

#include "db/db_impl.h"
#include "util/comparator_name.h"

namespace braiddb {

CopiedFamilies DescribeFamilies(const CopiedState& state) {
  CopiedFamilies families;
  for (const auto& handle : state.families()) {
    const ColumnFamilyOptions& options = handle->GetOptions();
    if (handle->GetID() == 0) continue;
    families.push_back({handle->GetID(), handle->GetName(), options.comparator->Name(), options.l1, options.nv_leaf_size});
  }
  return families;
}

std::string FamiliesToText(const CopiedFamilies& families) {
  std::string text;  // no stream: the program's locale may group digits
  for (const CopiedFamily& family : families) {
    text += std::to_string(family.id) + ' ' + std::to_string(static_cast<int>(family.l1)) + ' ' +
            std::to_string(family.nv_leaf_size) + ' ' + std::to_string(family.name.size()) + ' ' +
            std::to_string(family.comparator.size()) + '\n' + family.name + family.comparator;
  }
  return text;
}

bool FamiliesFromText(const std::string& text, CopiedFamilies* families) {
  std::istringstream from(text);
  from.imbue(std::locale::classic());
  while (from.peek() != std::istringstream::traits_type::eof()) {
    CopiedFamily family;
    int l1 = 0;
    size_t name_bytes = 0;
    size_t comparator_bytes = 0;
    from >> family.id >> l1 >> family.nv_leaf_size >> name_bytes >> comparator_bytes;
    const bool fits = from.get() == '\n' && name_bytes <= text.size() && comparator_bytes <= text.size();
    if (!fits || family.id == 0 || family.id >= kMaxColumnFamilies) return false;
    family.l1 = static_cast<L1Kind>(l1);
    family.name.resize(name_bytes);
    family.comparator.resize(comparator_bytes);
    from.read(family.name.data(), static_cast<std::streamsize>(name_bytes));
    from.read(family.comparator.data(), static_cast<std::streamsize>(comparator_bytes));
    if (from.fail()) return false;
    families->push_back(std::move(family));
  }
  return true;
}

Status FamilyWriter::Create(DB* db, const CopiedFamilies& families, const std::vector<const Comparator*>& comparators) {
  db_ = db;
  for (const CopiedFamily& family : families) {
    ColumnFamilyOptions options;
    options.l1 = family.l1;
    options.nv_leaf_size = family.nv_leaf_size;
    std::vector<const Comparator*> known = comparators;
    known.push_back(db->GetOptions().comparator);
    const auto found = std::find_if(known.begin(), known.end(), [&](auto* one) { return one->Name() == family.comparator; });
    options.comparator = found != known.end() ? *found : BuiltInComparator(family.comparator);
    if (options.comparator == nullptr) {
      return Status::InvalidArgument("column family '" + family.name + "' is ordered by comparator '" + family.comparator +
                                     "', which has to be in CopyOptions::comparators");
    }
    std::unique_ptr<ColumnFamilyHandle> handle;
    if (Status status = CreateFamilyOfCopy(db, options, family.name, &handle); !status.ok()) return status;
    ids_.push_back(family.id);
    handles_.push_back(std::move(handle));
  }
  return Status::OK();
}

Status FamilyWriter::Renumber(const WriteBatch& block, WriteBatch* result) const {
  struct Renumberer : WriteBatch::Handler {
    void Put(Slice key, Slice value) override { to->Put(key, value); }
    void Delete(Slice key) override { to->Delete(key); }
    void Merge(Slice key, Slice operand) override { to->Merge(key, operand); }
    // Other families have only puts: a copy holds the results of reads.
    Status PutCF(uint32_t family, Slice key, Slice value) override {
      if (family == 0) return Put(key, value), Status::OK();
      const auto at = std::find(writer->ids_.begin(), writer->ids_.end(), family);
      if (at == writer->ids_.end()) return Status::Corruption("the backup has a key of a column family that it does not name");
      to->Put(writer->handles_[static_cast<size_t>(at - writer->ids_.begin())].get(), key, value);
      return Status::OK();
    }
    const FamilyWriter* writer;
    WriteBatch* to;
  } renumberer;
  renumberer.writer = this;
  renumberer.to = result;
  return block.Iterate(&renumberer);
}

Status FamilyWriter::Write(const WriteBatch& block) {
  if (ids_.empty()) return static_cast<DBImpl*>(db_)->WriteToAnyFamily(CopyWrites(), block);
  WriteBatch renumbered;
  Status status = Renumber(block, &renumbered);
  return status.ok() ? static_cast<DBImpl*>(db_)->WriteToAnyFamily(CopyWrites(), renumbered) : status;
}

}  // namespace braiddb
