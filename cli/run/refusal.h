/* SPDX-License-Identifier: Apache-2.0 */
/* refusal.h - texts of `headrace run` and `doctor`: why a folder cannot be a store */
#ifndef HEADRACE_CLI_RUN_REFUSAL_H
#define HEADRACE_CLI_RUN_REFUSAL_H

/* Return the reason for an error of hr_store_create, and a hint. */
const char *hr_refusal_reason(int error);
const char *hr_refusal_fix(int error);

#endif
