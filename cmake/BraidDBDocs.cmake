# Tests of the documents: their code blocks run, their links lead somewhere, their pictures are current, and the site builds.
find_package(Python3 3.9 COMPONENTS Interpreter)
if(NOT Python3_FOUND)
  return()
endif()
set(docs_tests ${PROJECT_SOURCE_DIR}/tests/docs)
add_test(NAME docs_links_test COMMAND ${Python3_EXECUTABLE} ${docs_tests}/docs_links_test.py)
set_tests_properties(docs_links_test PROPERTIES LABELS "docs;ci" TIMEOUT 300)

# Skipped where mkdocs is missing: scripts/docs installs it.
add_test(NAME docs_site_test COMMAND ${Python3_EXECUTABLE} ${docs_tests}/docs_site_test.py)
set_tests_properties(docs_site_test PROPERTIES LABELS "docs;ci" TIMEOUT 900 SKIP_RETURN_CODE 77)

if(TARGET braiddb_shared AND TARGET braiddb_tool)
  add_test(NAME docs_blocks_test COMMAND ${Python3_EXECUTABLE} ${docs_tests}/docs_blocks_test.py)
  set_tests_properties(docs_blocks_test PROPERTIES LABELS "docs;ci" TIMEOUT 900 ENVIRONMENT
    "BRAIDDB_BUILD=${PROJECT_BINARY_DIR};BRAIDDB_LIBRARY=$<TARGET_FILE:braiddb_shared>;CXX=${CMAKE_CXX_COMPILER};CC=${CMAKE_C_COMPILER};BRAIDDB_PYTHON=${Python_EXECUTABLE}")
  add_dependencies(braiddb_ci braiddb_shared braiddb_tool db_bench)
endif()
