// The functions of braiddb/c.h have the types, the constants the values and new objects the options that programs for RocksDB and
// LevelDB were compiled for: the *.inc files beside this one say which. A difference of types or values does not compile.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <type_traits>

#include "braiddb/c.h"
#include "capi/leveldb.h"

namespace braiddb::test {
namespace {

// ---- Types

#define FUNCTION(name, ...) static_assert(std::is_same_v<decltype(braiddb_##name), __VA_ARGS__>, #name);
#include "tests/capi/rocksdb_7_8_3_functions.inc"
#undef FUNCTION

// LevelDB's functions that are RocksDB's need not have the same types here, as both know different ones as const or as pointers
// to pointers of const. What a caller passes has to be the same.
template <class A, class B>
struct Passes : std::bool_constant<std::is_same_v<A, B> || (std::is_pointer_v<A> && std::is_pointer_v<B>)> {};
template <class A, class B>
struct IsCalledAs : std::false_type {};
template <class A, class... As, class B, class... Bs>
struct IsCalledAs<A(As...), B(Bs...)> : std::conjunction<Passes<A, B>, Passes<As, Bs>...> {};

#define FUNCTION(name, ...) static_assert(IsCalledAs<decltype(braiddb_##name), __VA_ARGS__>::value, #name);
#define OWN_FUNCTION(name, ...) static_assert(std::is_same_v<decltype(braiddb_leveldb_##name), __VA_ARGS__>, #name);
#include "tests/capi/leveldb_1_23_functions.inc"
#undef FUNCTION
#undef OWN_FUNCTION

// The lists cannot lose a line unseen.
#define FUNCTION(name, ...) +1
#define OWN_FUNCTION(name, ...) +1
constexpr int kRocksDBFunctions = 0
#include "tests/capi/rocksdb_7_8_3_functions.inc"
    ;
constexpr int kLevelDBFunctions = 0
#include "tests/capi/leveldb_1_23_functions.inc"
    ;
static_assert(kRocksDBFunctions == 783 && kLevelDBFunctions == 68);
#undef FUNCTION
#undef OWN_FUNCTION

// ---- Constants

#define CONSTANT(name, value) static_assert(braiddb_##name == (value), #name);
#include "tests/capi/rocksdb_7_8_3_constants.inc"
#undef CONSTANT

// ---- Defaults

// A new object of each kind that has getters.
class CApiDefaultsTest : public testing::Test {
 protected:
  ~CApiDefaultsTest() override {
    braiddb_backup_engine_options_destroy(backup_engine_options);
    braiddb_compactoptions_destroy(compactoptions);
    braiddb_env_destroy(env);
    braiddb_fifo_compaction_options_destroy(fifo_compaction_options);
    braiddb_flushoptions_destroy(flushoptions);
    braiddb_options_destroy(options);
    braiddb_readoptions_destroy(readoptions);
    braiddb_universal_compaction_options_destroy(universal_compaction_options);
    braiddb_writeoptions_destroy(writeoptions);
  }

  braiddb_backup_engine_options_t* const backup_engine_options = braiddb_backup_engine_options_create("backups");
  braiddb_compactoptions_t* const compactoptions = braiddb_compactoptions_create();
  braiddb_env_t* const env = braiddb_create_default_env();
  braiddb_fifo_compaction_options_t* const fifo_compaction_options = braiddb_fifo_compaction_options_create();
  braiddb_flushoptions_t* const flushoptions = braiddb_flushoptions_create();
  braiddb_options_t* const options = braiddb_options_create();
  braiddb_readoptions_t* const readoptions = braiddb_readoptions_create();
  braiddb_universal_compaction_options_t* const universal_compaction_options = braiddb_universal_compaction_options_create();
  braiddb_writeoptions_t* const writeoptions = braiddb_writeoptions_create();
};

TEST_F(CApiDefaultsTest, AreThoseOfRocksDB) {
  int checked = 0;
#define DEFAULT(object, getter, type, value)                                           \
  EXPECT_EQ(static_cast<type>(value), braiddb_##object##_##getter(object)) << #getter; \
  ++checked;
#include "tests/capi/rocksdb_7_8_3_defaults.inc"
#undef DEFAULT
  EXPECT_EQ(142, checked);
}

}  // namespace
}  // namespace braiddb::test
