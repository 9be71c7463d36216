# SPDX-License-Identifier: Apache-2.0
# Cross-builds for aarch64 with Debian's compiler. HEADRACE_SYSROOT is a root with the libraries, as scripts/aarch64-sysroot makes
# one; what is built runs under qemu, for the man pages that the programs write themselves.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(HEADRACE_SYSROOT "$ENV{HEADRACE_SYSROOT}" CACHE PATH "Root of an aarch64 Debian")
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HEADRACE_SYSROOT)

set(CMAKE_SYSROOT ${HEADRACE_SYSROOT})
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${HEADRACE_SYSROOT}) # package qemu-user-static

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${HEADRACE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${HEADRACE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${HEADRACE_SYSROOT}/usr/share/pkgconfig)
