/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refusal.h - why a folder cannot be a store, and what to do, in the words of run and doctor
 *
 * Owner     Constant texts.
 * Threads   Any.
 */
#ifndef HEADRACE_CLI_RUN_REFUSAL_H
#define HEADRACE_CLI_RUN_REFUSAL_H

/* Of an error of hr_store_create: "it holds other files and is no store". */
const char *hr_refusal_reason(int error);
const char *hr_refusal_fix(int error);

#endif
