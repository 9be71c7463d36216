/* SPDX-License-Identifier: Apache-2.0 */
#include "common/outfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int hr_outfile_init(struct hr_outfile *o, const char *path)
{
	struct stat st;
	int r = stat(path, &st) == 0 ? 0 : -errno;

	*o = (struct hr_outfile){0};
	if (r < 0 && r != -ENOENT)
		return r;
	o->target = r == 0 ? realpath(path, NULL) : strdup(path);
	if (r == 0 && !S_ISREG(st.st_mode) && o->target == NULL)
		o->target = strdup(path); /* a pipe, as /dev/stdout may be, has no path */
	if (o->target == NULL)
		return -errno;
	if (r == 0 && !S_ISREG(st.st_mode))
		return 0;
	if (asprintf(&o->partial, "%s.partial-%d", o->target, (int)getpid()) < 0) {
		o->partial = NULL;
		hr_outfile_done(o);
		return -ENOMEM;
	}
	return 0;
}

const char *hr_outfile_name(const struct hr_outfile *o)
{
	return o->partial != NULL ? o->partial : o->target;
}

int hr_outfile_end(const struct hr_outfile *o, bool whole)
{
	int r = 0;

	if (o->partial == NULL)
		return 0;
	if (whole && rename(o->partial, o->target) < 0)
		r = -errno;
	if (!whole || r < 0)
		unlink(o->partial);
	return r;
}

void hr_outfile_done(struct hr_outfile *o)
{
	free(o->target);
	free(o->partial);
	*o = (struct hr_outfile){0};
}

FILE *hr_outfile_open(struct hr_outfile *o, const char *path, int *ret_err)
{
	FILE *to = NULL;

	*ret_err = hr_outfile_init(o, path);
	if (*ret_err == 0) {
		to = fopen(hr_outfile_name(o), "we");
		*ret_err = to == NULL ? -errno : 0;
	}
	if (to == NULL)
		hr_outfile_done(o);
	return to;
}

int hr_outfile_close(struct hr_outfile *o, FILE *to, bool whole)
{
	int err = ferror(to) ? -EIO : 0, r;

	if (fclose(to) != 0)
		err = -errno;
	r = hr_outfile_end(o, whole && err == 0);
	hr_outfile_done(o);
	return err < 0 ? err : r;
}
