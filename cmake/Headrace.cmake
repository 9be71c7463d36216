# SPDX-License-Identifier: Apache-2.0
# Flags live on targets: hr_flags() for every target of ours, hr_library() and hr_test() on top of it.

# Warnings, include root and sanitizers. NOSANITIZE for the shim, which is loaded into other people's programs.
function(hr_flags target)
  cmake_parse_arguments(ARG "NOSANITIZE" "" "" ${ARGN})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wpointer-arith -Wundef -Wvla -Werror=implicit-function-declaration -Werror=incompatible-pointer-types
    -fno-strict-aliasing -fno-common)
  if(HEADRACE_SANITIZE AND NOT ARG_NOSANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${HEADRACE_SANITIZE} -fno-omit-frame-pointer
      -fno-sanitize-recover=all)
    target_link_options(${target} PRIVATE -fsanitize=${HEADRACE_SANITIZE})
  endif()
  if(HEADRACE_FUZZ AND NOT ARG_NOSANITIZE) # the fuzzer must see into the libraries
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# A static library of core logic: hr_library(name SOURCES... ) then target_link_libraries as usual.
function(hr_library name)
  add_library(${name} STATIC ${ARGN})
  target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
  hr_flags(${name})
  if(CMAKE_CURRENT_SOURCE_DIR MATCHES "^${PROJECT_SOURCE_DIR}/tests/")
    hr_seldom(${name})
  endif()
endfunction()

# What scripts/test must know of a test is a label, so `ctest -L` and `ctest -LE` understand it, too. docs/testing.md explains them.
#
# hr_needs(TEST [CORES N] [MEMORY GIB] [ALONE]): what the test needs while it runs; by default, 0.5 GiB, and one core (a unit test)
# or half of one (other tests, which wait for the programs that they start). ALONE: nothing else may run at that time.
function(hr_needs test)
  cmake_parse_arguments(ARG "ALONE" "CORES;MEMORY" "" ${ARGN})
  if(ARG_CORES)
    set_property(TEST ${test} APPEND PROPERTY LABELS cores=${ARG_CORES})
  endif()
  if(ARG_MEMORY)
    set_property(TEST ${test} APPEND PROPERTY LABELS memory=${ARG_MEMORY})
  endif()
  if(ARG_ALONE)
    set_property(TEST ${test} APPEND PROPERTY LABELS alone)
  endif()
endfunction()

# hr_waits(TESTS...): they mostly wait.
function(hr_waits)
  foreach(test ${ARGN})
    hr_needs(${test} CORES 0.2)
  endforeach()
endfunction()

# hr_all(TEST REASON): only `scripts/test --all` runs the test.
function(hr_all test reason)
  set_property(TEST ${test} APPEND PROPERTY LABELS all)
endfunction()

# hr_precise(TEST): the test compares two measurements of time. It runs in `scripts/test --all` only, alone, and repeats its
# measurement until a stated confidence (tests/precise.py).
function(hr_precise test)
  hr_all(${test} "it measures time")
  hr_needs(${test} ALONE)
endfunction()

# hr_long(TEST SECONDS): the longest tests start first, so that none is left for the end. Seconds of the test when it runs alone.
function(hr_long test seconds)
  set_property(TEST ${test} PROPERTY COST ${seconds})
endfunction()

# A library whose functions run for every event. GCC clears and copies structures with `rep stos` and `rep movs`, which take
# some 30 cycles to start; libc's functions do not.
include(CheckCCompilerFlag)
check_c_compiler_flag(-mmemset-strategy=libcall:-1:noalign HEADRACE_HAVE_MEMSET_STRATEGY)
function(hr_hot target)
  target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O3>)
  if(HEADRACE_HAVE_MEMSET_STRATEGY)
    target_compile_options(${target} PRIVATE -mmemset-strategy=libcall:-1:noalign -mmemcpy-strategy=libcall:-1:noalign)
  endif()
endfunction()

# A table of texts: hr_embed(OUT.c LIST HEADER.h "struct TYPE" FILES...). The type has two members: the name of a file, and its text.
function(hr_embed out list header type)
  string(REPLACE ";" "\\;" files "${ARGN}")
  get_filename_component(folder ${ARGV4} DIRECTORY)
  file(GLOB parts CONFIGURE_DEPENDS ${folder}/parts/*.sql)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DLIST=${list} -DFILES=${files} -DHEADER=${header} -DTYPE=${type}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${ARGN} ${parts} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake ${PROJECT_SOURCE_DIR}/cmake/parts.cmake
    VERBATIM)
endfunction()

# hr_seldom(TARGETS...): targets that the target `all` has only with HEADRACE_ALL_TESTS.
function(hr_seldom)
  if(NOT HEADRACE_ALL_TESTS)
    set_target_properties(${ARGN} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()

# hr_unit(TARGET GROUP): scripts/test builds the groups unit_tests and thread_tests in the builds in which it runs no other test.
function(hr_unit target group)
  if(NOT TARGET ${group})
    add_custom_target(${group})
  endif()
  add_dependencies(${group} ${target})
  hr_seldom(${target})
endfunction()

# hr_threads(TESTS...): unit tests in which threads meet in memory that they share; scripts/test runs them under TSan, too.
function(hr_threads)
  foreach(test ${ARGN})
    set_property(TEST ${test} APPEND PROPERTY LABELS threads)
    hr_unit(${test} thread_tests)
  endforeach()
endfunction()

# hr_duckdb(TESTS...): unit tests that spend their time in DuckDB, which sanitizers slow down and do not check. scripts/test runs
# them in the release build.
function(hr_duckdb)
  set_property(TEST ${ARGN} APPEND PROPERTY LABELS duckdb)
  set_target_properties(${ARGN} PROPERTIES EXCLUDE_FROM_ALL OFF)
endfunction()

# A cmocka test program: hr_test(name SOURCES s... LIBS l... [LABELS l...])
function(hr_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  hr_unit(${name} unit_tests)
  target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
  hr_flags(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} cmocka)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "unit;${ARG_LABELS}"
    SKIP_RETURN_CODE 77)
endfunction()

# A libFuzzer target and the replay of its committed corpus in the normal suite: tests/fuzz/<name>.c defines
# LLVMFuzzerTestOneInput, tests/fuzz/corpus/<name>/ holds inputs.
function(hr_fuzz name)
  cmake_parse_arguments(ARG "" "" "LIBS" ${ARGN})
  add_executable(fuzz_${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/${name}.c)
  hr_unit(fuzz_${name} unit_tests)
  target_compile_definitions(fuzz_${name} PRIVATE _GNU_SOURCE)
  hr_flags(fuzz_${name})
  target_link_libraries(fuzz_${name} PRIVATE ${ARG_LIBS})
  if(HEADRACE_FUZZ)
    target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/replay.c)
  endif()
  add_test(NAME fuzz_${name}_corpus COMMAND fuzz_${name} -runs=0 ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
  set_tests_properties(fuzz_${name}_corpus PROPERTIES LABELS "fuzz")
endfunction()
