/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of Darshan 3 (common/darshan.h): header, job, and messages about the rest. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/darshan/darshan_state.h"

#define OLD_MODULES	16u	    /* of the header before version 3.41 */
#define START_MOST	(1ll << 33) /* seconds since 1970 */
#define RANKS_MOST	(1 << 24)
#define VERSION_CORRUPT 320u

/* The header before version 3.41. */
struct old_header {
	char version[8];
	int64_t magic;
	uint8_t compression;
	uint8_t pad[3];
	uint32_t partial;
	struct hr_darshan_region names;
	struct hr_darshan_region modules[OLD_MODULES];
	uint32_t versions[OLD_MODULES];
};
_Static_assert(sizeof(struct old_header) == 360, "header of Darshan 3.00");

enum module_place {
	PLACE_READ,    /* the module is imported */
	PLACE_AGAIN,   /* it has the same I/O once more, or no I/O */
	PLACE_MISSING, /* it has I/O that is nowhere else */
};

static const struct {
	const char *name;
	enum module_place place;
} modules[] = {
    [0] = {"NULL", PLACE_AGAIN},
    [HR_DARSHAN_POSIX] = {"POSIX", PLACE_READ},
    [2] = {"MPI-IO", PLACE_AGAIN},
    [3] = {"H5F", PLACE_AGAIN},
    [4] = {"H5D", PLACE_AGAIN},
    [5] = {"PNETCDF_FILE", PLACE_AGAIN},
    [6] = {"PNETCDF_VAR", PLACE_AGAIN},
    [7] = {"BG/Q", PLACE_AGAIN},
    [8] = {"LUSTRE", PLACE_AGAIN},
    [HR_DARSHAN_STDIO] = {"STDIO", PLACE_READ},
    [HR_DARSHAN_DXT_POSIX] = {"DXT_POSIX", PLACE_READ},
    [11] = {"DXT_MPIIO", PLACE_AGAIN},
    [12] = {"MDHIM", PLACE_AGAIN},
    [13] = {"APXC", PLACE_AGAIN},
    [14] = {"APMPI", PLACE_AGAIN},
    [HR_DARSHAN_HEATMAP] = {"HEATMAP", PLACE_READ}, /* all of it is in the others */
    [16] = {"DFS", PLACE_MISSING},
    [17] = {"DAOS", PLACE_MISSING},
};
#define MODULES (sizeof(modules) / sizeof(modules[0]))

const char *hr__dlog_module_name(unsigned module)
{
	return module < MODULES ? modules[module].name : "unknown";
}

/* Of the header. */
enum compression { COMPRESSION_ZLIB, COMPRESSION_BZIP2, COMPRESSION_NONE };

void hr__dlog_region(struct darshan *d, uint64_t offset, uint64_t bytes)
{
	bool plain = d->header.compression == COMPRESSION_NONE;

	hr_input_part(d->source, plain ? HR_INPUT_PLAIN : HR_INPUT_ZLIB, offset, bytes);
}

/* ---- header ---------------------------------------------------------------------------------- */

/* Makes room for a module that older versions did not have. */
static void module_insert(struct hr_darshan_header *h, unsigned at)
{
	size_t n = HR_DARSHAN_MODULES - 1 - at;
	uint64_t below = (UINT64_C(1) << at) - 1;

	memmove(&h->modules[at + 1], &h->modules[at], n * sizeof(h->modules[0]));
	memmove(&h->versions[at + 1], &h->versions[at], n * sizeof(h->versions[0]));
	h->modules[at] = (struct hr_darshan_region){0};
	h->versions[at] = 0;
	h->partial = (h->partial & below) | (h->partial & ~below) << 1;
}

/* Converts the header of an older version, in the byte order of the log. */
static void header_convert(struct darshan *d, const struct old_header *old)
{
	struct hr_darshan_header *h = &d->header;

	/* A number of 32 bits becomes the lower half of one of 64 bits. */
	*h = (struct hr_darshan_header){.compression = old->compression,
					.partial = d->swapped ? (uint64_t)old->partial << 32
							      : old->partial,
					.names = old->names};
	memcpy(h->modules, old->modules, sizeof(old->modules));
	memcpy(h->versions, old->versions, sizeof(old->versions));
}

static void header_swap(struct hr_darshan_header *h)
{
	h->partial = __builtin_bswap64(h->partial);
	h->names.offset = __builtin_bswap64(h->names.offset);
	h->names.bytes = __builtin_bswap64(h->names.bytes);
	for (unsigned i = 0; i < HR_DARSHAN_MODULES; i++) {
		h->modules[i].offset = __builtin_bswap64(h->modules[i].offset);
		h->modules[i].bytes = __builtin_bswap64(h->modules[i].bytes);
		h->versions[i] = __builtin_bswap32(h->versions[i]);
	}
}

static bool magic_fits(int64_t magic)
{
	return magic == HR_DARSHAN_MAGIC ||
	       (int64_t)__builtin_bswap64((uint64_t)magic) == HR_DARSHAN_MAGIC;
}

