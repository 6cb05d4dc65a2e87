// Column families of the C API: opening with them, their functions, batches; comparators and last levels of their own.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "tests/capi/c_fixture.h"

namespace braiddb::test {
namespace {

int CompareReversed(void*, const char* a, size_t a_length, const char* b, size_t b_length) {
  return std::string_view(b, b_length).compare(std::string_view(a, a_length));
}
const char* NameReversed(void*) { return "test.Reversed"; }

// A database with the families "default", "list", and "tree", which has a comparator of the program's own and an NV-Tree.
class CApiFamilyTest : public CApiTest {
 protected:
  using Handle = braiddb_column_family_handle_t;

  CApiFamilyTest() {
    braiddb_options_set_comparator(tree_options_, reversed_);
    braiddb_options_set_l1_kind(tree_options_, braiddb_l1_nv_tree);
    braiddb_options_set_create_missing_column_families(options_, 1);
  }
  ~CApiFamilyTest() override {
    DestroyHandles();
    Close();
    braiddb_options_destroy(tree_options_);
    braiddb_comparator_destroy(reversed_);
  }
  void SetUp() override { OpenFamilies(); }

  const char* const names_[3] = {"default", "list", "tree"};
  void OpenFamilies() {
    const braiddb_options_t* const of_families[] = {options_, options_, tree_options_};
    db_ = braiddb_open_column_families(options_, path().c_str(), 3, names_, of_families, handles_, error_.pointer());
    ASSERT_EQ("", error_.Take());
  }
  void DestroyHandles() {
    for (Handle*& handle : handles_) {
      if (handle != nullptr) braiddb_column_family_handle_destroy(handle);
      handle = nullptr;
    }
  }
  void CloseFamilies() {
    DestroyHandles();
    Close();
  }
  Handle* list() { return handles_[1]; }
  Handle* tree() { return handles_[2]; }

  void PutIn(Handle* family, std::string_view key, std::string_view value) {
    braiddb_put_cf(db_, write_, family, key.data(), key.size(), value.data(), value.size(), error_.pointer());
    ASSERT_EQ("", error_.Take());
  }
  std::string Text(char* value, size_t length) {
    const std::string error = error_.Take();
    std::string text = !error.empty() ? error : value == nullptr ? "-" : std::string(value, length);
    braiddb_free(value);
    return text;
  }
  std::string GetFrom(Handle* family, std::string_view key) {
    size_t length = 0;
    char* const value = braiddb_get_cf(db_, read_, family, key.data(), key.size(), &length, error_.pointer());
    return Text(value, length);
  }
  // Takes the iterator.
  std::string ScanAll(braiddb_iterator_t* iterator) {
    std::string all;
    for (braiddb_iter_seek_to_first(iterator); braiddb_iter_valid(iterator); braiddb_iter_next(iterator)) Append(iterator, &all);
    braiddb_iter_get_error(iterator, error_.pointer());
    braiddb_iter_destroy(iterator);
    return all + error_.Take();
  }
  std::string ScanOf(Handle* family) { return ScanAll(braiddb_create_iterator_cf(db_, read_, family)); }
  std::vector<std::string> List() {
    size_t count = 0;
    char** const listed = braiddb_list_column_families(options_, path().c_str(), &count, error_.pointer());
    EXPECT_EQ("", error_.Take());
    std::vector<std::string> names(listed, listed + count);
    braiddb_list_column_families_destroy(listed, count);
    return names;
  }

