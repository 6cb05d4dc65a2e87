# Every tests/fuzz/*_fuzz.cc is a fuzz target: an executable that makes inputs and runs them for some seconds, and one ctest test.
file(GLOB braiddb_fuzz_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/*_fuzz.cc)
# These are for parsers of the tools.
if(NOT BRAIDDB_BUILD_BENCH)
  list(FILTER braiddb_fuzz_sources EXCLUDE REGEX "/(http_request|record)_fuzz\\.cc$")
endif()
add_library(braiddb_fuzz_driver OBJECT ${PROJECT_SOURCE_DIR}/tests/fuzz/driver.cc)
braiddb_compile_options(braiddb_fuzz_driver TEST)
target_include_directories(braiddb_fuzz_driver PRIVATE ${PROJECT_SOURCE_DIR})

foreach(source IN LISTS braiddb_fuzz_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  braiddb_compile_options(${name} TEST)
  target_link_libraries(${name} PRIVATE braiddb_fuzz_driver braiddb_test_support)
  # A short run by seed. Longer runs, and those of the build with AddressSanitizer, are made by hand (docs/TESTING.md).
  if(NOT BRAIDDB_SANITIZE)
    add_test(NAME ${BRAIDDB_TEST_PREFIX}${name} COMMAND ${name} --seconds=4 --seed=1)
    set_tests_properties(${BRAIDDB_TEST_PREFIX}${name} PROPERTIES LABELS "fuzz;ci" TIMEOUT 300)
    add_dependencies(braiddb_ci ${name})
  endif()
endforeach()