/* Returns 300, 310, 320, 321 or 341. 0: another version. */
static uint32_t version_read(const char *text)
{
	static const char *const known[] = {"3.00", "3.10", "3.20", "3.21", "3.41"};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strncmp(text, known[i], sizeof(((struct hr_darshan_header *)0)->version)) == 0)
			return (uint32_t)((known[i][0] - '0') * 100 + (known[i][2] - '0') * 10 +
					  (known[i][3] - '0'));
	return 0;
}

/* Where the job ends: where the names begin, or else the first module, or the file's end. */
static void job_place(struct darshan *d)
{
	uint64_t end = d->header.names.offset;

	for (unsigned i = 0; !end && i < HR_DARSHAN_MODULES; i++)
		end = d->header.modules[i].offset;
	d->job_bytes = end > d->job_at ? end - d->job_at : UINT64_MAX - d->job_at;
}

/* Reports that the log cannot be imported. Returns 1. */
static int log_reject(struct darshan *d, const char *why)
{
	hr_import_missing(d->f, HR_LOSS_IMPORT_FILE, 1, "%s", why);
	return 1;
}

/* 0; 1: it cannot be imported, and the user got a line; -errno. */
static int header_read(struct darshan *d)
{
	struct old_header old;
	bool is_old;
	long n = hr_input_at(d->f->input, 0, &d->header, sizeof(d->header));

	if (n < (long)sizeof(old))
		return n < 0 ? (int)n : log_reject(d, "the header is cut: not imported");
	if (!magic_fits(d->header.magic)) /* the input is decompressed, the file is not */
		return log_reject(d, "compressed as a whole: decompress it first");
	d->version = version_read(d->header.version);
	if (!d->version) {
		hr_import_missing(d->f, HR_LOSS_IMPORT_FILE, 1,
				  "version %.8s of a Darshan log is unknown: not imported",
				  d->header.version);
		return 1;
	}
	d->swapped = d->header.magic != HR_DARSHAN_MAGIC;
	is_old = d->version < 341;
	if (is_old) {
		memcpy(&old, &d->header, sizeof(old));
		header_convert(d, &old);
	} else if (n < (long)sizeof(d->header)) {
		return log_reject(d, "the header is cut: not imported");
	}
	if (d->swapped)
		header_swap(&d->header);
	if (d->version < 320)
		module_insert(&d->header, 4); /* H5D */
	if (is_old)
		module_insert(&d->header, 6); /* PNETCDF_VAR */
	d->job_at = is_old ? sizeof(old) : sizeof(d->header);
	job_place(d);
	if (d->header.compression != COMPRESSION_ZLIB &&
	    d->header.compression != COMPRESSION_NONE) {
		hr_import_missing(d->f, HR_LOSS_IMPORT_FILE, 1,
				  "compressed by %s, which headrace cannot read: "
				  "convert it with darshan-convert LOG NEW-LOG",
				  d->header.compression == COMPRESSION_BZIP2 ? "bzip2"
									     : "an unknown method");
		return 1;
	}
	return 0;
}

/* ---- job ------------------------------------------------------------------------------------- */

static int command_set(struct darshan *d, const char *command)
{
	size_t n = strcspn(command, "\n"), exe = strcspn(command, " \n");
	char *copy;

	if (n == 0 || exe == 0)
		return 0;
	copy = hr_arena_alloc(&d->texts, n + 1);
	d->exe = copy ? hr_arena_alloc(&d->texts, exe + 1) : NULL;
	if (!d->exe)
		return -ENOMEM;
	memcpy(copy, command, n);
	memcpy((char *)(uintptr_t)d->exe, command, exe);
	d->cmdline = copy;
	return 0;
}

/* The name of a log has the pid of its process: USER_EXE_id<job>-<pid>_... */
static int32_t name_pid(const char *path)
{
	const char *id = strstr(strrchr(path, '/') ? strrchr(path, '/') : path, "_id");
	unsigned long pid = 0;
	char *end;

	if (!id)
		return 0;
	(void)strtoul(id + 3, &end, 10);
	if (*end == '-')
		pid = strtoul(end + 1, &end, 10);
	return *end == '_' && pid <= INT32_MAX ? (int32_t)pid : 0;
}

