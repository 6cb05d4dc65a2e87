# The programs that scripts/test-vm runs in its virtual machine, and the short part of scripts/test-vm as a test. The test is
# skipped unless the environment variable BRAIDDB_TEST_VM is set: without KVM it takes minutes.
find_package(Boost REQUIRED COMPONENTS program_options)
find_package(Python3 3.9 COMPONENTS Interpreter)

foreach(name power_cut_client numa_client)
  add_executable(${name} ${PROJECT_SOURCE_DIR}/tests/vm/${name}.cc)
  braiddb_compile_options(${name} TEST)
  target_link_libraries(${name} PRIVATE braiddb_internal Boost::program_options)
  add_dependencies(braiddb_ci ${name})
endforeach()

if(Python3_FOUND AND TARGET braiddb_tool)
  add_test(NAME test_vm COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tests/vm/test_vm.py
           --if-asked --short --no-build --build ${PROJECT_BINARY_DIR} --work ${PROJECT_SOURCE_DIR}/build/vm)
  set_tests_properties(test_vm PROPERTIES LABELS "vm;ci" TIMEOUT 1200 PROCESSORS 2 SKIP_RETURN_CODE 77)
  add_dependencies(braiddb_ci braiddb_tool)
endif()
