# db_bench (one executable from db_bench/*.cc) and the tools (one from each tools/*.cc).
find_package(Boost REQUIRED COMPONENTS program_options)

# The allocator of the executables: never of the library, and not under sanitizers, which bring their own.
find_library(BRAIDDB_JEMALLOC NAMES jemalloc)
function(braiddb_add_tool name)
  add_executable(${name} ${ARGN})
  braiddb_compile_options(${name} STRICT)
  target_link_libraries(${name} PRIVATE braiddb_internal Boost::program_options)
  if(BRAIDDB_JEMALLOC AND NOT BRAIDDB_SANITIZE)
    target_link_libraries(${name} PRIVATE ${BRAIDDB_JEMALLOC})
  endif()
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

file(GLOB db_bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/db_bench/*.cc)
if(db_bench_sources)
  braiddb_add_tool(db_bench ${db_bench_sources})
endif()

file(GLOB tool_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/*.cc)
foreach(source IN LISTS tool_sources)
  get_filename_component(name ${source} NAME_WE)
  braiddb_add_tool(${name} ${source})
endforeach()
