/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.h - the bytes of a file, decompressed if its content is gzip
 *
 * A gzip file may have many members. If the last member is cut or damaged, its bytes up to there
 * are returned, and hr_input_cut() is true. One thread at a time.
 */
#ifndef HEADRACE_IMPORT_INPUT_H
#define HEADRACE_IMPORT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HR_INPUT_HEAD_BYTES 65536u
#define HR_INPUT_SLACK	    16u /* zeros after the head, for scanners that read words */

struct hr_input;

/* Opens a regular file. Returns 0 or -errno (-ESPIPE: a pipe or device; -EISDIR). */
int hr_input_open(const char *path, struct hr_input **ret);
void hr_input_close(struct hr_input *in);

/*
 * Returns the first bytes of the content (at most HR_INPUT_HEAD_BYTES), which hr_input_read returns
 * again. HR_INPUT_SLACK zeros follow. A byte order mark of UTF-8, which some editors write before a
 * text, is skipped. -errno: the file cannot be read.
 */
long hr_input_head(struct hr_input *in, const uint8_t **ret);

/* Reads up to `bytes` bytes. Returns their number; 0 at the end; -errno. */
long hr_input_read(struct hr_input *in, uint8_t *to, size_t bytes);

/* Reads `bytes` bytes. Returns their number, which is lower only at the end; -errno. */
long hr_input_fill(struct hr_input *in, void *to, size_t bytes);

/*
 * Reads the bytes at `offset` of the file itself, without decompression. Returns their number, which
 * is lower only at the end of the file; -errno.
 */
long hr_input_at(struct hr_input *in, uint64_t offset, void *to, size_t bytes);

uint64_t hr_input_bytes(const struct hr_input *in); /* bytes read from the file so far */
/* Adds bytes that a reader has read from the same file, or from another one, by other means. */
void hr_input_count(struct hr_input *in, uint64_t bytes);
bool hr_input_cut(const struct hr_input *in);

/* ---- a part of a file ------------------------------------------------------------------------ */

enum hr_input_format { HR_INPUT_PLAIN, HR_INPUT_GZIP, HR_INPUT_ZLIB };

/*
 * Makes an input of parts of a file, of which each is plain, or compressed by itself as one or more
 * streams. If a part is cut or damaged, its bytes up to there are returned, and hr_input_cut() is
 * true. `of` must outlive it. Returns 0 or -ENOMEM.
 */
int hr_input_part_new(struct hr_input *of, struct hr_input **ret);

/* Begins a part of `bytes` bytes at `offset` of the file. The part before it is forgotten. */
void hr_input_part(struct hr_input *part, enum hr_input_format format, uint64_t offset,
		   uint64_t bytes);

/* ---- a window of the content ----------------------------------------------------------------- */

#define HR_WINDOW_MOST (16u << 20) /* bytes of a line or value that a reader accepts */

/* Bytes of the content in memory: p[at] to p[used]. Zeros follow, as after the head. */
struct hr_window {
	struct hr_input *in;
	char *p;
	size_t room, used, at;
	bool ended; /* of the input */
};

/* `bytes`: the first size. Returns 0 or -ENOMEM. The caller frees w->p, and closes the input. */
int hr_window_init(struct hr_window *w, struct hr_input *in, size_t bytes);

/*
 * Drops the bytes before `at`, and reads more. If there is no room, doubles it. Returns 1; 0: the
 * input has ended; -E2BIG: the window has HR_WINDOW_MOST bytes; -errno.
 */
int hr_window_more(struct hr_window *w);

#endif
