# power_cut_client, which scripts/test-vm runs in its virtual machine, and the short part of scripts/test-vm as a test. The test
# is skipped unless the environment variable BRAIDDB_TEST_VM is set: without KVM it takes minutes.
find_package(Boost REQUIRED COMPONENTS program_options)
find_package(Python3 3.9 COMPONENTS Interpreter)

add_executable(power_cut_client ${PROJECT_SOURCE_DIR}/tests/vm/power_cut_client.cc)
braiddb_compile_options(power_cut_client TEST)
target_link_libraries(power_cut_client PRIVATE braiddb_internal Boost::program_options)
add_dependencies(braiddb_ci power_cut_client)

if(Python3_FOUND AND TARGET braiddb_tool)
  add_test(NAME test_vm COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tests/vm/test_vm.py
           --if-asked --short --no-build --build ${PROJECT_BINARY_DIR} --work ${PROJECT_SOURCE_DIR}/build/vm)
  set_tests_properties(test_vm PROPERTIES LABELS "vm;ci" TIMEOUT 1200 PROCESSORS 2 SKIP_RETURN_CODE 77)
  add_dependencies(braiddb_ci braiddb_tool)
endif()
