# db_bench, index_bench, db_stress, each from its folder, and the program braiddb (from tools/*.cc).
find_package(Boost REQUIRED COMPONENTS program_options)

# The allocator of the executables: never of the library, and not under sanitizers, which bring their own.
find_library(BRAIDDB_JEMALLOC NAMES jemalloc)
function(braiddb_add_tool name)
  add_executable(${name} ${ARGN})
  braiddb_compile_options(${name} STRICT)
  target_compile_definitions(${name} PRIVATE BRAIDDB_VERSION="${PROJECT_VERSION}")
  target_link_libraries(${name} PRIVATE braiddb_internal Boost::program_options)
  if(BRAIDDB_JEMALLOC AND NOT BRAIDDB_SANITIZE)
    target_link_libraries(${name} PRIVATE ${BRAIDDB_JEMALLOC})
  endif()
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
endfunction()

# A program of which all but main() is a library, which its tests, tests/<name>*_test.cc, use too.
function(braiddb_add_tested_tool name library)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${name}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  add_library(${library} STATIC ${sources})
  braiddb_compile_options(${library} STRICT)
  target_link_libraries(${library} PUBLIC braiddb_internal Boost::program_options)
  braiddb_add_tool(${name} ${name}/main.cc)
  target_link_libraries(${name} PRIVATE ${library})
  string(TOUPPER ${name} upper)
  file(GLOB tests RELATIVE ${PROJECT_SOURCE_DIR}/tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${name}*_test.cc)
  foreach(test IN LISTS tests)
    get_filename_component(test ${test} NAME_WE)
    if(TARGET ${test})
      add_dependencies(${test} ${name})
      target_link_libraries(${test} PRIVATE ${library})
      target_compile_definitions(${test} PRIVATE BRAIDDB_${upper}="$<TARGET_FILE:${name}>")
    endif()
  endforeach()
endfunction()
braiddb_add_tested_tool(db_stress braiddb_stress)
braiddb_add_tested_tool(index_bench braiddb_index_bench)
braiddb_precompile(braiddb_stress <fstream> <iostream> <numeric> <random> <sstream>)
braiddb_precompile(braiddb_index_bench REUSE_FROM braiddb_stress)

# db_bench also measures other stores, if their headers are here; their libraries are loaded when they are asked for, so that
# others can take their place.
find_package(nlohmann_json 3 REQUIRED)
braiddb_add_tested_tool(db_bench braiddb_bench)
target_compile_definitions(braiddb_bench PRIVATE BRAIDDB_VERSION="${PROJECT_VERSION}")
braiddb_precompile(braiddb_bench REUSE_FROM braiddb_stress)
target_link_libraries(braiddb_bench PRIVATE nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})
if(TARGET db_bench_rocksdb_test)
  target_compile_definitions(db_bench_rocksdb_test PRIVATE BRAIDDB_NAMES="${PROJECT_SOURCE_DIR}/tests/db_bench")
endif()
if(TARGET db_bench_engines_test)
  target_compile_definitions(db_bench_engines_test PRIVATE BRAIDDB_BENCH_COMPARE="${PROJECT_SOURCE_DIR}/scripts/bench_compare"
    BRAIDDB_REDIS_STAND_IN="redis:${PROJECT_BINARY_DIR}/bin/resp_server")
  add_dependencies(db_bench_engines_test resp_server)
endif()
function(braiddb_add_engine name header)
  string(TOUPPER ${name} upper)
  # What an earlier configuration found may have been removed since.
  if(NOT EXISTS "${${upper}_INCLUDE_DIR}/${header}")
    unset(${upper}_INCLUDE_DIR CACHE)
  endif()
  if(NOT EXISTS "${${upper}_LIBRARY}")
    unset(${upper}_LIBRARY CACHE)
  endif()
  find_path(${upper}_INCLUDE_DIR NAMES ${header})
  find_library(${upper}_LIBRARY NAMES ${name})
  mark_as_advanced(${upper}_INCLUDE_DIR ${upper}_LIBRARY)
  if(${upper}_INCLUDE_DIR AND ${upper}_LIBRARY)
    target_compile_definitions(braiddb_bench PRIVATE BRAIDDB_${upper}_LIBRARY="${${upper}_LIBRARY}")
    target_include_directories(braiddb_bench SYSTEM PRIVATE ${${upper}_INCLUDE_DIR})
  endif()
