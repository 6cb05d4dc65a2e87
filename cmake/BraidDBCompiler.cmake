# Compiler settings shared by every target of the project.

# The code is compiled for the baseline CPU and runs on any x86-64; flush instructions are chosen at run time.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-Og -g")

if(BRAIDDB_SANITIZE)
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
  # g++ 12 sees uninitialized values in instrumented code of its own library; the builds without instrumentation check for them.
  add_compile_options(-Wno-maybe-uninitialized)
  # The check of virtual calls (vptr) opens a pipe, and calls an object wrong where a test has taken all file descriptors.
  add_compile_options(-fsanitize=${BRAIDDB_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)
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
  # With precompiled headers ccache needs leave not to look at macros of the time.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${BRAIDDB_CCACHE})
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

# Standard headers are parsed once for all files of a target. braiddb_precompile(<target> [<headers>...]), or
# braiddb_precompile(<target> REUSE_FROM <other target with the same options>).
#
# A file that lacks an #include still compiles with them. scripts/check compiles each changed file of the library alone.
option(BRAIDDB_PRECOMPILE "Precompile the standard headers" ON)
set(braiddb_standard_headers
  <algorithm> <array> <atomic> <bit> <chrono> <condition_variable> <cstdint> <cstring> <deque> <filesystem> <functional> <map>
  <memory> <mutex> <optional> <set> <span> <string> <string_view> <thread> <unordered_map> <unordered_set> <utility> <vector>)
function(braiddb_precompile target)
  if(NOT BRAIDDB_PRECOMPILE)
    return()
  endif()
  # g++ 12 warns wrongly of inlined code of precompiled system headers.
  target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict)
  if("${ARGV1}" STREQUAL "REUSE_FROM")
    target_precompile_headers(${target} REUSE_FROM ${ARGV2})
  else()
    target_precompile_headers(${target} PRIVATE ${braiddb_standard_headers} ${ARGN})
  endif()
endfunction()

# Several small sources are compiled as one, so that each header is parsed once for all of them.
# braiddb_unity(<target> <sources>...)
#
# GROUPS  Sources of one folder make groups of up to braiddb_group_size, in the order of their names. So names in anonymous
#         namespaces are unique in their folder.
# OUT     A source with options or definitions of its own is compiled alone.
# BRAIDDB_UNITY=OFF compiles each source alone.
option(BRAIDDB_UNITY "Compile sources of a folder together" ON)
set(braiddb_group_size 12)
function(braiddb_unity target)
  if(NOT BRAIDDB_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  set(last "")
  set(count 0)
  foreach(source IN LISTS ARGN)
    get_filename_component(folder ${source} DIRECTORY)
    if(NOT folder STREQUAL last)
      set(last ${folder})
      set(count 0)
    endif()
    file(RELATIVE_PATH group ${PROJECT_SOURCE_DIR} ${folder})
    string(REPLACE "/" "_" group ${group})
    math(EXPR number "${count} / ${braiddb_group_size}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}_${number})
    math(EXPR count "${count} + 1")
  endforeach()
endfunction()
