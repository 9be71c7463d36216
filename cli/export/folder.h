/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.h - an output folder, whose content appears when it is complete
 *
 *      hr_export_folder_begin --> write into `partial` --> hr_export_folder_end
 *
 * `partial` is a new folder in the folder of the target, or, if the target exists, in it. From
 * begin on, the calling thread blocks SIGINT and SIGTERM: a query takes them, and removes `partial`
 * (hr_query_request.folder_partial) if it must end the process at once. One thread.
 */
#ifndef HEADRACE_CLI_EXPORT_FOLDER_H
#define HEADRACE_CLI_EXPORT_FOLDER_H

#include <stdbool.h>

struct hr_export_folder {
	char *target;
	char *partial; /* NULL: none was created */
	bool exists;   /* the target existed before */
};

/*
 * Creates `partial`. `add`: the folder may have other files; otherwise it is empty or new. Returns
 * an exit status, after it has reported an error. Call hr_export_folder_end in all cases.
 */
int hr_export_folder_begin(struct hr_export_folder *f, const char *path, bool add);

/*
 * `status` EXIT_SUCCESS: the content gets its name. Otherwise it is removed. Frees everything, and
 * returns the exit status.
 */
int hr_export_folder_end(struct hr_export_folder *f, int status);

#endif
