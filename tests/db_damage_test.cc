// Files that are not as they should be: each gets its own clear error, never a crash, a hang or wrong data.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braiddb/db.h"
#include "db/test_hooks.h"
#include "pmem/layout.h"
#include "pmem/layout_check.h"
#include "pmem/pool_format.h"
#include "pmem/region.h"
#include "tests/support/db_fixture.h"
#include "tests/support/db_test_util.h"
#include "tests/support/tracked_ranges.h"

namespace braiddb::test {
namespace {

namespace fs = std::filesystem;

struct Damage {
  const char* name;
  std::function<void(const std::string& file)> apply;
};

class DbDamageTest : public DbOpenTest {};

TEST_F(DbDamageTest, EveryDamagedFileGivesAClearErrorAndHealsWhenRestored) {
  const auto cut = [](const std::string& file, uint64_t bytes) {
    const uint64_t size = fs::file_size(file);
    fs::resize_file(file, size - std::min(bytes, size));
  };
  const auto fill = [](const std::string& file, const std::string& content) { WriteFileOrDie(file, content); };
  const Damage kDamages[] = {
      {"empty", [](const std::string& file) { fs::resize_file(file, 0); }},
      {"one byte", [](const std::string& file) { fs::resize_file(file, 1); }},
      {"half", [&](const std::string& file) { cut(file, fs::file_size(file) / 2); }},
      {"a page short", [&](const std::string& file) { cut(file, 4096); }},
      {"foreign", [&](const std::string& file) { fill(file, Random(1).Bytes(fs::file_size(file))); }},
      {"text", [&](const std::string& file) { fill(file, std::string(fs::file_size(file), 'x')); }},
      {"missing", [](const std::string& file) { fs::remove(file); }},
  };
  Fill(TinyOptions(2), 500);
  const std::vector<std::string> files = RegionFiles(path_);
  ASSERT_GE(files.size(), 2u);
  for (const auto& name : files) {
    const std::string file = path_ + "/" + name;
    const std::string original = ReadFileOrDie(file);
    for (const auto& damage : kDamages) {
      SCOPED_TRACE(name + ": " + damage.name);
      damage.apply(file);
      for (bool create : {false, true}) {
        Options options = TinyOptions(2);
        options.create_if_missing = create;
        std::unique_ptr<DB> db;
        const Status status = Open(options, &db);
        // PMDK's poolset file is derived and made again; everything else is needed.
        if (name.ends_with(".set")) {
          EXPECT_OK(status);
        } else {
          EXPECT_CODE(status, kCorruption) << "create_if_missing " << create;
        }
        EXPECT_EQ(db != nullptr, status.ok());
      }
      fs::remove_all(file);
      WriteFileOrDie(file, original);
    }
  }
  ExpectFilled(TinyOptions(2), 500);
}

TEST_F(DbDamageTest, DirectoryInPlaceOfAFileIsAnError) {
  Fill(TinyOptions(2), 100);
  for (const auto& name : RegionFiles(path_)) {
    SCOPED_TRACE(name);
    const std::string file = path_ + "/" + name;
    const std::string original = ReadFileOrDie(file);
    fs::remove(file);
    fs::create_directory(file);
    std::unique_ptr<DB> db;
    const Status status = Open(TinyOptions(2), &db);
    EXPECT_TRUE(status.IsCorruption() || status.IsIOError()) << status.ToString();
    EXPECT_FALSE(status.message().empty());
    EXPECT_EQ(db, nullptr);
    fs::remove_all(file);
    WriteFileOrDie(file, original);
  }
  ExpectFilled(TinyOptions(2), 100);
}

TEST_F(DbDamageTest, SwappedAndForeignRegionsAreRecognised) {
  Fill(TinyOptions(2), 500);
  const std::string other = directory_.File("other");
  { ASSERT_NE(OpenOrFail(TinyOptions(2), other), nullptr); }

  // The entries of the database directory that belong to one region.
  const auto entries_of = [](const std::string& database, int region) {
    std::vector<fs::path> entries;
    for (const auto& entry : fs::directory_iterator(database)) {
      const std::string name = entry.path().filename().string();
      const std::string prefix = "region-" + std::to_string(region);
      if (name.starts_with(prefix) && (name.size() == prefix.size() || !std::isdigit(name[prefix.size()])))
        entries.push_back(entry.path());
    }
    return entries;
  };
  ASSERT_FALSE(entries_of(path_, 0).empty());
  ASSERT_FALSE(entries_of(path_, 1).empty());
  const std::string backup = directory_.File("backup");
  fs::copy(path_, backup, fs::copy_options::recursive);

  const auto replace_region = [&](int region, const std::string& from_database, int from_region) {
    for (const auto& entry : entries_of(path_, region)) fs::remove_all(entry);
    for (const auto& entry : entries_of(from_database, from_region)) {
      std::string name = entry.filename().string();
      name.replace(0, 8, "region-" + std::to_string(region));
      fs::copy(entry, path_ + "/" + name, fs::copy_options::recursive);
    }
  };
  const auto expect_corruption = [&](const char* what) {
    std::unique_ptr<DB> db;
    EXPECT_CODE(Open(TinyOptions(2), &db), kCorruption) << what;
    EXPECT_CODE(Open(TinyOptions(0), &db), kCorruption) << what;
  };
  replace_region(1, other, 1);
  expect_corruption("region 1 of another database");
  replace_region(1, backup, 0);
  expect_corruption("region 0 twice");
  replace_region(0, backup, 1);
  expect_corruption("regions swapped");
  replace_region(0, backup, 0);
  replace_region(1, backup, 1);
  ExpectFilled(TinyOptions(2), 500);
}

TEST_F(DbDamageTest, MissingRegionDirectoryIsCorruption) {
  Fill(TinyOptions(2), 100);
  for (int region : {0, 1}) {
    std::vector<fs::path> moved;
    for (const auto& entry : fs::directory_iterator(path_)) {
      if (entry.path().filename().string().starts_with("region-" + std::to_string(region))) moved.push_back(entry.path());
    }
    ASSERT_FALSE(moved.empty());
    for (const auto& path : moved) fs::rename(path, directory_.File(path.filename().string()));
    for (bool create : {false, true}) {
      Options options = TinyOptions(0);
      options.create_if_missing = create;
      std::unique_ptr<DB> db;
      EXPECT_CODE(Open(options, &db), kCorruption) << "region " << region << ", create_if_missing " << create;
    }
    for (const auto& path : moved) fs::rename(directory_.File(path.filename().string()), path);
  }
  ExpectFilled(TinyOptions(0), 100);
}

// PMDK takes the size of its heap from its header, and does not survive a wrong one.
TEST_F(DbDamageTest, ADamagedHeapSizeIsCorruption) {
  Fill(TinyOptions(1), 500);
  const std::string part = path_ + "/region-0/000000.pmem";
  const std::string original = ReadFileOrDie(part);
  uint64_t size = 0;
  std::memcpy(&size, &original[kPoolHeapSizeOffset], sizeof(size));
  for (const uint64_t wrong : {uint64_t{0}, uint64_t{1}, size - (512 << 10), size - 8, size + 4096, size << 1, ~uint64_t{0}}) {
    SCOPED_TRACE(wrong);
    std::string damaged = original;
    std::memcpy(&damaged[kPoolHeapSizeOffset], &wrong, sizeof(wrong));
    WriteFileOrDie(part, damaged);
    const int code = RunInChild([this] {
      std::unique_ptr<DB> db;
      return static_cast<int>(Open(TinyOptions(1), &db).code());
    });
    EXPECT_EQ(code, static_cast<int>(Status::Code::kCorruption)) << "256 and more: a signal";
  }
  WriteFileOrDie(part, original);
  ExpectFilled(TinyOptions(1), 500);
}

// Nor the logs in its lanes.
TEST_F(DbDamageTest, ADamagedLaneIsCorruption) {
  Fill(TinyOptions(1), 500);
  const std::string part = path_ + "/region-0/000000.pmem";
  const std::string original = ReadFileOrDie(part);
  // The second word of its undo log, where it goes on, and the first word of its entries.
  for (const uint64_t word : {uint64_t{968}, uint64_t{1024}}) {
    for (const uint64_t lane : {0, 1}) {
      SCOPED_TRACE(std::to_string(word) + " of lane " + std::to_string(lane));
      std::string damaged = original;
      const uint64_t wrong = word == 968 ? 0x80000000000 : 0xee763441cedc495a;
      std::memcpy(&damaged[8192 + lane * 3072 + word], &wrong, sizeof(wrong));
      WriteFileOrDie(part, damaged);
      const auto open = [this] {
        std::unique_ptr<DB> db;
        return static_cast<int>(Open(TinyOptions(1), &db).code());
      };
      EXPECT_EQ(RunInChild(open, 10'000), static_cast<int>(Status::Code::kCorruption)) << "256 and more: a signal";
    }
  }
  WriteFileOrDie(part, original);
  ExpectFilled(TinyOptions(1), 500);
}

// PMDK follows the chunk headers of its heap without a look at them; one of no chunks leads nowhere.
TEST_F(DbDamageTest, ADamagedChunkHeaderIsCorruption) {
  Fill(TinyOptions(1), 500);
  const std::string part = path_ + "/region-0/000000.pmem";
  const std::string original = ReadFileOrDie(part);
  uint64_t heap = 0;
  std::memcpy(&heap, &original[kPoolHeapOffset], sizeof(heap));
  const uint64_t first = heap + kHeapHeaderBytes + 64;
  for (const uint64_t wrong : {uint64_t{0}, uint64_t{1}, uint64_t{4}, uint64_t{7} << 32 | 7, uint64_t{1} << 63 | 3}) {
    SCOPED_TRACE(wrong);
    std::string damaged = original;
    std::memcpy(&damaged[first], &wrong, sizeof(wrong));
    WriteFileOrDie(part, damaged);
    const auto open = [this] {
      std::unique_ptr<DB> db;
      return static_cast<int>(Open(TinyOptions(1), &db).code());
    };
    EXPECT_EQ(RunInChild(open, 10'000), static_cast<int>(Status::Code::kCorruption)) << "256 and more: a signal";
  }
  WriteFileOrDie(part, original);
  ExpectFilled(TinyOptions(1), 500);
}

// ---- Newer formats

TEST_F(DbDamageTest, NewerFormatIsNotSupported) {
  Fill(TinyOptions(2), 100);
  const std::string part_list = path_ + "/region-1/PARTS";
  const std::string text = ReadFileOrDie(part_list);
  const std::string title = "braiddb-parts " + std::to_string(kRegionFormatVersion);
  ASSERT_TRUE(text.starts_with(title)) << text;
  WriteFileOrDie(part_list, "braiddb-parts " + std::to_string(kRegionFormatVersion + 1) + text.substr(title.size()));
  std::unique_ptr<DB> db;
  EXPECT_CODE(Open(TinyOptions(2), &db), kNotSupported);
  WriteFileOrDie(part_list, text);

  // The pool's root object, found by its magic.
  const std::string part = path_ + "/region-1/000000.pmem";
  const std::string original = ReadFileOrDie(part);
  std::string newer = original;
  const uint64_t magic = RegionRoot::kMagic;
  const size_t at = newer.find(std::string(reinterpret_cast<const char*>(&magic), sizeof(magic)));
  ASSERT_NE(at, std::string::npos);
  RegionRoot root;
  std::memcpy(&root, &newer[at], sizeof(root));
  ++root.format_version;
  root.checksum = RootChecksum(root);
  std::memcpy(&newer[at], &root, sizeof(root));
  WriteFileOrDie(part, newer);
  EXPECT_CODE(Open(TinyOptions(2), &db), kNotSupported);
  WriteFileOrDie(part, original);
  ExpectFilled(TinyOptions(2), 100);
}

// An older one is refused too, in the part list and in the root.
TEST_F(DbDamageTest, OlderFormatIsNotSupported) {
  Fill(TinyOptions(1), 100);
  const std::string part_list = path_ + "/region-0/PARTS";
  const std::string text = ReadFileOrDie(part_list);
  const std::string title = "braiddb-parts " + std::to_string(kRegionFormatVersion);
  WriteFileOrDie(part_list, "braiddb-parts " + std::to_string(kRegionFormatVersion - 1) + text.substr(title.size()));
  std::unique_ptr<DB> db;
  Status status = Open(TinyOptions(1), &db);
  EXPECT_CODE(status, kNotSupported);
  EXPECT_NE(status.message().find("the BraidDB that wrote it"), std::string_view::npos) << status.ToString();
  WriteFileOrDie(part_list, text);
  const auto add_to_version = [](uint32_t delta) {
    SetPoolsMappedHook([delta](RegionSet* regions) {
      RegionRoot* const root = regions->impl()->region(0)->root();
      root->format_version += delta;
      root->checksum = RootChecksum(*root);
    });
  };
  add_to_version(kOldestRootFormatVersion - 1 - kRootFormatVersion);  // behind the check, for the next open
  EXPECT_OK(Open(TinyOptions(1), &db));
  db.reset();
  SetPoolsMappedHook(nullptr);
  status = Open(TinyOptions(1), &db);
  EXPECT_CODE(status, kNotSupported);
  EXPECT_NE(status.message().find("the BraidDB that wrote it"), std::string_view::npos) << status.ToString();
}

TEST_F(DbDamageTest, AnotherFormatOfTheManifestIsNotSupported) {
  Fill(TinyOptions(1), 100);
  // checksum u64, generation u64, format u32, bytes u32; see FORMAT.md.
  const auto add_to_format = [this](uint32_t delta, uint8_t flag = 0) {
    SetPoolsMappedHook([delta, flag](RegionSet* regions) {
      auto* const object = static_cast<uint8_t*>(regions->Metadata(0, MetadataSlot::kManifest));
      uint64_t header[3];
      std::memcpy(header, object, sizeof(header));
      uint8_t* const slot = object + 64 + header[1] % 2 * header[2];
      uint32_t format_and_bytes[2];
      std::memcpy(format_and_bytes, slot + 16, sizeof(format_and_bytes));
      format_and_bytes[0] += delta;
      std::memcpy(slot + 16, format_and_bytes, sizeof(format_and_bytes));
      slot[79] ^= flag;
      const uint64_t checksum = XXH3_64bits(slot + 8, format_and_bytes[1] - 8);
      std::memcpy(slot, &checksum, sizeof(checksum));
    });
    std::unique_ptr<DB> db;
    Status status = Open(TinyOptions(1), &db);
    SetPoolsMappedHook(nullptr);
    return status;
  };
  for (const uint32_t delta : {2u, static_cast<uint32_t>(-2)}) {  // formats 2 to 4 are read
    const Status status = add_to_format(delta);
    EXPECT_CODE(status, kNotSupported);
    EXPECT_NE(status.message().find("use the version that wrote it"), std::string_view::npos) << status.ToString();
    EXPECT_OK(add_to_format(-delta));
  }
  // Format 4 says that flags have to be understood.
  const Status status = add_to_format(1, 0x80);
  EXPECT_CODE(status, kNotSupported);
  EXPECT_NE(status.message().find("a feature that this version does not know"), std::string_view::npos) << status.ToString();
  EXPECT_OK(add_to_format(static_cast<uint32_t>(-1), 0x80));
  ExpectFilled(TinyOptions(1), 100);
}

// ---- Flipped bits

// Each byte offset of a region's metadata that BraidDB wrote, with what it belongs to; offsets are into the region.
std::vector<TrackedRange> MetadataRanges(const std::string& path) {
  std::vector<TrackedRange> ranges;
  SetPoolsMappedHook([&](RegionSet* regions) { ranges = FindTrackedRanges(*regions); });
  EXPECT_NE(OpenOrFail(TinyOptions(2), path), nullptr);
  SetPoolsMappedHook(nullptr);
  std::erase_if(ranges, [](const TrackedRange& range) { return range.kind == RangeKind::kSegment; });
  return ranges;
}

class DbBitFlipTest : public DbDamageTest {
 protected:
  void FlipBit(uint32_t region, uint64_t offset, int bit) {
    for (const auto& name : RegionFiles(path_)) {  // sorted, so the parts come in the order in which they are mapped
      if (!name.starts_with("region-" + std::to_string(region) + "/") || !name.ends_with(".pmem")) continue;
      const uint64_t size = fs::file_size(path_ + "/" + name);
      if (offset >= size) {
        offset -= size;
        continue;
      }
      std::fstream file(path_ + "/" + name, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(offset));
      const auto flipped = static_cast<char>(file.get() ^ (1 << bit));
      file.seekp(static_cast<std::streamoff>(offset));
      file.put(flipped);
      ASSERT_TRUE(file.good());
      return;
    }
    FAIL() << "no part has offset " << offset;
  }
};

TEST_F(DbBitFlipTest, FlippedBitsInMetadataGiveTheRightDataOrAClearError) {
  Fill(TinyOptions(2), 500);
  const auto ranges = MetadataRanges(path_);
  std::map<std::string, std::string> expected;
  for (int i = 0; i < 500; ++i) expected[NumberedKey(i)] = PatternedValue(i, 100);
  Random random(1);
  int refused = 0;
  const int flips = static_cast<int>(EnvNumber("BRAIDDB_FLIPS", 70));
  const std::string pristine = directory_.File("pristine");
  fs::copy(path_, pristine, fs::copy_options::recursive);
  for (int i = 0; i < flips; ++i) {
    // Kinds in turn, and the beginning of each object more often: the rest of the journal and the MANIFEST is mostly unused.
    std::vector<TrackedRange> candidates;
    for (const auto& range : ranges) {
      if (static_cast<int>(range.kind) == i % static_cast<int>(RangeKind::kCount)) candidates.push_back(range);
    }
    if (candidates.empty()) continue;
    const TrackedRange& range = candidates[random.Uniform(candidates.size())];
    const uint64_t offset =
        range.begin + random.Uniform(std::min<uint64_t>(random.OneIn(2) ? 128 : 4096, range.end - range.begin));
    SCOPED_TRACE("flip " + std::to_string(i) + ": " + NameOf(range.kind) + " + " + std::to_string(offset - range.begin) +
                 " in region " + std::to_string(range.region));
    fs::remove_all(path_);
    fs::copy(pristine, path_, fs::copy_options::recursive);
    FlipBit(range.region, offset, static_cast<int>(random.Uniform(8)));
    constexpr int kRight = 0, kRefused = 1, kSilent = 2, kWrong = 3;
    const int outcome = RunInChild([&] {
      std::unique_ptr<DB> db;
      const Status status = Open(TinyOptions(2), &db);
      if (!status.ok()) return status.message().empty() ? kSilent : kRefused;
      return HoldsExactly(db.get(), expected) ? kRight : kWrong;
    });
    EXPECT_TRUE(outcome == kRight || outcome == kRefused)
        << "outcome " << outcome << " (2: no message, 3: wrong data, 256 + a signal)";
    refused += outcome == kRefused;
  }
  EXPECT_GT(refused, flips / 10);
}

// ---- Permissions

// Runs `body` as a user without privileges; root would see through every permission.
int RunUnprivileged(const std::function<int()>& body) {
  return RunInChild([&] {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) return 99;
    return body();
  });
}

TEST_F(DbDamageTest, MissingPermissionIsAnIOError) {
  Fill(TinyOptions(2), 100);
  const auto try_open = [this] {
    std::unique_ptr<DB> db;
    const Status status = Open(TinyOptions(2), &db);
    return static_cast<int>(status.code()) + (status.ok() || status.message().find(path_) != std::string_view::npos ? 0 : 50);
  };
  constexpr int kIOError = static_cast<int>(Status::Code::kIOError);
  // Nothing below is the unprivileged user's; the directory itself may be entered or not.
  fs::permissions(directory_.path(), fs::perms(0755));
  for (const auto& entry : fs::recursive_directory_iterator(path_)) {
    fs::permissions(entry.path(), entry.is_directory() ? fs::perms(0555) : fs::perms(0444));
  }
  fs::permissions(path_, fs::perms(0555));
  EXPECT_EQ(RunUnprivileged(try_open), kIOError) << "files that may only be read";
  for (const auto& file : ListFiles(path_)) fs::permissions(path_ + "/" + file, fs::perms(0000));
  EXPECT_EQ(RunUnprivileged(try_open), kIOError) << "files that may not be touched";
  fs::permissions(path_, fs::perms(0000));
  EXPECT_EQ(RunUnprivileged(try_open), kIOError) << "directory that may not be entered";

  const auto try_create = [this] {
    std::unique_ptr<DB> db;
    return static_cast<int>(DB::Open(TinyOptions(2), directory_.File("fresh"), &db).code());
  };
  EXPECT_EQ(RunUnprivileged(try_create), kIOError) << "no new directory allowed";
  const auto try_destroy = [this] { return static_cast<int>(DB::Destroy(TinyOptions(2), path_).code()); };
  EXPECT_EQ(RunUnprivileged(try_destroy), kIOError);

  fs::permissions(path_, fs::perms(0755));
  for (const auto& entry : fs::recursive_directory_iterator(path_)) {
    fs::permissions(entry.path(), entry.is_directory() ? fs::perms(0755) : fs::perms(0644));
  }
  ExpectFilled(TinyOptions(2), 100);
}

}  // namespace
}  // namespace braiddb::test
