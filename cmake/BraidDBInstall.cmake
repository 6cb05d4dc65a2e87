# `cmake --install`, in components:
#   library   public headers, the static library, the link libbraiddb.so, and what find_package(braiddb) and pkg-config need
#   runtime   libbraiddb.so.<n>
#   dropin    the libraries that stand in for RocksDB's and LevelDB's, and braiddb-run
#   tools     the programs, their manual pages, and what bash completes
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/braiddb)
install(TARGETS braiddb EXPORT braiddbTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
if(TARGET braiddb_shared)
  install(TARGETS braiddb_shared EXPORT braiddbTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT library)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/braiddb DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
# Beside the system's libraries and not among them: whoever wants them names the directory in LD_LIBRARY_PATH.
if(TARGET rocksdb_dropin)
  install(TARGETS rocksdb_dropin leveldb_dropin
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/braiddb-dropin COMPONENT dropin NAMELINK_SKIP)
  # Relative to the program, so that it holds for any --prefix.
  file(RELATIVE_PATH braiddb_dropin_path /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${CMAKE_INSTALL_LIBDIR}/braiddb-dropin)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/braiddb-run.in ${PROJECT_BINARY_DIR}/braiddb-run @ONLY)
  install(PROGRAMS ${PROJECT_BINARY_DIR}/braiddb-run DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT dropin)
  install(FILES ${PROJECT_SOURCE_DIR}/docs/man/braiddb-run.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT dropin)
endif()
if(BRAIDDB_BUILD_BENCH)
  install(FILES ${PROJECT_SOURCE_DIR}/docs/man/braiddb.1 ${PROJECT_SOURCE_DIR}/docs/man/db_bench.1
    DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
  install(FILES ${PROJECT_SOURCE_DIR}/tools/completion/braiddb
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT tools)
endif()
install(EXPORT braiddbTargets NAMESPACE braiddb:: DESTINATION ${package_dir} COMPONENT library)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/braiddbConfig.cmake.in
  ${PROJECT_BINARY_DIR}/braiddbConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/braiddbConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/braiddbConfig.cmake ${PROJECT_BINARY_DIR}/braiddbConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindPMDK.cmake ${PROJECT_SOURCE_DIR}/cmake/FindNUMA.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindXxHash.cmake
  DESTINATION ${package_dir} COMPONENT library)

# Relative to the file, so that it holds for any --prefix.
file(RELATIVE_PATH braiddb_pc_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
# braiddb-c is for programs in C, whose compiler knows no -std=c++20.
# The shared library names what it needs itself; who links with the static one asks for --static.
set(braiddb_needs "-lpmemobj -lpmem -lnuma -lxxhash -lpthread -lstdc++ -lm")
if(TARGET braiddb_shared)
  set(braiddb_pc_libs "")
  set(braiddb_pc_private "Libs.private: ${braiddb_needs}\n")
else()
  set(braiddb_pc_libs " ${braiddb_needs}")
  set(braiddb_pc_private "")
endif()
foreach(braiddb_pc_name braiddb braiddb-c)
  set(braiddb_pc_standard "")
  if(braiddb_pc_name STREQUAL "braiddb")
    set(braiddb_pc_standard " -std=c++20")
  endif()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/braiddb.pc.in ${PROJECT_BINARY_DIR}/${braiddb_pc_name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${braiddb_pc_name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
endforeach()

# What is installed has no debug information, which is five sixths of the library, unless it is asked for.
option(BRAIDDB_INSTALL_DEBUG "Install the library and the programs with their debug information" OFF)
function(braiddb_strip_installed component)
  if(BRAIDDB_INSTALL_DEBUG OR NOT CMAKE_STRIP)
    return()
  endif()
  install(CODE "
    file(GLOB installed LIST_DIRECTORIES false \"${ARGN}\")
    foreach(file IN LISTS installed)
      execute_process(COMMAND ${CMAKE_STRIP} --strip-debug \"\${file}\" COMMAND_ERROR_IS_FATAL ANY)
    endforeach()" COMPONENT ${component})
endfunction()
set(braiddb_installed "\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}")
braiddb_strip_installed(library "${braiddb_installed}/${CMAKE_INSTALL_LIBDIR}/libbraiddb.a")
if(TARGET braiddb_shared)
  braiddb_strip_installed(runtime "${braiddb_installed}/${CMAKE_INSTALL_LIBDIR}/libbraiddb.so.*")
endif()
foreach(tool db_bench index_bench db_stress braiddb)
  braiddb_strip_installed(tools "${braiddb_installed}/${CMAKE_INSTALL_BINDIR}/${tool}")
endforeach()
if(TARGET rocksdb_dropin)
  braiddb_strip_installed(dropin "${braiddb_installed}/${CMAKE_INSTALL_LIBDIR}/braiddb-dropin/*.so*")
endif()
