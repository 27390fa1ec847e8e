# Rules of zig, one program for all tools, that come after CMake's own for a system (packaging/zig.cmake).
set(CMAKE_CXX_ARCHIVE_CREATE "<CMAKE_AR> ar qc <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_APPEND "<CMAKE_AR> ar q <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_FINISH "<CMAKE_RANLIB> ranlib <TARGET>")
if(APPLE)
  # zig 0.17 crashes on linking a bundle. Python loads a library as well.
  set(CMAKE_SHARED_MODULE_CREATE_CXX_FLAGS -dynamiclib)
endif()
