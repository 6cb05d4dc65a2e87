# crash_test: simulated power cuts (tests/crash_test). It has a library of its own, whose stores are traced and which has bugs to put in
# (util/mutant.h): the compiler's instrumentation for data races, with our own runtime in place of the compiler's.
find_package(Boost REQUIRED COMPONENTS program_options)

set(traced_sources ${braiddb_sources})
list(FILTER traced_sources EXCLUDE REGEX "/capi/[^/]*$")  # it stores nothing itself
add_library(braiddb_traced OBJECT EXCLUDE_FROM_ALL ${traced_sources})
target_include_directories(braiddb_traced PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR})
target_compile_features(braiddb_traced PUBLIC cxx_std_20)
target_compile_definitions(braiddb_traced PUBLIC BRAIDDB_CRASH_TEST)
target_link_libraries(braiddb_traced PUBLIC PMDK::pmemobj PMDK::pmem NUMA::numa XxHash::xxhash Boost::headers Threads::Threads)
braiddb_compile_options(braiddb_traced STRICT)
braiddb_unity(braiddb_traced ${traced_sources})
# -fno-builtin: copies are calls, which can be wrapped.
target_compile_options(braiddb_traced PRIVATE -O2 -fsanitize=thread -fno-builtin -Wno-maybe-uninitialized)

file(GLOB crash_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/crash_test/*.cc)
list(FILTER crash_sources EXCLUDE REGEX "_test\\.cc$")
# The traced objects come first, so that of what both have (inline functions) theirs is taken.
add_executable(crash_test $<TARGET_OBJECTS:braiddb_traced> ${crash_sources} tests/support/db_test_util.cc)
braiddb_compile_options(crash_test)
target_include_directories(crash_test PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR})
target_compile_definitions(crash_test PRIVATE BRAIDDB_CRASH_TEST)
target_compile_options(crash_test PRIVATE -O2)
target_link_libraries(crash_test PRIVATE
  PMDK::pmemobj PMDK::pmem NUMA::numa XxHash::xxhash Boost::headers Threads::Threads Boost::program_options GTest::gtest ${CMAKE_DL_LIBS})
# Fixed addresses, so that those in a report mean something.
target_link_options(crash_test PRIVATE -no-pie
  -Wl,--wrap=memcpy -Wl,--wrap=memmove -Wl,--wrap=memset -Wl,--wrap=malloc -Wl,--wrap=free)

# A sample by seed: all kinds of databases (small, growing, with eADR), with each last level in one region and in two, are among the
# first fifteen.
add_test(NAME crash_test COMMAND crash_test --seed 1 --databases 15 --images-per-database 60 --ops 100
  --lives-one-in 8 --images-per-life 9)
set_tests_properties(crash_test PROPERTIES LABELS "crash;ci" TIMEOUT 600)
add_dependencies(braiddb_ci crash_test)

# db_growth_test counts the accesses to memory of the same library, with a runtime of its own.
add_executable(db_growth_test $<TARGET_OBJECTS:braiddb_traced> tests/growth/access_hooks.cc tests/growth/db_growth_test.cc
  tests/support/db_test_util.cc)
braiddb_compile_options(db_growth_test TEST)
target_include_directories(db_growth_test PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR})
target_compile_definitions(db_growth_test PRIVATE BRAIDDB_CRASH_TEST)
target_link_libraries(db_growth_test PRIVATE
  PMDK::pmemobj PMDK::pmem NUMA::numa XxHash::xxhash Boost::headers Threads::Threads GTest::gtest GTest::gtest_main ${CMAKE_DL_LIBS})
add_test(NAME db_growth_test COMMAND db_growth_test)
set_tests_properties(db_growth_test PROPERTIES LABELS "unit;ci" TIMEOUT 600)
add_dependencies(braiddb_ci db_growth_test)

# Every mutant must be found; ctest -L mutants. A few that are found quickly, one of each kind, are in ci.
set(crash_ci_mutants
  ack-before-fence entry-flush-too-short cut-batch-trusted checkpoint-not-flushed journal-not-flushed manifest-slot-not-fenced
  state-word-torn redo-left-out)
file(STRINGS ${PROJECT_SOURCE_DIR}/tests/crash_test/mutants.cc mutant_lines REGEX "^    {\"")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/crash_test/mutants.cc)
foreach(line IN LISTS mutant_lines)
  string(REGEX REPLACE "^ *{\"([a-z-]+)\".*" "\\1" mutant "${line}")
  set(labels mutants)
  if(mutant IN_LIST crash_ci_mutants)
    list(APPEND labels ci)
  endif()
  add_test(NAME mutant.${mutant} COMMAND crash_test --mutant ${mutant} --expect-violation
    --seed 1 --databases 30 --images-per-database 400 --ops 150 --lives-one-in 8 --images-per-life 9)
  set_tests_properties(mutant.${mutant} PROPERTIES LABELS "${labels}" TIMEOUT 900)
endforeach()

# lb_tree_power_cut_test has LB+-Tree's sources once more, with mutants and with the order of their stores (tests/lb_tree).
file(GLOB lb_tree_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lb_tree/*.cc)
add_executable(lb_tree_power_cut_test tests/lb_tree/lb_tree_power_cut_test.cc ${lb_tree_sources} index/leaf_space.cc)
braiddb_compile_options(lb_tree_power_cut_test TEST)
target_compile_definitions(lb_tree_power_cut_test PRIVATE BRAIDDB_CRASH_TEST)
target_link_libraries(lb_tree_power_cut_test PRIVATE braiddb_test_support GTest::gtest_main)
add_test(NAME lb_tree_power_cut_test COMMAND lb_tree_power_cut_test)
set_tests_properties(lb_tree_power_cut_test PROPERTIES LABELS "unit;crash;mutants;ci" TIMEOUT 600)
add_dependencies(braiddb_ci lb_tree_power_cut_test)