endfunction()
braiddb_add_engine(rocksdb rocksdb/c.h)
braiddb_add_engine(leveldb leveldb/c.h)
braiddb_add_engine(lmdb lmdb.h)
braiddb_add_engine(hiredis hiredis/hiredis.h)
# PMDK's maps come as sources of examples, which are compiled as they are.
set(PMDK_EXAMPLES /usr/share/doc/libpmemobj-dev/examples CACHE PATH "libpmemobj's examples, for the engine pmdk_map of db_bench")
set(pmdk_map_sources "")
foreach(source map/map.c tree_map/ctree_map.c tree_map/btree_map.c tree_map/rbtree_map.c tree_map/rtree_map.c
        hashmap/hashmap_tx.c hashmap/hashmap_atomic.c map/map_ctree.c map/map_btree.c map/map_rbtree.c map/map_rtree.c
        map/map_hashmap_tx.c map/map_hashmap_atomic.c)
  if(EXISTS "${PMDK_EXAMPLES}/${source}")
    list(APPEND pmdk_map_sources "${PMDK_EXAMPLES}/${source}")
  endif()
endforeach()
list(LENGTH pmdk_map_sources pmdk_map_count)
if(pmdk_map_count EQUAL 13)
  add_library(braiddb_pmdk_maps STATIC ${pmdk_map_sources})
  foreach(folder map tree_map hashmap .)
    target_include_directories(braiddb_pmdk_maps SYSTEM PUBLIC "${PMDK_EXAMPLES}/${folder}")
  endforeach()
  target_include_directories(braiddb_pmdk_maps PRIVATE ${PROJECT_SOURCE_DIR}/db_bench/pmdk_examples)
  target_compile_options(braiddb_pmdk_maps PRIVATE -w -include sys/param.h)
  target_compile_definitions(braiddb_bench PRIVATE BRAIDDB_PMDK_MAPS)
  target_link_libraries(braiddb_bench PRIVATE braiddb_pmdk_maps)
endif()
find_package(Boost QUIET OPTIONAL_COMPONENTS serialization)
if(TARGET Boost::serialization)
  target_compile_definitions(braiddb_bench PRIVATE BRAIDDB_BOOST_SERIALIZATION)
  target_link_libraries(braiddb_bench PRIVATE Boost::serialization)
endif()

# What db_bench was built from, looked up at each build.
add_custom_target(braiddb_commit
  COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR} -D HEADER=${PROJECT_BINARY_DIR}/generated/braiddb_commit.h
    -P ${PROJECT_SOURCE_DIR}/cmake/WriteCommit.cmake
  BYPRODUCTS ${PROJECT_BINARY_DIR}/generated/braiddb_commit.h)
add_dependencies(braiddb_bench braiddb_commit)
target_include_directories(braiddb_bench PRIVATE ${PROJECT_BINARY_DIR}/generated)

# The page of `braiddb serve` is compiled into the program.
set(serve_page ${PROJECT_SOURCE_DIR}/tools/serve/page.html)
set(embedded_page ${PROJECT_BINARY_DIR}/generated/braiddb_page.cc)
add_custom_command(OUTPUT ${embedded_page}
  COMMAND ${CMAKE_COMMAND} -D PAGE=${serve_page} -D OUTPUT=${embedded_page} -P ${PROJECT_SOURCE_DIR}/cmake/EmbedPage.cmake
  DEPENDS ${serve_page} ${PROJECT_SOURCE_DIR}/cmake/EmbedPage.cmake)

