# Compiler settings shared by every target of the project.

# The code is compiled for the baseline CPU and runs on any x86-64; flush instructions are chosen at run time.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-Og -g")

if(BRAIDDB_SANITIZE)
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
  # g++ 12 sees uninitialized values in instrumented code of its own library; the builds without instrumentation check for them.
  add_compile_options(-Wno-maybe-uninitialized)
  add_compile_options(-fsanitize=${BRAIDDB_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${BRAIDDB_SANITIZE})
endif()

# Counts the library's folders only, also where tests inline their headers. Not optimized, so that a branch is one of the source.
if(BRAIDDB_COVERAGE)
  set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")
  list(JOIN braiddb_folders "|" coverage_folders)
  add_compile_options(--coverage -fprofile-update=atomic "-fprofile-filter-files=^${PROJECT_SOURCE_DIR}/(${coverage_folders})/[^/]*$")
  add_link_options(--coverage -Wl,--undefined=__gcov_dump)
endif()

find_program(BRAIDDB_CCACHE ccache)
if(BRAIDDB_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${BRAIDDB_CCACHE})
endif()

# STRICT adds the warning on narrowing conversions, which in a storage engine are bugs; tests do without.
# TEST is for tests' own code, which is long and runs once: optimized less, and not searched for undefined behaviour, it
# compiles in a seventh of the time under sanitizers.
function(braiddb_compile_options target)
  cmake_parse_arguments(arg "STRICT;TEST" "" "" ${ARGN})
  # A part of another program, such as the Python package, may be compiled with other flags, for which the compiler warns wrongly.
  set(errors "")
  if(PROJECT_IS_TOP_LEVEL)
    set(errors -Werror)
  endif()
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wshadow ${errors} -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-qual -Wundef -Wvla)
  if(arg_STRICT)
    target_compile_options(${target} PRIVATE -Wconversion)
  endif()
  if(arg_TEST AND BRAIDDB_SANITIZE)
    target_compile_options(${target} PRIVATE -O0 -fno-sanitize=undefined)
  elseif(arg_TEST AND NOT BRAIDDB_COVERAGE)
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()
