# The Python package in <build>/python, if Python's headers and nanobind are installed, and its tests, if pytest is. `pip install
# ./python` makes the package by itself, with python/CMakeLists.txt.
if(NOT TARGET braiddb_shared)
  return()
endif()
find_package(Python 3.9 QUIET COMPONENTS Interpreter OPTIONAL_COMPONENTS Development.Module)
if(NOT Python_Development.Module_FOUND)
  message(STATUS "No Python package: Python's headers are missing")
  return()
endif()
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
  OUTPUT_VARIABLE nanobind_DIR OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE nanobind_result ERROR_QUIET)
if(NOT nanobind_result EQUAL 0)
  message(STATUS "No Python package: nanobind is missing; docs/TESTING.md says how to install it")
  return()
endif()
find_package(nanobind CONFIG REQUIRED)

file(GLOB python_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/src/*.cc)
nanobind_add_module(braiddb_python NB_STATIC NOMINSIZE ${python_sources})
target_compile_features(braiddb_python PRIVATE cxx_std_20)
target_compile_options(braiddb_python PRIVATE -Wall -Wextra -Werror)
target_link_libraries(braiddb_python PRIVATE braiddb_shared)
set_target_properties(braiddb_python PROPERTIES
  OUTPUT_NAME _braiddb LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python/braiddb)
file(GLOB python_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/src/braiddb/*)
add_custom_command(TARGET braiddb_python POST_BUILD COMMAND ${CMAKE_COMMAND} -E copy ${python_files} ${PROJECT_BINARY_DIR}/python/braiddb)

if(BRAIDDB_BUILD_TESTS)
  add_test(NAME ${BRAIDDB_TEST_PREFIX}python_test
           COMMAND ${PROJECT_SOURCE_DIR}/python/tests/run ${Python_EXECUTABLE} ${PROJECT_BINARY_DIR}/python)
  set_tests_properties(${BRAIDDB_TEST_PREFIX}python_test PROPERTIES LABELS "unit;ci" TIMEOUT 300 SKIP_RETURN_CODE 77)
  add_dependencies(braiddb_ci braiddb_python)
endif()
