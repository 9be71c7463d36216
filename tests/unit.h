/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit.h - cmocka, with the headers that it needs in front of it
 *
 * cmocka gives `state` to every test, and few tests use it. So parameters may be unused in files
 * that include this header.
 */
#ifndef HEADRACE_TESTS_UNIT_H
#define HEADRACE_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

#endif
