// Options as text, and the options file that each open leaves.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "braiddb/options_file.h"
#include "db/options_text.h"
#include "tests/support/db_test_util.h"

namespace braiddb::test {
namespace {

// Every field has a value that is not its default.
Options UnusualOptions() {
  Options options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.error_if_exists = true;
  options.comparator = ReverseBytewiseComparator();
  options.prefix_extractor = NewCappedPrefixTransform(7);
  options.l1 = L1Kind::kNvTree;
  options.nv_leaf_size = 512;
  options.regions = 3;
  options.list_kind = ListKind::kOblivious;
  options.region_paths = {"/a:b", "/c#d", "/e\\f"};
  options.region_nodes = {0, -1, 1023};
  options.max_region_size = 1ull << 40;
  options.initial_region_size = 1ull << 30;
  options.segment_size = 1 << 20;
  options.persist_mode = PersistMode::kPage;
  options.emulation = {1, 2, 3, true};
  options.dram_budget = 1ull << 33;
  options.memtable = MemtableKind::kSkipList;
  options.memtable_size = 123456;
  options.memtable_max_entries = 4321;
  options.max_immutable_memtables = 7;
  options.checkpoint_tables = 8;
  options.index_unified_logging = false;
  options.l0_slowdown_writes_trigger = 99;
  options.l1_index_size = 11;
  options.lookup_cache_size = 12;
  options.filter_bits_per_key = 13;
  options.compaction_threads = 14;
  options.l0_compaction_trigger = 15;
  options.max_space_amplification = 1.3;
  options.space_slack = 16;
  options.kept_free_space = 19;
  options.bound_space = true;
  options.no_space_timeout_ms = 18;
  options.recovery_threads = 17;
  options.disable_auto_compaction = true;
  options.verify_at_open = true;
  options.histograms = true;
  options.count_pm_writes = true;
  options.refresh_live_readers = true;
  options.foreign_options = {{"max_open_files", "10"}, {"wal_dir", "a b:c\nd # e"}};
  options.foreign_family_options = {{"compression", "kNoCompression"}};
  return options;
}

TEST(OptionsTextTest, WhatIsWrittenIsRead) {
  const Options options = UnusualOptions();
  const std::string text = OptionsToText(options);
  LoadedOptions loaded;
  ASSERT_OK(OptionsFromText(text, &loaded));
  EXPECT_EQ(OptionsToText(loaded.options), text);
  EXPECT_EQ(loaded.comparator, "rocksdb.ReverseBytewiseComparator");
  EXPECT_EQ(loaded.options.comparator, ReverseBytewiseComparator());
  EXPECT_EQ(loaded.prefix_extractor, "rocksdb.CappedPrefix.7");
  EXPECT_EQ(loaded.options.region_paths, options.region_paths);
  EXPECT_EQ(loaded.options.region_nodes, options.region_nodes);
  EXPECT_EQ(loaded.options.foreign_options, options.foreign_options);
  EXPECT_EQ(loaded.options.emulation.remote_latency_ns, 3u);
  EXPECT_EQ(loaded.options.max_space_amplification, 1.3);
  // Not one field was left out of the text: each line differs from that of the defaults.
  const std::string defaults = OptionsToText(Options());
  size_t same = 0;
  Status status = ForEachOptionLine(text, [&](const OptionLine& line) {
    if (!line.name.empty() && defaults.find("\n  " + line.name + "=" + line.value + "\n") != std::string::npos) ++same;
    return Status::OK();
  });
  ASSERT_OK(status);
  EXPECT_EQ(same, 1u) << text;  // options_file_version
  // A field that is added to Options belongs into the text and into this test.
  const auto lines = std::count(defaults.begin(), defaults.end(), '=');
  EXPECT_EQ(lines, 1 + 3 + 2 + 38) << defaults;
}

TEST(OptionsTextTest, WhatIsNotBuiltInIsNamed) {
  struct Backwards : Comparator {
    int Compare(Slice a, Slice b) const override { return b.compare(a); }
    const char* Name() const override { return "mine: #1"; }
  } backwards;
  struct Ours : SliceTransform {
    const char* Name() const override { return "ours"; }
    bool InDomain(Slice) const override { return true; }
    Slice Transform(Slice key) const override { return key; }
  };
  Options options;
  options.comparator = &backwards;
  options.prefix_extractor = std::make_shared<Ours>();
  LoadedOptions loaded;
  ASSERT_OK(OptionsFromText(OptionsToText(options), &loaded));
  EXPECT_EQ(loaded.comparator, "mine: #1");
  EXPECT_EQ(loaded.options.comparator, BytewiseComparator());
  EXPECT_EQ(loaded.prefix_extractor, "ours");
  EXPECT_EQ(loaded.options.prefix_extractor, nullptr);
}

TEST(OptionsTextTest, EachFamilyHasSectionsOfItsOwn) {
  ColumnFamilyOptions tree, odd;
  tree.l1 = L1Kind::kNvTree;
  tree.nv_leaf_size = 512;
  tree.comparator = ReverseBytewiseComparator();
  tree.foreign_options = {{"compression", "kNoCompression"}};
  const std::vector<ColumnFamilyDescriptor> families{{kDefaultColumnFamilyName, tree}, {"tree", tree}, {"a \"b\": # c", odd}};
  const std::string text = OptionsToText(Options(), families);
  LoadedOptions loaded;
  ASSERT_OK(OptionsFromText(text, &loaded));
  EXPECT_EQ(loaded.options.l1, Options().l1) << "the default family's are those of the database";
  ASSERT_EQ(loaded.families.size(), 2u);
  EXPECT_EQ(loaded.families[0].name, "tree");
  EXPECT_EQ(loaded.families[0].options.l1, L1Kind::kNvTree);
  EXPECT_EQ(loaded.families[0].options.nv_leaf_size, 512u);
  EXPECT_EQ(loaded.families[0].options.comparator, ReverseBytewiseComparator());
  EXPECT_EQ(loaded.families[0].comparator, "rocksdb.ReverseBytewiseComparator");
  EXPECT_EQ(loaded.families[0].options.foreign_options, tree.foreign_options);
  EXPECT_EQ(loaded.families[1].name, "a \"b\": # c");
  EXPECT_EQ(loaded.families[1].options.l1, odd.l1);
  EXPECT_EQ(OptionsToText(loaded.options, loaded.Descriptors()), text);
}

TEST(OptionsTextTest, BlanksCommentsAndRocksDBsOwnFiles) {
  const std::string text =
      "# a comment\n"
      "[Version]\r\n"
      "  rocksdb_version=7.8.3\n"
      "[DBOptions]\n"
      "  create_if_missing = true   # why\n"
      "\tmax_open_files=-1\n"
      "[ CFOptions \"default\" ]\n"
      "comparator=leveldb.BytewiseComparator\n"
      "prefix_extractor=rocksdb.FixedPrefix.4\n"
      "[TableOptions/BlockBasedTable \"default\"]\n"
      "  block_size=4096\n"
      "  list={a;b}\n";
  LoadedOptions loaded;
  ASSERT_OK(OptionsFromText(text, &loaded));
  EXPECT_TRUE(loaded.options.create_if_missing);
  EXPECT_EQ(loaded.options.foreign_options["max_open_files"], "-1");
  EXPECT_STREQ(loaded.options.prefix_extractor->Name(), "rocksdb.FixedPrefix.4");
  EXPECT_EQ(loaded.options.comparator, BytewiseComparator());
}

TEST(OptionsTextTest, WhatIsWrongIsRefusedWithItsLine) {
  const std::string good = OptionsToText(Options());
  const struct {
    std::string text;
    const char* message;
    bool can_be_ignored;
  } kCases[] = {
      {"", "no section", false},
      {"[DBOptions]\n", "no section", false},
      {"a=b\n" + good, "line 1 of the options: an option before", false},
      {good + "nonsense\n", "neither", false},
      {good + "[DBOptions\n", "without ]", false},
      {good + "[CFOptions \"default]\n", "quotation mark", false},
      {good + "=5\n", "without a name", false},
      {good + "regions=many\n", "regions cannot be 'many'", false},
      {good + "regions=-1\n", "regions cannot be '-1'", false},
      {good + "regions=4294967296\n", "regions cannot be", false},
      {good + "l1=btree\n", "l1 cannot be 'btree'", false},
      {good + "verify_at_open=yes\n", "verify_at_open cannot be 'yes'", false},
      {good + "no_such=1\n", "no option no_such", true},
      {good + "[NoSuch]\na=b\n", "no section NoSuch", true},
      {good + "[CFOptions]\ncomparator=x\n", "no section CFOptions of", true},
      {good + "[TableOptions/BraidDB \"other\"]\nl1=nv_tree\n", "no section TableOptions/BraidDB of other", true},
      {good + "[CFOptions \"other\"]\n[TableOptions/BraidDB \"other\"]\nregions=1\n", "no option regions", true},
      {good + "[CFOptions \"other\"]\n[TableOptions/BraidDB \"other\"]\nl1=x\n", "l1 cannot be 'x'", false},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.message);
    LoadedOptions loaded;
    loaded.comparator = "as before";
    const Status status = OptionsFromText(test.text, &loaded);
    EXPECT_TRUE(status.IsInvalidArgument());
    EXPECT_NE(status.ToString().find(test.message), std::string::npos) << status.ToString();
    EXPECT_EQ(loaded.comparator, "as before");
    EXPECT_EQ(OptionsFromText(test.text, &loaded, true).ok(), test.can_be_ignored);
    EXPECT_EQ(loaded.comparator, test.can_be_ignored ? "leveldb.BytewiseComparator" : "as before");
  }
}

// ---- The file

class OptionsFileTest : public testing::Test {
 protected:
  std::unique_ptr<DB> Open(Options options) {
    options.create_if_missing = true;
    return OpenOrFail(options, path_);
  }
  ino_t Inode() const {
    struct stat found;
    EXPECT_EQ(stat((path_ + "/OPTIONS").c_str(), &found), 0);
    return found.st_ino;
  }

