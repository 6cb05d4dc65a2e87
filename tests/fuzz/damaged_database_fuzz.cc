// Damaged databases: words of the part files and the text files are changed, and then the database is checked, opened for
// reading, opened, read, merged and closed. Each step succeeds or returns an error; none crashes, hangs or takes memory without
// bound.
//
// Checksums alone would stop most changes, so the input may ask for checksums that match the changed bytes: of PARTS, of the
// region's root, of a slot of the MANIFEST and of a log entry. Pools are mapped privately, so no open changes the files.
#include <libpmemobj.h>
#include <unistd.h>
#include <xxhash.h>

#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/check.h"
#include "braiddb/db.h"
#include "pmem/layout_check.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/mutation/mutation_database.h"
#include "tests/mutation/word_map.h"
#include "tests/support/db_test_util.h"
#include "util/format.h"

namespace {

using namespace braiddb;
using namespace braiddb::test;

constexpr unsigned kSecondsPerInput = 60;

// One undamaged database: its files, and where each structure is.
class Base {
 public:
  explicit Base(Life life) : database_(life, MutationDatabase::kRegions, L1Kind::kBraidedSkipList, true) {
    const std::string path = directory_.File("db");
    if (!database_.Make(path, directory_.File("older"))) abort();
    words_ = std::make_unique<WordMap>(path);
    for (const std::string& file : ListFiles(path)) {
      if (!file.starts_with("LOG") && file != "LOCK") files_[file] = ReadFileOrDie(path + "/" + file);
    }
  }

  const MutationDatabase& database() const { return database_; }
  const WordMap& words() const { return *words_; }
  const std::map<std::string, std::string>& files() const { return files_; }

 private:
  TestDirectory directory_;
  MutationDatabase database_;
  std::unique_ptr<WordMap> words_;
  std::map<std::string, std::string> files_;
};

// The files of a base with changes.
class Damage {
 public:
  explicit Damage(const Base& base) : base_(base) {}

  void Draw(FuzzInput* input) {
    for (uint32_t changes = input->Below(5) + 1; changes > 0; --changes) {
      if (input->Below(8) == 0) {
        ChangeText(input);
      } else {
        ChangeWord(input);
      }
    }
    if (input->Below(2) == 0) MakeChecksumsRight();
  }
  void WriteTo(const std::string& path) const {
    for (const auto& [file, content] : base_.files()) {
      const auto changed = changed_.find(file);
      std::filesystem::create_directories(std::filesystem::path(path + "/" + file).parent_path());
      WriteFileOrDie(path + "/" + file, changed == changed_.end() ? content : changed->second);
    }
  }

 private:
  std::string& File(const std::string& file) {
    auto [it, is_new] = changed_.try_emplace(file);
    if (is_new) it->second = base_.files().at(file);
    return it->second;
  }

