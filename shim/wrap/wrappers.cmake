# SPDX-License-Identifier: Apache-2.0
# The wrappers' sources and the export map, for targets that link them (shim/CMakeLists.txt, tests).
#
#   HR_WRAPPER_SOURCES   shim/wrap/wrap_*.c, absolute
#   HR_WRAPPER_OPTIONS   flags these sources need: no fortify, no builtin that turns one call into another
#   HR_EXPORT_MAP        linker version script, generated from proto/calls.def; depend on target hr_export_map
set(HR_WRAPPER_SOURCES
  wrap_table.c wrap_open.c wrap_fd.c wrap_stdio.c wrap_dir.c wrap_map.c wrap_aio.c wrap_libaio.c wrap_process.c wrap_exec.c
  wrap_syscall.c wrap_dl.c)
list(TRANSFORM HR_WRAPPER_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
set(HR_WRAPPER_OPTIONS -fno-builtin -U_FORTIFY_SOURCE -U_FILE_OFFSET_BITS -fno-stack-protector)

set(HR_EXPORT_MAP ${PROJECT_BINARY_DIR}/shim/exports.map)
if(NOT TARGET hr_export_map)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/shim)
  add_custom_command(
    OUTPUT ${HR_EXPORT_MAP}
    COMMAND ${CMAKE_C_COMPILER} -E -P -x c -I ${PROJECT_SOURCE_DIR} -o ${HR_EXPORT_MAP}
      ${CMAKE_CURRENT_LIST_DIR}/exports.map.in
    DEPENDS ${CMAKE_CURRENT_LIST_DIR}/exports.map.in ${PROJECT_SOURCE_DIR}/proto/calls.def
    VERBATIM)
  add_custom_target(hr_export_map DEPENDS ${HR_EXPORT_MAP})
endif()
