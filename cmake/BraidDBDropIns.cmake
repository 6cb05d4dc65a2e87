# Libraries that stand in for others: librocksdb.so.7.8 and libleveldb.so.1d, in <build>/dropin, for LD_LIBRARY_PATH. They are the
# library's objects, compiled once more as position-independent code, with the functions of the C API under the other names:
# capi/functions.txt says which. Nothing else is exported, so that a process may have both, and any other library.
option(BRAIDDB_BUILD_DROPINS "Build librocksdb.so.7.8 and libleveldb.so.1d" ${PROJECT_IS_TOP_LEVEL})
# Not of instrumented code: programs that know nothing of it load them.
if(NOT BRAIDDB_BUILD_DROPINS OR BRAIDDB_SANITIZE OR BRAIDDB_COVERAGE)
  return()
endif()

add_library(braiddb_pic OBJECT ${braiddb_sources})
braiddb_engine_target(braiddb_pic)
set_target_properties(braiddb_pic PROPERTIES
  POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
# Thread-local variables are a few hundred bytes: they fit what glibc keeps for libraries that are loaded late, and cost as little
# as in a program.
target_compile_options(braiddb_pic PRIVATE -ftls-model=initial-exec)
target_compile_definitions(braiddb_pic PRIVATE BRAIDDB_DROPIN)  # capi/open_options.cc

# braiddb_add_dropin(<target> <prefix> <soname> <version>)
function(braiddb_add_dropin target prefix soname version)
  file(STRINGS ${PROJECT_SOURCE_DIR}/capi/functions.txt lines REGEX "^[^#]")
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/capi/functions.txt)
  set(aliases "")
  set(exports "")
  foreach(line IN LISTS lines)
    string(REPLACE " " ";" words "${line}")
    list(POP_FRONT words name)
    if("${prefix}*" IN_LIST words)
      string(APPEND aliases "${prefix}_${name} = braiddb_${prefix}_${name};\n")
    elseif(prefix IN_LIST words)
      string(APPEND aliases "${prefix}_${name} = braiddb_${name};\n")
    else()
      continue()
    endif()
    string(APPEND exports "    ${prefix}_${name};\n")
  endforeach()
  # Read by the linker as scripts: other names of functions, and what is exported.
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${target}.aliases CONTENT "${aliases}" @ONLY)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${target}.exports CONTENT "{\n  global:\n${exports}  local:\n    *;\n};\n" @ONLY)

  add_library(${target} SHARED $<TARGET_OBJECTS:braiddb_pic>)
  set_target_properties(${target} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/dropin
    OUTPUT_NAME ${prefix} VERSION ${version} SOVERSION ${soname}
    LINKER_LANGUAGE CXX
    LINK_DEPENDS "${PROJECT_BINARY_DIR}/${target}.aliases;${PROJECT_BINARY_DIR}/${target}.exports")
  target_link_options(${target} PRIVATE
    ${PROJECT_BINARY_DIR}/${target}.aliases -Wl,--version-script=${PROJECT_BINARY_DIR}/${target}.exports
    -Wl,--no-undefined -Wl,--gc-sections -Wl,-z,relro
    # libpmemobj keeps addresses of functions in here (pmem/pmdk_memory.h).
    -Wl,-z,nodelete)
  target_link_libraries(${target} PRIVATE PMDK::pmemobj PMDK::pmem NUMA::numa XxHash::xxhash Threads::Threads)
endfunction()
braiddb_add_dropin(rocksdb_dropin rocksdb 7.8 7.8.3)
braiddb_add_dropin(leveldb_dropin leveldb 1d 1.23.0)