/* 0; 1: it cannot be imported, and the user got a line; -errno. */
static int job_read(struct darshan *d)
{
	char buffer[HR_DARSHAN_JOB_BYTES + 1] = "";
	size_t words = d->version < 341 ? 5 : 7, head = words * 8 + HR_DARSHAN_META_BYTES;
	int64_t w[7] = {0};
	long n;

	hr__dlog_region(d, d->job_at, d->job_bytes);
	n = hr_input_fill(d->source, buffer, HR_DARSHAN_JOB_BYTES);
	if (n < (long)head)
		return n < 0 ? (int)n
			     : log_reject(d, "the record of the job is damaged: not imported");
	memcpy(w, buffer, words * 8);
	hr__dlog_swap(d, w, words);
	if (words == 5) { /* without nanoseconds */
		int64_t end_s = w[2], ranks = w[3];

		w[2] = 0;
		w[3] = end_s;
		w[4] = 0;
		w[5] = ranks;
	}
	if (w[1] < 0 || w[1] > START_MOST || w[2] < 0 || w[2] > 999999999)
		return log_reject(d, "the start of the job is impossible: not imported");
	d->start_ns = (uint64_t)w[1] * 1000000000 + (uint64_t)w[2];
	d->end_ns = d->start_ns;
	if (w[3] >= w[1] && w[3] <= START_MOST && w[4] >= 0 && w[4] <= 999999999)
		d->end_ns = (uint64_t)w[3] * 1000000000 + (uint64_t)w[4];
	if (d->end_ns < d->start_ns)
		d->end_ns = d->start_ns;
	d->n_ranks = w[5];
	if (w[5] < 1 || w[5] > RANKS_MOST) {
		hr_import_missing(d->f, HR_LOSS_IMPORT_NOTED, 1,
				  "the number of ranks is impossible: %" PRId64, w[5]);
		d->n_ranks = RANKS_MOST;
	}
	d->pid = name_pid(d->f->path);
	return command_set(d, buffer + head);
}

/* ---- what is missing ------------------------------------------------------------------------- */

/* Reports the modules that ran out of memory, and those that are not imported. */
static void modules_report(struct darshan *d)
{
	for (unsigned i = 1; i < HR_DARSHAN_MODULES; i++) {
		enum module_place place = i < MODULES ? modules[i].place : PLACE_MISSING;
		const char *name = hr__dlog_module_name(i);

		if ((d->header.partial >> i & 1) && place == PLACE_READ && i != HR_DARSHAN_HEATMAP)
			hr_import_missing(
			    d->f, HR_LOSS_IMPORT_NOTED, 1,
			    "the module %s had no memory for all records: its data is incomplete",
			    name);
		if (!d->header.modules[i].bytes)
			continue;
		if (place == PLACE_MISSING)
			hr_import_missing(d->f, HR_LOSS_IMPORT_NOTED, 1,
					  "the module %s is not imported", name);
		else if (place == PLACE_AGAIN)
			hr_import_lose(d->f, HR_LOSS_IMPORT_KINDS, 1);
	}
}

static void problems_report(struct darshan *d)
{
	struct hr_import_file *f = d->f;

	modules_report(d);
	if (d->version == VERSION_CORRUPT)
		hr_import_problem(f, "Darshan 3.2.0 may have stored wrong counters: its authors "
				     "advise against using them");
	hr_import_missing(f, HR_LOSS_IMPORT_NOTED, d->n_bad,
			  "%" PRIu64 " records or segments have impossible values", d->n_bad);
	hr_import_missing(f, HR_LOSS_IMPORT_NOTED, d->n_mixed,
			  "%" PRIu64
			  " records mix POSIX and STDIO counters, as old logs do: not imported",
			  d->n_mixed);
	hr_import_lose(f, HR_LOSS_IMPORT_NAMES, d->n_nameless);
	if (d->hosts_left_out)
		hr_import_problem(f, "too many nodes: the last ones have no name");
}

/* ---- the file -------------------------------------------------------------------------------- */

static int module_read(struct darshan *d, const char *what, int (*read)(struct darshan *),
		       bool *cut)
{
	int r;

	d->cut = false;
	hr__dlog_region(d, 0, 0); /* the log may lack the module */
	r = read(d);
	if (!r && (d->cut || hr_input_cut(d->source))) {
		hr_import_problem(d->f, "%s: cut or damaged: imported up to there", what);
		*cut = true;
	}
	return r;
}

static int modules_read(struct darshan *d)
{
	bool cut = false;
	int r = module_read(d, "names of files", hr__dlog_names, &cut);

	/* DXT is first, because it has the nodes, and its operations are not counted again. */
	if (!r)
		r = module_read(d, "module DXT_POSIX", hr__dlog_dxt, &cut);
	if (!r)
		r = module_read(d, "module POSIX", hr__dlog_posix, &cut);
	if (!r)
		r = module_read(d, "module STDIO", hr__dlog_stdio, &cut);
	if (!r)
		r = hr__dlog_other_ranks(d);
	if (cut)
		hr_import_lose(d->f, HR_LOSS_IMPORT_CUT, 1);
	return r;
}

static int darshan_read(struct hr_import_file *f)
{
	struct darshan d = {.f = f};
	int r = hr_input_part_new(f->input, &d.source);

	if (!r)
		r = header_read(&d);
	if (!r)
		r = job_read(&d);
	if (!r)
		r = modules_read(&d);
	if (!r)
		problems_report(&d);
	hr__dlog_done(&d);
	return r > 0 ? 0 : r;
}

static bool darshan_probe(const uint8_t *head, size_t bytes)
{
	int64_t magic;

	if (bytes < 16 || head[0] < '0' || head[0] > '9' || head[1] != '.')
		return false;
	memcpy(&magic, head + 8, sizeof(magic));
	return magic_fits(magic);
}

const struct hr_reader hr_reader_darshan = {
    .name = "darshan",
    .what = "Darshan log",
    .probe = darshan_probe,
    .read = darshan_read,
};
