# cmake -D SOURCE=folder -D HEADER=file -P WriteCommit.cmake: writes the header that names the commit checked out in the folder, with
# "-dirty" if there is more than it. Empty without git or without a repository. Writes only what changes.
cmake_minimum_required(VERSION 3.21)
find_package(Git QUIET)
set(commit "")
if(GIT_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE result)
  if(result)
    set(commit "")
  endif()
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#pragma once\n\ninline constexpr const char* kBraidDbCommit = \"@commit@\";\n" @ONLY)
