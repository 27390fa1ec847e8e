# A toolchain of `zig c++`, which comes from PyPI (ziglang) and compiles for all systems on any of them. Set
# ACCTSNE_ZIG, the program, and ACCTSNE_TARGET, zig's name of a system; packaging/wheels.py does.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ACCTSNE_ZIG ACCTSNE_TARGET)
# Checks need not link: for a program zig compiles its C++ library once more.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

if(ACCTSNE_TARGET MATCHES "-linux")
  set(CMAKE_SYSTEM_NAME Linux)
elseif(ACCTSNE_TARGET MATCHES "-macos")
  set(CMAKE_SYSTEM_NAME Darwin)
  set(CMAKE_OSX_SYSROOT "") # zig brings the headers and libraries
  set(CMAKE_OSX_DEPLOYMENT_TARGET "")
  set(CMAKE_INSTALL_NAME_TOOL false) # nothing that is installed has a library of ours to find
elseif(ACCTSNE_TARGET MATCHES "-windows")
  set(CMAKE_SYSTEM_NAME Windows)
endif()
string(REGEX MATCH "^[^-]+" CMAKE_SYSTEM_PROCESSOR "${ACCTSNE_TARGET}")

set(CMAKE_CXX_COMPILER "${ACCTSNE_ZIG}" c++)
# CMake links no program to find out what compiler this is, if that is told for which system to compile.
set(CMAKE_CXX_COMPILER_TARGET "${ACCTSNE_TARGET}")
set(CMAKE_AR "${ACCTSNE_ZIG}")
set(CMAKE_RANLIB "${ACCTSNE_ZIG}")
# CMake's own rules for a system come after this file, and those for overrides after them.
set(CMAKE_USER_MAKE_RULES_OVERRIDE_CXX "${CMAKE_CURRENT_LIST_DIR}/zig_rules.cmake")
