# Every tests/*_test.cc (also one folder down) is an executable of its own and one ctest test.
#
# Labels: unit, the folder, and concurrent if the file's path says so. The label ci marks what scripts/test runs of this
# build: everything in a plain build, under AddressSanitizer all but the tests of db_bench, which would build that for little,
# concurrent ones under ThreadSanitizer; the target braiddb_ci builds just that. BRAIDDB_TEST_PREFIX keeps names apart where
# tests of several builds run together.
set(BRAIDDB_TEST_PREFIX "" CACHE STRING "Put before the name of every test")
find_package(GTest REQUIRED)

file(GLOB braiddb_support_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/support/*.cc)
add_library(braiddb_test_support STATIC ${braiddb_support_sources})
braiddb_compile_options(braiddb_test_support TEST)
target_link_libraries(braiddb_test_support PUBLIC
  braiddb_internal GTest::gtest PMDK::pmempool PMDK::pmemobj PMDK::pmem)
braiddb_precompile(braiddb_test_support <fstream> <future> <iostream> <numeric> <random> <sstream> <gtest/gtest.h>)

file(GLOB braiddb_test_sources RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/tests/*_test.cc ${PROJECT_SOURCE_DIR}/tests/*/*_test.cc)
list(FILTER braiddb_test_sources EXCLUDE REGEX "^tests/(growth|lb_tree)/")  # in BraidDBCrash.cmake
if(NOT TARGET rocksdb_dropin)
  list(FILTER braiddb_test_sources EXCLUDE REGEX "^tests/capi/c_api_dropin_test.cc$")
endif()
# These test programs, so are there only with them.
if(NOT BRAIDDB_BUILD_BENCH)
  list(FILTER braiddb_test_sources EXCLUDE REGEX "^tests/(db_bench[a-z_]*|index_bench|db_stress|tool_[a-z_]*)_test.cc$")
endif()

add_custom_target(braiddb_ci)
foreach(source IN LISTS braiddb_test_sources)
  get_filename_component(name ${source} NAME_WE)
  set(labels unit)
  if(source MATCHES "concurrent")
    list(APPEND labels concurrent)
  endif()
  if(source MATCHES "^tests/([^/]+)/")
    list(APPEND labels ${CMAKE_MATCH_1})
  endif()
  if(NOT BRAIDDB_SANITIZE
     OR (BRAIDDB_SANITIZE MATCHES "address" AND NOT name MATCHES "^db_bench")
     OR (BRAIDDB_SANITIZE MATCHES "thread" AND "concurrent" IN_LIST labels))
    list(APPEND labels ci)
    add_dependencies(braiddb_ci ${name})
  endif()
  list(REMOVE_DUPLICATES labels)

  add_executable(${name} ${source})
  braiddb_compile_options(${name} TEST)
  target_link_libraries(${name} PRIVATE braiddb_test_support GTest::gtest_main)
  braiddb_precompile(${name} REUSE_FROM braiddb_test_support)
  add_test(NAME ${BRAIDDB_TEST_PREFIX}${name} COMMAND ${name})
  set_tests_properties(${BRAIDDB_TEST_PREFIX}${name} PROPERTIES LABELS "${labels}" TIMEOUT 600)
  # Whatever a database promises, it promises with each last level; but for what a test knows of one of them. AddressSanitizer,
  # which is slow, sees those that go everywhere.
  if(name MATCHES "^(db|check|txn|backup)_"
     AND NOT name MATCHES "^(db_bench[a-z_]*|db_braid|db_damage|db_error_policy|db_live_families|db_live_readers|db_live_readers_concurrent|db_hybrid|db_killed_relocation|db_l1_entries|db_last_level_concurrent|db_lb_tree|db_sorted_runs|db_stress|db_swept_range_crash|check_reads|txn_write_batch_with_index)_test$"
     AND (NOT BRAIDDB_SANITIZE MATCHES "address" OR name MATCHES "^db_(basic|concurrent|failing_calls|model)_test$"))
    # Sorted runs need space to merge, and nothing of them lies in the log, to be relocated.
    set(kinds nv_tree sorted_runs hybrid lb_tree)
    if(name MATCHES "^db_(relocation|space)_test$")
      set(kinds nv_tree hybrid lb_tree)
    endif()
    # Merges into these need space of their own, so a full region is refused more than the test allows (LIMITATIONS).
    if(name STREQUAL "db_full_region_test")
      set(kinds)
    endif()
    foreach(kind IN LISTS kinds)
      add_test(NAME ${BRAIDDB_TEST_PREFIX}${name}.${kind} COMMAND ${name})
      set_tests_properties(${BRAIDDB_TEST_PREFIX}${name}.${kind} PROPERTIES LABELS "${labels}" TIMEOUT 600
                           ENVIRONMENT BRAIDDB_TEST_L1=${kind})
    endforeach()
  endif()
endforeach()
foreach(name docs_figures_test metrics_test)
  target_compile_definitions(${name} PRIVATE BRAIDDB_SOURCE="${PROJECT_SOURCE_DIR}")
endforeach()

# The drop-in libraries: what they export; and with the label foreign, which CI does not run, others' tests, fetched from registries.
if(TARGET rocksdb_dropin)
  add_dependencies(c_api_dropin_test rocksdb_dropin leveldb_dropin)
  target_compile_definitions(c_api_dropin_test PRIVATE
    BRAIDDB_DROPINS="${PROJECT_BINARY_DIR}/dropin" BRAIDDB_FUNCTIONS="${PROJECT_SOURCE_DIR}/capi/functions.txt")
  target_link_libraries(c_api_dropin_test PRIVATE ${CMAKE_DL_LIBS})
  add_test(NAME foreign_tests COMMAND ${PROJECT_SOURCE_DIR}/tests/capi/run_foreign_tests
           --dropin ${PROJECT_BINARY_DIR}/dropin --work ${PROJECT_BINARY_DIR}/foreign)
  set_tests_properties(foreign_tests PROPERTIES LABELS foreign TIMEOUT 1800 SKIP_RETURN_CODE 77)
endif()

# What libbraiddb.so exports.
if(TARGET braiddb_shared)
  add_test(NAME ${BRAIDDB_TEST_PREFIX}abi
           COMMAND ${PROJECT_SOURCE_DIR}/tests/abi/compare_exported_symbols $<TARGET_FILE:braiddb_shared>)
  set_tests_properties(${BRAIDDB_TEST_PREFIX}abi PROPERTIES LABELS "unit;ci" TIMEOUT 60)
  add_dependencies(braiddb_ci braiddb_shared)
endif()

if(NOT BRAIDDB_SANITIZE)
  add_test(NAME ${BRAIDDB_TEST_PREFIX}lint COMMAND ${PROJECT_SOURCE_DIR}/scripts/lint)
  set_tests_properties(${BRAIDDB_TEST_PREFIX}lint PROPERTIES LABELS "lint;ci" TIMEOUT 120)
endif()

include(BraidDBMutation)
include(BraidDBFuzz)
if(TARGET rocksdb_dropin)
  include(BraidDBDifferential)
endif()
if(NOT BRAIDDB_SANITIZE AND NOT BRAIDDB_COVERAGE)
  include(BraidDBCrash)
endif()
