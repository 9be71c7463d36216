/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stores.h - the stores of a folder, and the one that a command takes if the user names none
 *
 * A store here is a folder with the file headrace.store. One thread.
 */
#ifndef HEADRACE_CLI_STORES_H
#define HEADRACE_CLI_STORES_H

#include "common/near.h"
#include "store/store.h"

struct hr_found_store {
	char *path; /* "./NAME", "FOLDER/NAME", or the folder itself */
	struct hr_store_outline outline;
};

struct hr_found_stores {
	struct hr_found_store *list; /* sorted by hr_store_outline.changed_ns, the newest first */
	size_t n, room;
};

/*
 * Adds the folder if it is a store, else the stores that are directly in the folder. `sizes`: see
 * hr_store_outline. Returns 0 or the error of the folder. Call hr_stores_done also after a failure.
 */
int hr_stores_find(const char *folder, bool sizes, struct hr_found_stores *to);
void hr_stores_done(struct hr_found_stores *s);

/* Adds the folder if it is a store. Returns 0 or -ENOMEM. */
int hr_stores_add(const char *path, bool sizes, struct hr_found_stores *to);
void hr_stores_sort(struct hr_found_stores *s);

/*
 * Returns the path of the newest store in the working directory that has a job and belongs to the
 * caller (malloc'ed), and reports it. Returns NULL after it has reported that it found none.
 */
char *hr_stores_take_newest(void);

/* Reports that nothing is at `path`, and names the nearest store in its folder. */
void hr_stores_report_missing(const char *path);

/* Adds the stores of the working directory as candidates for a mistyped word. */
void hr_stores_near(struct hr_near *near);

/* Return why a folder cannot be a store, for an error of hr_store_create, and a hint. */
const char *hr_refusal_reason(int error);
const char *hr_refusal_fix(int error);

#endif