  void ChangeWord(FuzzInput* input) {
    const auto kind = static_cast<WordKind>(input->Below(static_cast<uint32_t>(WordKind::kFree)));
    const std::vector<Word>& words = base_.words().words(kind);
    if (words.empty()) return;
    const Word& word = words[(input->Below(65536) * uint64_t{65536} + input->Below(65536)) % words.size()];
    std::string& content = File(base_.words().files()[word.file]);
    uint64_t value = 0;
    memcpy(&value, &content[word.offset], sizeof(value));
    switch (input->Below(4)) {
      case 0:
        value ^= uint64_t{1} << input->Below(64);
        break;
      case 1:
        value = input->OddNumber();
        break;
      case 2: {  // one half of it
        const auto half = static_cast<uint32_t>(input->OddNumber());
        value = input->Bool() ? (value & 0xffffffff'00000000) | half : (value & 0xffffffff) | uint64_t{half} << 32;
        break;
      }
      default:
        value += static_cast<uint64_t>(static_cast<int64_t>(input->Below(5)) - 2);
    }
    memcpy(&content[word.offset], &value, sizeof(value));
  }

  void ChangeText(FuzzInput* input) {
    static const char* const kTexts[] = {"PARTS", "OPTIONS", "region.set"};
    const std::string wanted = kTexts[input->Below(std::size(kTexts))];
    for (const auto& [file, content] : base_.files()) {
      if (!file.ends_with(wanted) || content.empty()) continue;
      std::string& text = File(file);
      const size_t at = input->Below(65536) % (text.size() + 1);
      if (input->Bool() && !text.empty()) text.erase(at, input->Below(16));
      text.insert(at, input->Below(3) == 0 ? std::to_string(input->OddNumber()) : input->Bytes(12));
      return;
    }
  }

  void MakeChecksumsRight() {
    for (auto& [file, content] : changed_) {
      if (file.ends_with("PARTS")) {
        RightParts(&content);
      } else if (file.ends_with(".pmem")) {
        RightRoot(&content);
        RightManifest(file, &content);
        RightEntries(file, &content);
      }
    }
  }
  static void RightParts(std::string* text) {
    const size_t end = text->rfind("checksum ");
    if (end == std::string::npos) return;
    text->resize(end);
    *text += Format("checksum %016" PRIx64 "\n", static_cast<uint64_t>(XXH3_64bits(text->data(), text->size())));
  }
  static void RightRoot(std::string* content) {
    for (size_t at = 0; at + sizeof(RegionRoot) <= content->size(); at += 16) {
      RegionRoot root;
      memcpy(&root, &(*content)[at], sizeof(uint64_t));
      if (root.magic != RegionRoot::kMagic) continue;
      memcpy(&root, &(*content)[at], sizeof(root));
      root.checksum = RootChecksum(root);
      for (uint32_t slot = 0; slot < RegionRoot::kMetadataSlots; ++slot) {
        if (root.metadata[slot].offset != 0) root.metadata_check[slot] = MetadataCheck(root, slot);
      }
      root.generation_word = EncodeGenerationLimit(root.generation_word >> 16);
      memcpy(&(*content)[at], &root, sizeof(root));
      return;
    }
  }
  // A slot starts with its checksum over the bytes from 8 on; their number is in the 32 bits at 20.
  void RightManifest(const std::string& file, std::string* content) const {
    constexpr uint64_t kSlotBytesOffset = 16;
    uint64_t object = 0;
    while (object < content->size() && base_.words().KindAt(file, object) != WordKind::kManifest) object += 8;
    uint64_t slot_bytes = 0;
    if (object + 24 > content->size()) return;
    memcpy(&slot_bytes, &(*content)[object + kSlotBytesOffset], sizeof(slot_bytes));
    if (slot_bytes > content->size()) return;
    for (const uint64_t slot : {object + 64, object + 64 + slot_bytes}) {
      uint32_t bytes = 0;
      if (slot + 24 > content->size()) return;
      memcpy(&bytes, &(*content)[slot + 20], sizeof(bytes));
      if (bytes < 8 || bytes > content->size() - slot) continue;
      const uint64_t checksum = XXH3_64bits(&(*content)[slot + 8], bytes - 8);
      memcpy(&(*content)[slot], &checksum, sizeof(checksum));
    }
  }
  // An entry counts with the seed of its segment, which the header before it has.
  void RightEntries(const std::string& file, std::string* content) const {
    const std::string& before = base_.files().at(file);
    uint64_t entry_seed = 0;
    for (uint64_t at = 0; at + sizeof(LogEntry) < content->size(); at += 8) {
      const WordKind kind = base_.words().KindAt(file, at);
      if (kind == WordKind::kSegmentHeader) {
        SegmentHeader header;
        memcpy(&header, &before[at], sizeof(header));
        if (header.magic == SegmentHeader::kMagic) entry_seed = EntrySeed(header);
        continue;
      }
      if (kind != WordKind::kLog || memcmp(&before[at], &(*content)[at], 64) == 0) continue;
      const auto* entry = reinterpret_cast<const LogEntry*>(&(*content)[at]);
      if (LogEntrySize(*entry) > content->size() - at) continue;
      const uint64_t checksum = entry->ComputeChecksum(entry_seed);
      memcpy(&(*content)[at], &checksum, sizeof(checksum));
    }
  }

  const Base& base_;
  std::map<std::string, std::string> changed_;
};

void Read(DB* db, ColumnFamilyHandle* family, bool verify) {
  ReadOptions options;
  options.verify_checksums = verify;
  constexpr int kMaxSteps = 5000;
  auto iterator = db->NewIterator(options, family);
  int steps = 0;
  for (iterator->SeekToFirst(); iterator->Valid() && steps < kMaxSteps; iterator->Next()) ++steps;
  for (iterator->SeekToLast(); iterator->Valid() && steps < 2 * kMaxSteps; iterator->Prev()) ++steps;
  std::string value;
  for (uint64_t key = 0; key < 120; ++key) (void)db->Get(options, family, NumberedKey(key), &value);
}

void Use(const Base& base, const std::string& path, FuzzInput* input) {
  CheckReport report;
  CheckOptions check;
  (void)CheckDatabase(check, path, &report);

  Options options = base.database().options();
  options.create_if_missing = false;
  options.lookup_cache_size = 64 << 10;
  // What plain opens trust may be followed anywhere (LIMITATIONS): a fuzzer can only hold the strict promise.
  options.verify_at_open = true;
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles;
  std::unique_ptr<DB> db;
  if (DB::OpenForReadOnly(options, path, base.database().families(), &handles, &db).ok()) {
    for (const auto& handle : handles) Read(db.get(), handle.get(), true);
    handles.clear();
    (void)db->Close();
    db.reset();
  }
  handles.clear();
  // It reads the files by itself, and promises no more of damage than an end.
  if (input->Below(4) == 0) {
    (void)DB::OpenAsSecondary(options, path, path + "-secondary", base.database().families(), &handles, &db);
    handles.clear();
    db.reset();
  }
  if (DB::Open(options, path, base.database().families(), &handles, &db).ok()) {
    for (const auto& handle : handles) Read(db.get(), handle.get(), true);
    (void)db->Put({}, "after", "damage");
    if (input->Bool()) (void)db->CompactRange({}, nullptr, nullptr);
    handles.clear();
    (void)db->Close();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Base closed(Life::kClosed);
  static const Base killed(Life::kKilled);
  static const Base merging(Life::kMerging);
  // Once they are made: a creation opens its pools, too.
  static const bool private_pools = [] {
    int copy_on_write = 1;
    return pmemobj_ctl_set(nullptr, "copy_on_write.at_open", &copy_on_write) == 0;
  }();
  static const TestDirectory directory;
  if (!private_pools) abort();
  FuzzInput input(data, size);
  const Base* const bases[] = {&closed, &killed, &merging};
  const Base& base = *bases[input.Below(3)];
  alarm(kSecondsPerInput);  // a hang is a fault
  Damage damage(base);
  damage.Draw(&input);
  const std::string path = directory.File("db");
  std::filesystem::remove_all(path);
  damage.WriteTo(path);
  Use(base, path, &input);
  alarm(0);
  return 0;
}
