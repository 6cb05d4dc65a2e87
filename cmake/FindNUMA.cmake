# Defines NUMA::numa (libnuma).
find_path(NUMA_INCLUDE_DIR NAMES numa.h)
find_library(NUMA_LIBRARY NAMES numa)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NUMA REQUIRED_VARS NUMA_LIBRARY NUMA_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "install libnuma-dev (scripts/setup does)")
mark_as_advanced(NUMA_INCLUDE_DIR NUMA_LIBRARY)

if(NUMA_FOUND AND NOT TARGET NUMA::numa)
  add_library(NUMA::numa UNKNOWN IMPORTED)
  set_target_properties(NUMA::numa PROPERTIES
    IMPORTED_LOCATION ${NUMA_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${NUMA_INCLUDE_DIR})
endif()
