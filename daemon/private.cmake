# SPDX-License-Identifier: Apache-2.0
# Control protocol and names (shared with the CLI), keeper, recording process, program headraced.
hr_library(headrace_private control/private.c control/control.c)
target_link_libraries(headrace_private PUBLIC headrace_text headrace_proto)

hr_library(headrace_keeper private/keeper.c private/kept.c private/private_worker.c node/live_link.c private/job_status.c private/private_uplink.c private/stragglers.c)
target_compile_definitions(headrace_keeper PRIVATE HEADRACE_VERSION="${PROJECT_VERSION}")
target_link_libraries(headrace_keeper PUBLIC headrace_private headrace_host headrace_fdstore headrace_uplink PkgConfig::UV)

add_subdirectory(service)

add_executable(headraced main.c uplink/uplink_command.c)
target_compile_definitions(headraced PRIVATE _GNU_SOURCE HEADRACE_VERSION="${PROJECT_VERSION}")
hr_flags(headraced)
target_link_libraries(headraced PRIVATE headrace_service headrace_keeper headrace_daemon headrace_uplink headrace_config)
install(TARGETS headraced RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/headrace COMPONENT node)

# headraced generates the man page from its table of options.
set(manual ${CMAKE_CURRENT_BINARY_DIR}/headraced.8)
add_custom_command(OUTPUT ${manual} COMMAND headraced --generate man > ${manual} DEPENDS headraced VERBATIM)
add_custom_target(headraced_manual ALL DEPENDS ${manual})
install(FILES ${manual} DESTINATION ${CMAKE_INSTALL_MANDIR}/man8 COMPONENT node)
