/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refusal.h - texts of run and doctor: why a folder cannot be a store, and what to do
 *
 * Owner     Constant texts.
 * Threads   Any.
 */
#ifndef HEADRACE_CLI_RUN_REFUSAL_H
#define HEADRACE_CLI_RUN_REFUSAL_H

/* The reason of an error of hr_store_create, and the hint. */
const char *hr_refusal_reason(int error);
const char *hr_refusal_fix(int error);

#endif
