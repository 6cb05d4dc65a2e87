# mutation_test: damage to the files of small databases (tests/mutation).
find_package(Boost REQUIRED COMPONENTS program_options)

file(GLOB mutation_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/mutation/*.cc)
add_executable(mutation_test ${mutation_sources})
braiddb_compile_options(mutation_test TEST)
target_link_libraries(mutation_test PRIVATE braiddb_test_support Boost::program_options)

# PMDK allocates tens of thousands of small pieces for the lanes of a pool that it opens.
find_library(BRAIDDB_JEMALLOC NAMES jemalloc)
if(BRAIDDB_JEMALLOC AND NOT BRAIDDB_SANITIZE)
  target_link_libraries(mutation_test PRIVATE ${BRAIDDB_JEMALLOC})
endif()

# A sample by seed. It is not of use to ThreadSanitizer: one thread reads.
if(NOT BRAIDDB_SANITIZE MATCHES "thread")
  set(mutation_opens 1200)
  if(BRAIDDB_SANITIZE)
    set(mutation_opens 30)
  endif()
  add_test(NAME ${BRAIDDB_TEST_PREFIX}mutation_test COMMAND mutation_test --seed 1 --opens ${mutation_opens})
  set_tests_properties(${BRAIDDB_TEST_PREFIX}mutation_test PROPERTIES LABELS "unit;mutation;ci" TIMEOUT 600)
  add_dependencies(braiddb_ci mutation_test)
endif()
