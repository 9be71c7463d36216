/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/model/model.h"
#include "common/array.h"
#include "common/near.h"
#include "model/extrap_file.h"

#define FILE_BYTES_MOST (UINT64_C(1) << 30)
#define READ_BYTES	65536u

struct bytes {
	char *data;
	size_t n, room;
};

/* Reads a file to its end. Returns 0 or -errno; -EFBIG: it is too large. */
static int file_load(const char *path, struct bytes *to)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = 1;
	int r = 0;

	if (fd < 0)
		return -errno;
	while (got > 0 && r == 0) {
		if (!hr_array_fit(to->data, to->n + READ_BYTES, to->room)) {
			r = -ENOMEM;
			break;
		}
		got = read(fd, to->data + to->n, READ_BYTES);
		if (got > 0)
			to->n += (size_t)got;
		else if (got < 0 && errno == EINTR)
			got = 1;
		else if (got < 0)
			r = -errno;
		if (to->n > FILE_BYTES_MOST)
			r = -EFBIG;
	}
	close(fd);
	return r;
}

static int file_read(const char *path, struct hr_measurements *to)
{
	struct bytes bytes = {0};
	char *error = NULL;
	int r = file_load(path, &bytes);

	if (r == 0)
		r = hr_extrap_read(bytes.data, bytes.n, to, &error);
	free(bytes.data);
	if (r < 0)
		hr_report("cannot read %s: %s%s", hr_near_quoted(path).s,
			  error != NULL ? error : strerrordesc_np(-r),
			  r == -EBADMSG ? HR_HINT
			      "headrace model reads Extra-P's text format and JSON lines"
					: "");
	free(error);
	return r < 0 ? -1 : 0;
}

int hr_model_input_read(const char *const *files, size_t n, struct hr_model_input *to)
{
	for (size_t i = 0; i < n; i++)
		if (file_read(files[i], &to->measurements) < 0)
			return -1;
	return 0;
}

void hr_model_input_done(struct hr_model_input *input)
{
	hr_measurements_done(&input->measurements);
}