  braiddb_comparator_t* const reversed_ = braiddb_comparator_create(
      nullptr, [](void*) {}, CompareReversed, NameReversed);
  braiddb_options_t* const tree_options_ = braiddb_options_create();
  Handle* handles_[3] = {};
};

TEST_F(CApiFamilyTest, EachHasItsKeysItsOrderAndItsLastLevel) {
  PutIn(handles_[0], "k", "default");
  for (const char* key : {"a", "c", "b"}) PutIn(list(), key, "l");
  for (const char* key : {"a", "c", "b"}) PutIn(tree(), key, "t");
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ("default", Get("k"));
    EXPECT_EQ("default", GetFrom(handles_[0], "k"));
    EXPECT_EQ("-", GetFrom(list(), "k"));
    EXPECT_EQ("a=l b=l c=l ", ScanOf(list()));
    EXPECT_EQ("c=t b=t a=t ", ScanOf(tree()));
    size_t length = 0;
    char* const name = braiddb_column_family_handle_get_name(tree(), &length);
    EXPECT_EQ("tree", std::string(name, length));
    braiddb_free(name);
    EXPECT_EQ(0u, braiddb_column_family_handle_get_id(handles_[0]));
    EXPECT_NE(braiddb_column_family_handle_get_id(list()), braiddb_column_family_handle_get_id(tree()));
    char* const level = braiddb_property_value_cf(db_, tree(), "braiddb.l1");
    EXPECT_EQ(0u, std::string(level).find("NV-Tree"));
    braiddb_free(level);
    uint64_t keys = 0;
    EXPECT_EQ(0, braiddb_property_int_cf(db_, tree(), "rocksdb.estimate-num-keys", &keys));
    EXPECT_EQ(3u, keys);
    CloseFamilies();
    EXPECT_EQ((std::vector<std::string>{"default", "list", "tree"}), List());
    OpenFamilies();
  }
}

TEST_F(CApiFamilyTest, ErrorsHaveTheTextsThatProgramsKnow) {
  EXPECT_EQ(nullptr, braiddb_create_column_family(db_, options_, "list", error_.pointer()));
  EXPECT_EQ(0u, error_.Take().find("Invalid argument: Column family already exists"));
  braiddb_drop_column_family(db_, handles_[0], error_.pointer());
  EXPECT_EQ("Invalid argument: Can't drop default column family", error_.Take());
  CloseFamilies();
  braiddb_options_set_create_missing_column_families(options_, 0);
  const braiddb_options_t* const options[] = {options_, options_, tree_options_, options_};
  Handle* handles[4] = {};
  const auto try_open = [&](std::vector<const char*> names) {
    db_ = braiddb_open_column_families(options_, path().c_str(), static_cast<int>(names.size()), names.data(), options, handles,
                                       error_.pointer());
    EXPECT_EQ(nullptr, db_);
    return error_.Take();
  };
  EXPECT_EQ(0u, try_open({"default", "list", "tree", "more"}).find("Invalid argument: Column family not found: more"));
  EXPECT_NE(std::string::npos, try_open({"default", "list"}).find("Column families not opened: tree"));
  EXPECT_EQ("Invalid argument: Default column family not specified", try_open({"list", "more"}));
  EXPECT_EQ(0u, try_open({"default", "tree", "list"}).find("Invalid argument: "));  // options of the wrong ones
  db_ = braiddb_open(options_, path().c_str(), error_.pointer());
  EXPECT_EQ(nullptr, db_);
  EXPECT_NE(std::string::npos, error_.Take().find("Column families not opened: list, tree"));
  size_t count = 7;
  EXPECT_EQ(nullptr, braiddb_list_column_families(options_, directory_.Sub("nothing").c_str(), &count, error_.pointer()));
  EXPECT_EQ(0u, error_.Take().find("IO error: "));
  EXPECT_EQ(0u, count);
}

// A program must not take a database that it may not read for a missing one, and make another.
TEST_F(CApiFamilyTest, ADirectoryThatMayNotBeReadIsNoMissingOne) {
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(99);
    if (geteuid() != 65534 && chmod(path().c_str(), 0) != 0) _exit(98);
    size_t count = 7;
    char* error = nullptr;
    char** const names = braiddb_list_column_families(options_, path().c_str(), &count, &error);
    const bool says_why = error != nullptr && std::string_view(error).ends_with("CURRENT: Permission denied") &&
                          std::strstr(error, "No such file") == nullptr;
    _exit(names == nullptr && says_why ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(chmod(path().c_str(), 0700), 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(CApiFamilyTest, WithoutAHandleThereIsAnErrorAndNothingHappens) {
  braiddb_put_cf(db_, write_, nullptr, "k", 1, "v", 1, error_.pointer());
  EXPECT_EQ(0u, error_.Take().find("Invalid argument: "));
  EXPECT_EQ(0u, GetFrom(nullptr, "k").find("Invalid argument: "));
  EXPECT_EQ(0u, ScanOf(nullptr).find("Invalid argument: "));
  braiddb_writebatch_t* const batch = braiddb_writebatch_create();
  braiddb_writebatch_put(batch, "k", 1, "v", 1);
  braiddb_writebatch_put_cf(batch, nullptr, "k", 1, "v", 1);
  braiddb_write(db_, write_, batch, error_.pointer());
  EXPECT_EQ(0u, error_.Take().find("Invalid argument: "));
  EXPECT_EQ(std::nullopt, Get("k"));
  braiddb_writebatch_destroy(batch);
}

TEST_F(CApiFamilyTest, CreatedAndDroppedOnes) {
  Handle* const made = braiddb_create_column_family(db_, tree_options_, "made", error_.pointer());
  ASSERT_EQ("", error_.Take());
  PutIn(made, "a", "1");
  PutIn(made, "b", "2");
  braiddb_drop_column_family(db_, made, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ("b=2 a=1 ", ScanOf(made));
  braiddb_put_cf(db_, write_, made, "c", 1, "3", 1, error_.pointer());
  EXPECT_EQ(0u, error_.Take().find("Invalid argument: "));
  braiddb_column_family_handle_destroy(made);
  CloseFamilies();
  EXPECT_EQ((std::vector<std::string>{"default", "list", "tree"}), List());
}

TEST_F(CApiFamilyTest, SeveralAreCreatedUpToTheFirstThatIsThere) {
  const char* const names[] = {"one", "two", "list", "three"};
  size_t created = 0;
  Handle** const handles = braiddb_create_column_families(db_, options_, 4, names, &created, error_.pointer());
  EXPECT_EQ(0u, error_.Take().find("Invalid argument: Column family already exists"));
  ASSERT_EQ(2u, created);
  PutIn(handles[1], "k", "two");
  EXPECT_EQ("two", GetFrom(handles[1], "k"));
  for (size_t i = 0; i < created; ++i) braiddb_column_family_handle_destroy(handles[i]);
  braiddb_create_column_families_destroy(handles);
  Handle* const of_default = braiddb_get_default_column_family_handle(db_);
  PutIn(of_default, "k", "v");
  EXPECT_EQ("v", Get("k"));
  CloseFamilies();
  braiddb_column_family_handle_destroy(of_default);  // this one may be late
  EXPECT_EQ((std::vector<std::string>{"default", "list", "tree", "one", "two"}), List());
}

TEST_F(CApiFamilyTest, UpdatesOfABatchWithTheirFamilies) {
  braiddb_writebatch_t* const batch = braiddb_writebatch_create();
  braiddb_writebatch_put(batch, "a", 1, "1", 1);
  braiddb_writebatch_put_cf(batch, tree(), "b", 1, "2", 1);
  braiddb_writebatch_delete_cf(batch, list(), "c", 1);
  std::string seen;
  braiddb_writebatch_iterate_cf(
      batch, &seen,
      [](void* to, uint32_t family, const char* key, size_t, const char* value, size_t) {
        static_cast<std::string*>(to)->append(std::to_string(family)).append({*key, '=', *value, ' '});
      },
      [](void* to, uint32_t family, const char* key, size_t) {
        static_cast<std::string*>(to)->append(std::to_string(family)).append({*key, ' '});
      });
  EXPECT_EQ("0a=1 2b=2 1c ", seen);
  braiddb_writebatch_destroy(batch);
}

TEST_F(CApiFamilyTest, UpdatesOfMissingFamiliesAreSkippedIfTheOptionsSaySo) {
  Handle* const dropped = braiddb_create_column_family(db_, options_, "dropped", error_.pointer());
  ASSERT_EQ("", error_.Take());
  braiddb_writebatch_t* const batch = braiddb_writebatch_create();
  braiddb_writebatch_put_cf(batch, dropped, "x", 1, "1", 1);
  braiddb_writebatch_put(batch, "a", 1, "1", 1);
  braiddb_writebatch_delete_range_cf(batch, dropped, "x", 1, "y", 1);
  braiddb_writebatch_put_cf(batch, list(), "b", 1, "2", 1);
  braiddb_drop_column_family(db_, dropped, error_.pointer());
  ASSERT_EQ("", error_.Take());
  braiddb_write(db_, write_, batch, error_.pointer());
  EXPECT_TRUE(error_.Take().starts_with("Invalid argument: "));
  EXPECT_EQ("-", GetFrom(list(), "b"));
  braiddb_writeoptions_set_ignore_missing_column_families(write_, 1);
  braiddb_write(db_, write_, batch, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ("1", GetFrom(handles_[0], "a"));
  EXPECT_EQ("2", GetFrom(list(), "b"));
  braiddb_put_cf(db_, write_, dropped, "x", 1, "1", 1, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ("-", GetFrom(dropped, "x"));
  braiddb_writebatch_destroy(batch);
  braiddb_column_family_handle_destroy(dropped);
}

// Whether operands can be applied is known without a handle of every family.
TEST_F(CApiFamilyTest, AMergeCostsNoMoreBesideManyFamilies) {
  braiddb_options_t* const merging = braiddb_options_create();
  braiddb_options_set_uint64add_merge_operator(merging);
  std::vector<Handle*> families;
  for (int i = 0; i < 300; ++i) {
    families.push_back(braiddb_create_column_family(db_, merging, std::to_string(i).c_str(), error_.pointer()));
    ASSERT_EQ("", error_.Take());
  }
  const auto seconds_of = [&](bool merges) {
    std::vector<double> times;
    for (int i = 0; i < 301; ++i) {
      braiddb_writebatch_t* const batch = braiddb_writebatch_create();
      (merges ? braiddb_writebatch_merge_cf : braiddb_writebatch_put_cf)(batch, families[150], "k", 1, "01234567", 8);
      const auto start = std::chrono::steady_clock::now();
      braiddb_write(db_, write_, batch, error_.pointer());
      times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      braiddb_writebatch_destroy(batch);
      EXPECT_EQ("", error_.Take());
    }
    std::nth_element(times.begin(), times.begin() + 150, times.end());
    return times[150];
  };
  EXPECT_LT(seconds_of(true), 3 * seconds_of(false));
  for (Handle* const family : families) braiddb_column_family_handle_destroy(family);
  braiddb_options_destroy(merging);
}

TEST_F(CApiFamilyTest, ReadsOfSeveralFamilies) {
  PutIn(list(), "k", "l");
  PutIn(tree(), "k", "t");
  const Handle* const families[] = {handles_[0], list(), tree(), nullptr};
  const char* const keys[] = {"k", "k", "k", "k"};
  const size_t lengths[] = {1, 1, 1, 1};
  char* values[4];
  size_t value_lengths[4];
  char* errors[4];
  braiddb_multi_get_cf(db_, read_, families, 4, keys, lengths, values, value_lengths, errors);
  EXPECT_EQ(nullptr, values[0]);
  EXPECT_EQ("l", std::string(values[1], value_lengths[1]));
  EXPECT_EQ("t", std::string(values[2], value_lengths[2]));
  EXPECT_EQ(nullptr, values[3]);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(nullptr, errors[i]);
  EXPECT_NE(nullptr, errors[3]);
  for (char* const value : values) braiddb_free(value);
  braiddb_free(errors[3]);

  braiddb_pinnableslice_t* pinned[2];
  const char* const two[] = {"k", "missing"};
  const size_t two_lengths[] = {1, 7};
  braiddb_batched_multi_get_cf(db_, read_, tree(), 2, two, two_lengths, pinned, errors, false);
  size_t length = 0;
  ASSERT_NE(nullptr, pinned[0]);
  EXPECT_EQ('t', *braiddb_pinnableslice_value(pinned[0], &length));
  EXPECT_EQ(nullptr, pinned[1]);
  braiddb_pinnableslice_destroy(pinned[0]);

  Handle* some[] = {tree(), list()};
  braiddb_iterator_t* iterators[2];
  braiddb_create_iterators(db_, read_, some, iterators, 2, error_.pointer());
  PutIn(list(), "later", "l");
  EXPECT_EQ("k=t ", ScanAll(iterators[0]));
  EXPECT_EQ("k=l ", ScanAll(iterators[1]));

  EXPECT_EQ(1, braiddb_key_may_exist_cf(db_, read_, tree(), "k", 1, nullptr, nullptr, nullptr, 0, nullptr));
  EXPECT_EQ(0, braiddb_key_may_exist_cf(db_, read_, tree(), "later", 5, nullptr, nullptr, nullptr, 0, nullptr));
  const char* start = "z";
  const char* limit = "a";
  const size_t one = 1;
  uint64_t size = 0;
  braiddb_approximate_sizes_cf(db_, tree(), 1, &start, &one, &limit, &one, &size, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ(2u, size) << "in the order of the family";
  braiddb_column_family_metadata_t* const metadata = braiddb_get_column_family_metadata_cf(db_, list());
  EXPECT_EQ(1u, braiddb_column_family_metadata_get_file_count(metadata));
  braiddb_column_family_metadata_destroy(metadata);
}

// Against maps: puts, deletions and ranges of all families in batches, with save points.
TEST_F(CApiFamilyTest, BatchesAndRangesAgainstMaps) {
  struct Backwards {
    bool operator()(const std::string& a, const std::string& b) const { return a > b; }
  };
  std::map<std::string, std::string> of_default, of_list;
  std::map<std::string, std::string, Backwards> of_tree;
  uint32_t seed = 7;
  const auto draw = [&seed](uint32_t below) { return (seed = seed * 1664525 + 1013904223) / 65536 % below; };
  const auto add = [&](braiddb_writebatch_t* batch, Handle* family, auto* map) {
    std::string key(1, static_cast<char>('a' + draw(26)));
    std::string limit(1, static_cast<char>('a' + draw(26)));
    const std::string value = std::to_string(draw(1000));
    if (draw(5) == 0) {
      if (map->key_comp()(limit, key)) std::swap(key, limit);
      braiddb_writebatch_delete_range_cf(batch, family, key.data(), 1, limit.data(), 1);
      map->erase(map->lower_bound(key), map->lower_bound(limit));
    } else if (draw(4) == 0) {
      braiddb_writebatch_delete_cf(batch, family, key.data(), 1);
      map->erase(key);
    } else {
      braiddb_writebatch_put_cf(batch, family, key.data(), 1, value.data(), value.size());
      (*map)[key] = value;
    }
  };
  const auto text = [](const auto& map) {
    std::string all;
    for (const auto& [key, value] : map) all.append(key).append("=").append(value).append(" ");
    return all;
  };
  for (int round = 0; round < 300; ++round) {
    braiddb_writebatch_t* const batch = braiddb_writebatch_create();
    for (int i = 0; i < 8; ++i) {
      if (i == 4) {
        auto taken_back = of_tree;
        braiddb_writebatch_set_save_point(batch);
        add(batch, tree(), &taken_back);
        braiddb_writebatch_rollback_to_save_point(batch, error_.pointer());
      }
      switch (draw(3)) {
        case 0:
          add(batch, handles_[0], &of_default);
          break;
        case 1:
          add(batch, list(), &of_list);
          break;
        default:
          add(batch, tree(), &of_tree);
      }
    }
    braiddb_write(db_, write_, batch, error_.pointer());
    ASSERT_EQ("", error_.Take());
    braiddb_writebatch_destroy(batch);
    if (round % 50 == 0) braiddb_compact_range_cf(db_, tree(), nullptr, 0, nullptr, 0);
    ASSERT_EQ(text(of_default), ScanOf(handles_[0]));
    ASSERT_EQ(text(of_list), ScanOf(list()));
    ASSERT_EQ(text(of_tree), ScanOf(tree()));
  }
}

TEST_F(CApiFamilyTest, ABatchWithDeletionsOfRangesMayOutliveTheHandle) {
  PutIn(tree(), "a", "1");
  PutIn(tree(), "b", "1");
  braiddb_writebatch_t* const batch = braiddb_writebatch_create();
  braiddb_writebatch_delete_range_cf(batch, tree(), "b", 1, "a", 1);
  DestroyHandles();
  braiddb_write(db_, write_, batch, error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_writebatch_destroy(batch);
  CloseFamilies();
  OpenFamilies();
  EXPECT_EQ("a=1 ", ScanOf(tree()));
}

TEST_F(CApiFamilyTest, BatchesWithAnIndexKnowTheOrderOfAFamily) {
  for (const char* key : {"a", "c"}) PutIn(tree(), key, "db");
  braiddb_writebatch_wi_t* const batch = braiddb_writebatch_wi_create(0, 1);
  braiddb_writebatch_wi_put_cf(batch, tree(), "b", 1, "wi", 2);
  braiddb_writebatch_wi_put_cf(batch, tree(), "d", 1, "wi", 2);
  braiddb_writebatch_wi_delete_cf(batch, tree(), "c", 1);
  braiddb_writebatch_wi_put(batch, "x", 1, "wi", 2);
  size_t length = 0;
  char* value = braiddb_writebatch_wi_get_from_batch_cf(batch, options_, tree(), "b", 1, &length, error_.pointer());
  EXPECT_EQ("wi", Text(value, length));
  value = braiddb_writebatch_wi_get_from_batch_and_db_cf(batch, db_, read_, tree(), "a", 1, &length, error_.pointer());
  EXPECT_EQ("db", Text(value, length));
  value = braiddb_writebatch_wi_get_from_batch_and_db_cf(batch, db_, read_, tree(), "c", 1, &length, error_.pointer());
  EXPECT_EQ("-", Text(value, length));
  const auto over = [&](braiddb_writebatch_wi_t* from) {
    return ScanAll(
        braiddb_writebatch_wi_create_iterator_with_base_cf(from, braiddb_create_iterator_cf(db_, read_, tree()), tree()));
  };
  EXPECT_EQ("d=wi b=wi a=db ", over(batch));
  // One that was made of bytes knows no orders.
  const char* const data = braiddb_writebatch_wi_data(batch, &length);
  braiddb_writebatch_wi_t* const copy = braiddb_writebatch_wi_create_from(data, length);
  EXPECT_EQ("d=wi b=wi a=db ", over(copy));
  braiddb_writebatch_wi_destroy(copy);
  braiddb_write_writebatch_wi(db_, write_, batch, error_.pointer());
  EXPECT_EQ("", error_.Take());
  EXPECT_EQ("d=wi b=wi a=db ", ScanOf(tree()));
  EXPECT_EQ("wi", Get("x"));
  braiddb_writebatch_wi_destroy(batch);
}

TEST_F(CApiFamilyTest, CheckpointsHaveAllFamilies) {
  PutIn(list(), "k", "l");
  PutIn(tree(), "k", "t");
  braiddb_checkpoint_t* const checkpoint = braiddb_checkpoint_object_create(db_, error_.pointer());
  braiddb_checkpoint_create(checkpoint, directory_.Sub("copy").c_str(), 0, error_.pointer());
  EXPECT_EQ("", error_.Take());
  braiddb_checkpoint_object_destroy(checkpoint);
  CloseFamilies();
  const braiddb_options_t* const of_families[] = {options_, options_, tree_options_};
  db_ =
      braiddb_open_column_families(options_, directory_.Sub("copy").c_str(), 3, names_, of_families, handles_, error_.pointer());
  ASSERT_EQ("", error_.Take());
  EXPECT_EQ("k=l ", ScanOf(list()));
  EXPECT_EQ("k=t ", ScanOf(tree()));
}

}  // namespace
}  // namespace braiddb::test