# The program is called braiddb, as the library; targets cannot share a name. All but its main() is a library, for its tests.
file(GLOB tool_sources CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/tools/*.cc ${PROJECT_SOURCE_DIR}/tools/formats/*.cc ${PROJECT_SOURCE_DIR}/tools/serve/*.cc
  ${PROJECT_SOURCE_DIR}/tools/stores/*.cc)
list(FILTER tool_sources EXCLUDE REGEX "/main\\.cc$")
add_library(braiddb_tool_parts STATIC ${tool_sources} ${embedded_page})
braiddb_compile_options(braiddb_tool_parts STRICT)
braiddb_precompile(braiddb_tool_parts REUSE_FROM braiddb_stress)
target_link_libraries(braiddb_tool_parts PUBLIC braiddb_internal Boost::program_options nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})
# The shell edits lines by libedit, if it is here.
find_path(LIBEDIT_INCLUDE_DIR NAMES editline/readline.h)
find_library(LIBEDIT_LIBRARY NAMES edit)
mark_as_advanced(LIBEDIT_INCLUDE_DIR LIBEDIT_LIBRARY)
if(LIBEDIT_INCLUDE_DIR AND LIBEDIT_LIBRARY)
  target_compile_definitions(braiddb_tool_parts PUBLIC BRAIDDB_LIBEDIT)
  target_include_directories(braiddb_tool_parts SYSTEM PRIVATE ${LIBEDIT_INCLUDE_DIR})
  target_link_libraries(braiddb_tool_parts PRIVATE ${LIBEDIT_LIBRARY})
endif()
braiddb_add_tool(braiddb_tool ${PROJECT_SOURCE_DIR}/tools/main.cc)
set_target_properties(braiddb_tool PROPERTIES OUTPUT_NAME braiddb)
target_link_libraries(braiddb_tool PRIVATE braiddb_tool_parts)
file(GLOB tool_tests RELATIVE ${PROJECT_SOURCE_DIR}/tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/tool_*_test.cc)
foreach(test IN LISTS tool_tests)
  get_filename_component(name ${test} NAME_WE)
  if(TARGET ${name})
    add_dependencies(${name} braiddb_tool)
    target_link_libraries(${name} PRIVATE braiddb_tool_parts)
    target_compile_definitions(${name} PRIVATE BRAIDDB_TOOL="$<TARGET_FILE:braiddb_tool>" BRAIDDB_SOURCE="${PROJECT_SOURCE_DIR}")
  endif()
endforeach()
foreach(name http_request_fuzz record_fuzz)
  if(TARGET ${name})
    target_link_libraries(${name} PRIVATE braiddb_tool_parts)
  endif()
endforeach()

# The page of results, tools/report, scripts/bench --paper and docs/RESULTS.md: Python alone, which is not needed to build.
find_package(Python3 3.9 COMPONENTS Interpreter)
if(BRAIDDB_BUILD_TESTS AND Python3_FOUND AND NOT BRAIDDB_SANITIZE)
  add_test(NAME ${BRAIDDB_TEST_PREFIX}report_test COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/report_test.py)
  add_test(NAME ${BRAIDDB_TEST_PREFIX}db_bench_script_test
           COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/db_bench_script_test.py)
  add_test(NAME ${BRAIDDB_TEST_PREFIX}paper_test COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/paper_test.py)
  add_test(NAME ${BRAIDDB_TEST_PREFIX}results_test COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/results_test.py)
  set_tests_properties(${BRAIDDB_TEST_PREFIX}report_test ${BRAIDDB_TEST_PREFIX}db_bench_script_test ${BRAIDDB_TEST_PREFIX}paper_test
                       ${BRAIDDB_TEST_PREFIX}results_test PROPERTIES LABELS "unit;ci" TIMEOUT 600)
  set_property(TEST ${BRAIDDB_TEST_PREFIX}db_bench_script_test PROPERTY ENVIRONMENT "BRAIDDB_DB_BENCH=$<TARGET_FILE:db_bench>")
  set_property(TEST ${BRAIDDB_TEST_PREFIX}results_test PROPERTY ENVIRONMENT "BRAIDDB_DB_BENCH=$<TARGET_FILE:db_bench>")
  add_test(NAME ${BRAIDDB_TEST_PREFIX}tool_serve_browser_test
           COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/tool_serve_browser_test.py)
  set_tests_properties(${BRAIDDB_TEST_PREFIX}tool_serve_browser_test PROPERTIES
    LABELS "unit;ci" TIMEOUT 900 SKIP_RETURN_CODE 77
    ENVIRONMENT "BRAIDDB_TOOL=$<TARGET_FILE:braiddb_tool>;BRAIDDB_DB_BENCH=$<TARGET_FILE:db_bench>")
  add_dependencies(braiddb_ci braiddb_tool)
  set_property(TEST ${BRAIDDB_TEST_PREFIX}paper_test PROPERTY ENVIRONMENT "BRAIDDB_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  set_property(TEST ${BRAIDDB_TEST_PREFIX}report_test PROPERTY ENVIRONMENT "BRAIDDB_DB_BENCH=$<TARGET_FILE:db_bench>"
    "BRAIDDB_INDEX_BENCH=$<TARGET_FILE:index_bench>" "BRAIDDB_REPORT=${PROJECT_SOURCE_DIR}/tools/report")
  add_dependencies(braiddb_ci db_bench index_bench)
endif()