  TestDirectory directory_;
  const std::string path_ = directory_.File("db");
  LoadedOptions loaded_;
};

TEST_F(OptionsFileTest, EachOpenLeavesWhatItWasGiven) {
  EXPECT_TRUE(LoadLatestOptions(path_, &loaded_).IsNotFound());
  Options options = TinyOptions(2);
  options.regions = 0;
  options.region_paths = {directory_.File("one"), directory_.File("two"), directory_.File("three")};
  options.prefix_extractor = NewFixedPrefixTransform(3);
  Open(options).reset();
  ASSERT_OK(LoadLatestOptions(path_, &loaded_));
  options.create_if_missing = true;
  options.regions = 3;  // as the database has them
  Options expected = options;
  expected.region_paths.clear();  // they are of this database alone
  EXPECT_EQ(OptionsToText(loaded_.options), OptionsToText(expected));
  const ino_t first = Inode();
  Open(options).reset();
  EXPECT_EQ(Inode(), first);  // nothing new, nothing written
  options.lookup_cache_size = 0;
  std::unique_ptr<DB> db = Open(options);
  ASSERT_OK(LoadLatestOptions(path_, &loaded_));
  EXPECT_EQ(loaded_.options.lookup_cache_size, 0u);
  db.reset();
  // What was loaded opens the database.
  db = OpenOrFail(loaded_.options, path_);
  ASSERT_NE(db, nullptr);
  db.reset();
  EXPECT_FALSE(std::filesystem::exists(path_ + "/OPTIONS.tmp"));
  ASSERT_OK(DB::Destroy(options, path_));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(OptionsFileTest, AnOpenThatFailsLeavesTheFileAlone) {
  Options options = TinyOptions(1);
  Open(options).reset();
  options.comparator = ReverseBytewiseComparator();
  std::unique_ptr<DB> db;
  const Status status = DB::Open(options, path_, &db);
  EXPECT_EQ(status.ToString(),
            "Invalid argument: rocksdb.ReverseBytewiseComparator: does not match existing comparator leveldb.BytewiseComparator");
  ASSERT_OK(LoadLatestOptions(path_, &loaded_));
  EXPECT_EQ(loaded_.comparator, "leveldb.BytewiseComparator");
}

TEST_F(OptionsFileTest, WhatCannotBeWrittenFailsNothing) {
  Options options = TinyOptions(1);
  Open(options).reset();
  std::filesystem::remove(path_ + "/OPTIONS");
  std::filesystem::create_directories(path_ + "/OPTIONS/in the way");
  std::string log;
  options.info_log = [&](std::string_view line) { log.append(line).append("\n"); };
  std::unique_ptr<DB> db = Open(options);
  ASSERT_NE(db, nullptr);
  ASSERT_OK(db->Put({}, "k", "v"));
  db.reset();
  EXPECT_NE(log.find("the options file is not up to date: "), std::string::npos) << log;
  std::filesystem::remove_all(path_ + "/OPTIONS");
  std::ofstream(path_ + "/OPTIONS") << "[damaged";
  EXPECT_TRUE(LoadLatestOptions(path_, &loaded_).IsInvalidArgument());
  Open(options).reset();  // makes it anew
  ASSERT_OK(LoadLatestOptions(path_, &loaded_));
}

// A name that the file cannot have would make the whole file unreadable.
TEST_F(OptionsFileTest, ForeignNamesAndValuesComeBackOrAreRefused) {
  for (const std::string name : {"", "a=b", "a b", "a\nb", "a#b", "[a", " a", "a:b", "a\\b", "comparator", "prefix_extractor"}) {
    Options options = TinyOptions(1);
    std::unique_ptr<DB> db;
    options.foreign_family_options = {{name, "value"}};
    EXPECT_TRUE(DB::Open(options, path_, &db).IsInvalidArgument()) << name;
    options.foreign_family_options.clear();
    db = Open(options);
    ChangedOptions changed;
    changed.foreign_family_options = {{name, "value"}};
    EXPECT_TRUE(db->SetOptions(db->DefaultColumnFamily(), changed).IsInvalidArgument()) << name;
    ColumnFamilyOptions family;
    family.foreign_options = {{name, "value"}};
    std::unique_ptr<ColumnFamilyHandle> handle;
    EXPECT_TRUE(db->CreateColumnFamily(family, "family", &handle).IsInvalidArgument()) << name;
    ASSERT_OK(LoadLatestOptions(path_, &loaded_));
  }
  Options options = TinyOptions(1);
  for (const std::string value : {"", " ", "  ", " both ends ", "\t", "\ta\t", "a \\", "\\", "\\s", "#", "a:b\n"})
    options.foreign_options["of" + std::to_string(options.foreign_options.size())] = value;
  options.foreign_family_options = options.foreign_options;
  Open(options).reset();
  ASSERT_OK(LoadLatestOptions(path_, &loaded_));
  EXPECT_EQ(loaded_.options.foreign_options, options.foreign_options);
  EXPECT_EQ(loaded_.options.foreign_family_options, options.foreign_family_options);
}

TEST_F(OptionsFileTest, FamiliesAreInItAsTheyComeAndGo) {
  const auto names = [&] {
    std::string all;
    EXPECT_OK(LoadLatestOptions(path_, &loaded_));
    for (const auto& descriptor : loaded_.Descriptors()) all += descriptor.name + " ";
    return all;
  };
  std::vector<std::unique_ptr<ColumnFamilyHandle>> handles(2);
  {
    auto db = Open(Options());
    EXPECT_EQ(names(), "default ");
    ColumnFamilyOptions tree;
    tree.l1 = L1Kind::kNvTree;
    tree.comparator = ReverseBytewiseComparator();
    ASSERT_OK(db->CreateColumnFamily(tree, "tree", &handles[0]));
    ASSERT_OK(db->CreateColumnFamily({}, "other", &handles[1]));
    EXPECT_EQ(names(), "default tree other ");
    ASSERT_OK(db->Put({}, handles[0].get(), "key", "value"));
    ASSERT_OK(db->DropColumnFamily(handles[1].get()));
    EXPECT_EQ(names(), "default tree ");
    handles.clear();
  }
  // What was loaded opens the database.
  std::unique_ptr<DB> db;
  ASSERT_OK(DB::Open(loaded_.options, path_, loaded_.Descriptors(), &handles, &db));
  std::string value;
  ASSERT_OK(db->Get({}, handles[1].get(), "key", &value));
  EXPECT_EQ(value, "value");
  EXPECT_EQ(handles[1]->GetOptions().l1, L1Kind::kNvTree);
  EXPECT_EQ(names(), "default tree ");
  handles.clear();
}

}  // namespace
}  // namespace braiddb::test
