# differential_test: the same random calls through RocksDB's library and through the drop-in (tests/differential).
#
# It is linked with neither; it loads both. Where RocksDB's library is missing, it says so and is skipped.
find_package(Boost REQUIRED COMPONENTS program_options)

file(GLOB differential_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/differential/*.cc)
add_executable(differential_test ${differential_sources})
braiddb_compile_options(differential_test TEST)
target_include_directories(differential_test PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(differential_test PRIVATE
  BRAIDDB_DROPIN="${PROJECT_BINARY_DIR}/dropin/librocksdb.so.7.8" BRAIDDB_SOURCE="${PROJECT_SOURCE_DIR}")
target_link_libraries(differential_test PRIVATE Boost::program_options ${CMAKE_DL_LIBS})
add_dependencies(differential_test rocksdb_dropin)
add_dependencies(braiddb_ci differential_test)

add_test(NAME ${BRAIDDB_TEST_PREFIX}differential_test COMMAND differential_test --seed 1 --sequences 100)
add_test(NAME ${BRAIDDB_TEST_PREFIX}differential_self_test COMMAND differential_test --self-test)
set_tests_properties(${BRAIDDB_TEST_PREFIX}differential_test ${BRAIDDB_TEST_PREFIX}differential_self_test PROPERTIES
  LABELS "unit;differential;ci" TIMEOUT 600 SKIP_RETURN_CODE 77)
