// Odd arguments of C calls that the undefined behaviour sanitizer sees: empty keys as NULL, numbers at the ends of their type.
#include <gtest/gtest.h>

#include <climits>
#include <string>

#include "tests/capi/c_fixture.h"

namespace braiddb::test {
namespace {

TEST_F(CApiTest, AnEmptyKeyMayBeNull) {
  Open();
  braiddb_put(db_, write_, nullptr, 0, "first", 5, error_.pointer());
  ASSERT_EQ("", error_.Take());
  braiddb_put(db_, write_, nullptr, 0, nullptr, 0, error_.pointer());
  ASSERT_EQ("", error_.Take());
  size_t size = 1;
  char* value = braiddb_get(db_, read_, nullptr, 0, &size, error_.pointer());
  EXPECT_NE(nullptr, value);
  EXPECT_EQ(0u, size);
  braiddb_free(value);
  braiddb_iterator_t* const iterator = braiddb_create_iterator(db_, read_);
  braiddb_iter_seek(iterator, nullptr, 0);
  EXPECT_EQ(1, braiddb_iter_valid(iterator));
  braiddb_iter_seek_for_prev(iterator, nullptr, 0);
  EXPECT_EQ(1, braiddb_iter_valid(iterator));
  braiddb_iter_destroy(iterator);
  braiddb_delete(db_, write_, nullptr, 0, error_.pointer());
  ASSERT_EQ("", error_.Take());
  value = braiddb_get(db_, read_, nullptr, 0, &size, error_.pointer());
  EXPECT_EQ(nullptr, value);
  EXPECT_EQ("", error_.Take());
}

TEST_F(CApiTest, NumbersAtTheEndsOfTheirTypeOpenADatabase) {
  using Setter = void (*)(braiddb_options_t*, int);
  constexpr Setter kSetters[] = {braiddb_options_set_max_write_buffer_number, braiddb_options_set_max_background_compactions,
                                 braiddb_options_set_max_background_jobs, braiddb_options_set_level0_file_num_compaction_trigger,
                                 braiddb_options_set_level0_slowdown_writes_trigger};
  for (const int value : {INT_MIN, -1, 0, 1, INT_MAX}) {
    for (const Setter setter : kSetters) setter(options_, value);
    braiddb_options_increase_parallelism(options_, value);
    Open();
    braiddb_put(db_, write_, "key", 3, "value", 5, error_.pointer());
    EXPECT_EQ("", error_.Take()) << value;
  }
}

// What differential_test found: the prefix is that of the bound, which the first and the last movement seek.
TEST_F(CApiTest, BoundsOfOtherPrefixesThanTheKeysEndTheFirstMovement) {
  braiddb_options_set_prefix_extractor(options_, braiddb_slicetransform_create_fixed_prefix(2));
  Open();
  Put("k1x", "v");
  braiddb_readoptions_set_prefix_same_as_start(read_, 1);
  braiddb_readoptions_set_iterate_lower_bound(read_, "a0", 2);
  braiddb_readoptions_set_iterate_upper_bound(read_, "z0", 2);
  braiddb_iterator_t* const iterator = braiddb_create_iterator(db_, read_);
  braiddb_iter_seek_to_first(iterator);
  EXPECT_EQ(0, braiddb_iter_valid(iterator));
  braiddb_iter_seek_to_last(iterator);
  EXPECT_EQ(0, braiddb_iter_valid(iterator));
  braiddb_iter_seek(iterator, "k1", 2);
  EXPECT_EQ(1, braiddb_iter_valid(iterator));
  braiddb_iter_destroy(iterator);
}

}  // namespace
}  // namespace braiddb::test
