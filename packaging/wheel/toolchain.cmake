# SPDX-License-Identifier: Apache-2.0
# Links headrace with the static libraries that scripts/wheel gathers in third_party/wheel, for $HEADRACE_WHEEL_MACHINE.
set(root ${CMAKE_CURRENT_LIST_DIR}/../../third_party/wheel/$ENV{HEADRACE_WHEEL_MACHINE})
if(NOT "$ENV{HEADRACE_WHEEL_MACHINE}" STREQUAL "${CMAKE_HOST_SYSTEM_PROCESSOR}")
  set(CMAKE_SYSTEM_NAME Linux)
  set(CMAKE_SYSTEM_PROCESSOR $ENV{HEADRACE_WHEEL_MACHINE})
  # What is built runs under qemu, for the man pages that the programs write themselves.
  set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${CMAKE_SYSTEM_PROCESSOR}-static -L ${CMAKE_CURRENT_LIST_DIR}/../../third_party/${CMAKE_SYSTEM_PROCESSOR})
endif()
set(CMAKE_C_COMPILER ${CMAKE_CURRENT_LIST_DIR}/cc)
set(CMAKE_AR /usr/bin/ar)
set(CMAKE_RANLIB /usr/bin/ranlib)
set(CMAKE_FIND_ROOT_PATH ${root})
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
set(ENV{PKG_CONFIG_LIBDIR} ${root}/lib/pkgconfig)
