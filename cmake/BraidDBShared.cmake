# The library's objects as position-independent code, and of these libbraiddb.so.<n>. The static library and the drop-in libraries
# have the same objects.
#
# Exported are the public headers' classes and functions (`#pragma GCC visibility` there) and the C API, all with the version
# BRAIDDB_<n>. tests/abi/exported_symbols.txt lists them; the test `abi` compares.
# SONAME  <n> is raised when a program that was linked before may no longer run: a function is gone, a public class has another
#         layout or another virtual function. Until 1.0 each minor version may do that.
option(BRAIDDB_BUILD_SHARED "Build libbraiddb.so and what is made of the same objects" ${PROJECT_IS_TOP_LEVEL})
# Not of instrumented code: there the library itself is shared.
if(NOT BRAIDDB_BUILD_SHARED OR BRAIDDB_SANITIZE OR BRAIDDB_COVERAGE)
  return()
endif()
set(BRAIDDB_SOVERSION 0)

# Of this one file the drop-in libraries have another form.
set(braiddb_two_forms ${PROJECT_SOURCE_DIR}/capi/open_options.cc)
set(braiddb_one_form ${braiddb_sources})
list(REMOVE_ITEM braiddb_one_form ${braiddb_two_forms})

function(braiddb_add_pic target)
  add_library(${target} OBJECT ${ARGN})
  braiddb_engine_target(${target})
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  # Thread-local variables are a few hundred bytes: they fit what glibc keeps for libraries that are loaded late, and cost as
  # little as in a program. A call from inside stays inside.
  target_compile_options(${target} PRIVATE -ftls-model=initial-exec -fno-semantic-interposition)
endfunction()
braiddb_add_pic(braiddb_pic ${braiddb_one_form})
braiddb_precompile(braiddb_pic)
braiddb_unity(braiddb_pic ${braiddb_one_form})
braiddb_add_pic(braiddb_pic_plain ${braiddb_two_forms})
braiddb_add_pic(braiddb_pic_dropin ${braiddb_two_forms})
target_compile_definitions(braiddb_pic_dropin PRIVATE BRAIDDB_DROPIN)

# What every shared library of these objects links with.
function(braiddb_link_shared target)
  target_link_options(${target} PRIVATE
    -Wl,--no-undefined -Wl,--gc-sections -Wl,-z,relro
    # libpmemobj keeps addresses of functions in here (pmem/pmdk_memory.h).
    -Wl,-z,nodelete)
  target_link_libraries(${target} PRIVATE PMDK::pmemobj PMDK::pmem NUMA::numa XxHash::xxhash Threads::Threads)
endfunction()

add_library(braiddb_shared SHARED $<TARGET_OBJECTS:braiddb_pic> $<TARGET_OBJECTS:braiddb_pic_plain>)
set(braiddb_exports ${PROJECT_SOURCE_DIR}/cmake/braiddb.exports)
set_target_properties(braiddb_shared PROPERTIES
  OUTPUT_NAME braiddb VERSION ${BRAIDDB_SOVERSION}.${PROJECT_VERSION} SOVERSION ${BRAIDDB_SOVERSION}
  EXPORT_NAME shared LINKER_LANGUAGE CXX LINK_DEPENDS ${braiddb_exports})
target_compile_features(braiddb_shared INTERFACE cxx_std_20)
target_include_directories(braiddb_shared INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_options(braiddb_shared PRIVATE -Wl,--version-script=${braiddb_exports})
braiddb_link_shared(braiddb_shared)
add_library(braiddb::shared ALIAS braiddb_shared)
