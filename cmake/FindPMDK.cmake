# Defines PMDK::pmem, PMDK::pmemobj and, where installed (only tests need it), PMDK::pmempool.
find_path(PMDK_INCLUDE_DIR NAMES libpmemobj.h)
find_library(PMDK_PMEM_LIBRARY NAMES pmem)
find_library(PMDK_PMEMOBJ_LIBRARY NAMES pmemobj)
find_library(PMDK_PMEMPOOL_LIBRARY NAMES pmempool)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PMDK
  REQUIRED_VARS PMDK_PMEMOBJ_LIBRARY PMDK_PMEM_LIBRARY PMDK_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "install libpmemobj-dev and libpmem-dev (scripts/setup does)")
mark_as_advanced(PMDK_INCLUDE_DIR PMDK_PMEM_LIBRARY PMDK_PMEMOBJ_LIBRARY PMDK_PMEMPOOL_LIBRARY)

foreach(component PMEM PMEMOBJ PMEMPOOL)
  string(TOLOWER ${component} name)
  if(PMDK_FOUND AND PMDK_${component}_LIBRARY AND NOT TARGET PMDK::${name})
    add_library(PMDK::${name} UNKNOWN IMPORTED)
    set_target_properties(PMDK::${name} PROPERTIES
      IMPORTED_LOCATION ${PMDK_${component}_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${PMDK_INCLUDE_DIR})
  endif()
endforeach()
