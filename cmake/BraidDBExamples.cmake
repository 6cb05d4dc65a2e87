# examples/*.c and *.cc: programs that use the library as others would. Each is compiled as C99 or C++20, with no more than the
# public headers, and is a test: it gets the path of a directory that is not there, and ends with 0.
file(GLOB example_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.c ${PROJECT_SOURCE_DIR}/examples/*.cc)
foreach(source IN LISTS example_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  set_target_properties(${name} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(${name} PRIVATE -pedantic -Wall -Wextra -Werror)
  target_link_libraries(${name} PRIVATE braiddb)
  add_test(NAME ${BRAIDDB_TEST_PREFIX}${name}
           COMMAND ${PROJECT_SOURCE_DIR}/tests/support/in_empty_directory $<TARGET_FILE:${name}>)
  set_tests_properties(${BRAIDDB_TEST_PREFIX}${name} PROPERTIES LABELS example TIMEOUT 120)
  if(NOT BRAIDDB_SANITIZE MATCHES "thread")
    set_tests_properties(${BRAIDDB_TEST_PREFIX}${name} PROPERTIES LABELS "example;ci")
    add_dependencies(braiddb_ci ${name})
  endif()
endforeach()

# The same programs with an installed library.
if(PROJECT_IS_TOP_LEVEL AND NOT BRAIDDB_SANITIZE AND NOT BRAIDDB_COVERAGE)
  add_test(NAME ${BRAIDDB_TEST_PREFIX}installed_examples
           COMMAND ${PROJECT_SOURCE_DIR}/tests/support/use_installed ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
  set_tests_properties(${BRAIDDB_TEST_PREFIX}installed_examples PROPERTIES LABELS "example;ci" TIMEOUT 300)
  add_dependencies(braiddb_ci braiddb)
  if(TARGET braiddb_shared)
    add_dependencies(braiddb_ci braiddb_shared)
  endif()
endif()

# examples/resp_server, a server that speaks Redis's protocol. The test speaks to it through sockets.
add_executable(resp_server ${PROJECT_SOURCE_DIR}/examples/resp_server/resp_server.cc)
target_compile_options(resp_server PRIVATE -pedantic -Wall -Wextra -Werror)
target_link_libraries(resp_server PRIVATE braiddb)
find_package(Python3 3.9 COMPONENTS Interpreter)
if(Python3_FOUND AND NOT BRAIDDB_SANITIZE MATCHES "thread")
  add_test(NAME ${BRAIDDB_TEST_PREFIX}resp_server_test
           COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tests/resp_server_test.py $<TARGET_FILE:resp_server>)
  set_tests_properties(${BRAIDDB_TEST_PREFIX}resp_server_test PROPERTIES LABELS "example;ci" TIMEOUT 300)
  add_dependencies(braiddb_ci resp_server)
endif()

# examples/cluster on this build's drop-in library. The test uses the program that scripts/cluster build has made; without it, the
# test is skipped. Nothing is downloaded.
if(PROJECT_IS_TOP_LEVEL AND TARGET rocksdb_dropin AND Python3_FOUND)
  add_test(NAME cluster_test COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tests/cluster/cluster_test.py
           --dropin ${PROJECT_BINARY_DIR}/dropin --work ${PROJECT_SOURCE_DIR}/build/cluster)
  set_tests_properties(cluster_test PROPERTIES LABELS "example;ci" TIMEOUT 600 PROCESSORS 2 SKIP_RETURN_CODE 77)
  add_dependencies(braiddb_ci rocksdb_dropin)
endif()
