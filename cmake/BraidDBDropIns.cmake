# Libraries that stand in for others: librocksdb.so.7.8 and libleveldb.so.1d, in <build>/dropin, for LD_LIBRARY_PATH. They are the
# objects of BraidDBShared.cmake, with the functions of the C API under the other names: capi/functions.txt says which. Nothing
# else is exported, so that a process may have both, and any other library.
option(BRAIDDB_BUILD_DROPINS "Build librocksdb.so.7.8 and libleveldb.so.1d" ${PROJECT_IS_TOP_LEVEL})
# Not of instrumented code: programs that know nothing of it load them.
if(NOT BRAIDDB_BUILD_DROPINS OR NOT TARGET braiddb_pic)
  return()
endif()

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

  add_library(${target} SHARED $<TARGET_OBJECTS:braiddb_pic> $<TARGET_OBJECTS:braiddb_pic_dropin>)
  set_target_properties(${target} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/dropin
    OUTPUT_NAME ${prefix} VERSION ${version} SOVERSION ${soname}
    LINKER_LANGUAGE CXX
    LINK_DEPENDS "${PROJECT_BINARY_DIR}/${target}.aliases;${PROJECT_BINARY_DIR}/${target}.exports")
  target_link_options(${target} PRIVATE
    ${PROJECT_BINARY_DIR}/${target}.aliases -Wl,--version-script=${PROJECT_BINARY_DIR}/${target}.exports)
  braiddb_link_shared(${target})
endfunction()
braiddb_add_dropin(rocksdb_dropin rocksdb 7.8 7.8.3)
braiddb_add_dropin(leveldb_dropin leveldb 1d 1.23.0)
