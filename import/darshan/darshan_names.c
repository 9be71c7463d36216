/* SPDX-License-Identifier: Apache-2.0 */
/* What records refer to: files, ranks with their nodes, times. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/pathid.h"
#include "import/darshan/darshan_state.h"

#define NAMES_MOST_BYTES (UINT64_C(1) << 30)
#define NAME_BYTES	 ((size_t)65536) /* longest name that is accepted; Darshan cuts at 4096 */
#define RANKS_MOST	 131072u	 /* ranks without records are added up to here */
#define SECONDS_MOST	 4e9		 /* of a job */

/* ---- names of files -------------------------------------------------------------------------- */

struct name_buffer {
	uint8_t *p;
	size_t at, used;
	bool ended;
};

/* Makes `bytes` bytes available. False: the region has fewer. */
static bool buffer_need(struct darshan *d, struct name_buffer *b, size_t bytes)
{
	long n;

	if (b->used - b->at >= bytes)
		return true;
	memmove(b->p, b->p + b->at, b->used - b->at);
	b->used -= b->at;
	b->at = 0;
	while (b->used < bytes && !b->ended) {
		n = hr_input_fill(d->source, b->p + b->used, 2 * NAME_BYTES - b->used);
		b->ended = n <= 0;
		b->used += n > 0 ? (size_t)n : 0;
	}
	return b->used >= bytes;
}

/* Finds the next name. Returns its length; -1: none. */
static long name_next(struct darshan *d, struct name_buffer *b, uint64_t *ret_id)
{
	const uint8_t *end;
	uint32_t bytes;
	size_t left;

	if (!buffer_need(d, b, sizeof(*ret_id) + 1))
		return -1;
	(void)buffer_need(d, b, NAME_BYTES);
	memcpy(ret_id, b->p + b->at, sizeof(*ret_id));
	hr__dlog_swap(d, ret_id, 1);
	b->at += sizeof(*ret_id);
	left = b->used - b->at;
	if (d->version < 310) { /* a length, and no NUL */
		if (left < sizeof(bytes))
			return -1;
		memcpy(&bytes, b->p + b->at, sizeof(bytes));
		bytes = d->swapped ? __builtin_bswap32(bytes) : bytes;
		b->at += sizeof(bytes);
		return bytes <= left - sizeof(bytes) ? (long)bytes : -1;
	}
	end = memchr(b->p + b->at, 0, left);
	return end ? (long)(end - (b->p + b->at)) : -1;
}

static int name_add(struct darshan *d, uint64_t id, const void *text, size_t bytes)
{
	uint32_t i = hr_map64_get(&d->name_of, id);
	void *copy;

	if (i != HR_MAP64_NONE && d->names[i].bytes)
		return 0;
	copy = hr_arena_copy(&d->texts, text, bytes + 1);
	if (!copy)
		return -ENOMEM;
	((char *)copy)[bytes] = '\0';
	if (i != HR_MAP64_NONE) { /* its first name was empty */
		d->names[i] = (struct darshan_name){copy, (uint32_t)bytes};
		return 0;
	}
	if (!hr_array_reserve(d->names, d->n_names, d->names_room))
		return -ENOMEM;
	d->names[d->n_names] = (struct darshan_name){copy, (uint32_t)bytes};
	return hr_map64_set(&d->name_of, id, d->n_names++);
}

int hr__dlog_names(struct darshan *d)
{
	struct name_buffer b = {.p = malloc(2 * NAME_BYTES + 1)};
	uint64_t id, total = 0;
	long n = 0;
	int r = b.p ? 0 : -ENOMEM;

	hr__dlog_region(d, d->header.names.offset, d->header.names.bytes);
	while (!r && total < NAMES_MOST_BYTES && (n = name_next(d, &b, &id)) >= 0) {
		r = name_add(d, id, b.p + b.at, (size_t)n);
		b.at += (size_t)n + (d->version >= 310);
		total += (size_t)n;
	}
	if (!r && (n >= 0 || b.at < b.used))
		d->cut = true;
	free(b.p);
	return r;
}

uint32_t hr__dlog_file(struct darshan *d, struct hr_import_stream *s, uint64_t id)
{
	uint32_t i = hr_map64_get(&d->name_of, id);
	char unknown[32];
	int n;

	if (i != HR_MAP64_NONE && d->names[i].bytes)
		return hr_import_path(s, d->names[i].text, d->names[i].bytes, false);
	n = snprintf(unknown, sizeof(unknown), "darshan:%016" PRIx64, id);
	if (i == HR_MAP64_NONE) {
		d->n_nameless++;
		if (name_add(d, id, unknown, (size_t)n))
			return 0;
	}
	return hr_import_path(s, unknown, (size_t)n, false);
}

/* ---- ranks and nodes ------------------------------------------------------------------------- */

/* Whether a stream of the node is open, or may be opened. */
static bool host_fits(struct darshan *d, const char *host)
{
	uint64_t key = hr_path_id(host, strlen(host));

	if (hr_map64_get(&d->host_of, key) != HR_MAP64_NONE)
		return true;
	if (d->n_hosts >= HR_IMPORT_NODES_MOST || hr_map64_set(&d->host_of, key, 1)) {
		d->hosts_left_out = true;
		return false;
	}
	d->one_host = d->n_hosts == 0;
	d->host = hr_arena_text(&d->texts, host);
	d->n_hosts++;
	return true;
}

static int rank_open(struct darshan *d, struct darshan_rank *of, int64_t rank, const char *host)
{
	struct hr_import_process *p;
	int r;

	/* Records without a node are of the only node, if all ranks are there. */
	if (!host && d->one_host && (int64_t)d->n_ranks_found >= d->n_ranks)
		host = d->host;
	if (host && !host_fits(d, host))
		host = NULL;
	r = hr_import_stream(d->f, host, host ? strlen(host) : 0, &of->s);
	if (r)
		return r;
	of->proc = hr_import_process(of->s, d->n_ranks == 1 ? d->pid : 0);
	of->thread = of->proc ? hr_import_thread(of->s, of->proc, 0) : 0;
	if (!of->thread)
		return -ENOMEM;
	p = hr_import_process_at(of->s, of->proc);
	/* Darshan gives the rank 0 to each program that does not use MPI. */
	if (d->n_ranks > 1 || hr_import_files(d->f) == 1) {
		p->rank = rank < 0 ? -1 : (int32_t)rank;
		p->world_size = (uint32_t)d->n_ranks;
		p->rank_source = rank < 0 ? NULL : "darshan";
	}
	p->start_ns = d->start_ns;
	p->end_ns = d->end_ns;
	p->exe = d->exe ? hr_import_text(of->s, d->exe, strlen(d->exe)) : NULL;
	p->cmdline = d->cmdline ? hr_import_text(of->s, d->cmdline, strlen(d->cmdline)) : NULL;
	if (p->exe)
		hr_import_program(of->s, p->exe);
	return 0;
}

const struct darshan_rank *hr__dlog_rank(struct darshan *d, int64_t rank, const char *host)
{
	uint64_t key = (uint64_t)(rank < 0 ? 0 : rank + 1);
	uint32_t i = hr_map64_get(&d->rank_of, key);

	if (i != HR_MAP64_NONE)
		return &d->ranks[i];
	if (!hr_array_reserve(d->ranks, d->n_ranks_found, d->ranks_room) ||
	    rank_open(d, &d->ranks[d->n_ranks_found], rank, host) ||
	    hr_map64_set(&d->rank_of, key, d->n_ranks_found))
		return NULL;
	return &d->ranks[d->n_ranks_found++];
}

int hr__dlog_other_ranks(struct darshan *d)
{
	int r = 0;

	for (int64_t rank = 0; rank < d->n_ranks && d->n_ranks <= RANKS_MOST && !r; rank++)
		r = hr__dlog_rank(d, rank, NULL) ? 0 : -ENOMEM;
	return r;
}

/* ---- numbers --------------------------------------------------------------------------------- */

bool hr__dlog_time(const struct darshan *d, double seconds, uint64_t *ret_ns)
{
	int64_t ns;

	if (!(seconds >= -SECONDS_MOST && seconds <= SECONDS_MOST))
		return false;
	ns = llround(seconds * 1e9);
	if (ns < 0 && (uint64_t)-ns > d->start_ns)
		return false;
	*ret_ns = d->start_ns + (uint64_t)ns;
	return true;
}

void hr__dlog_swap(const struct darshan *d, void *words, size_t n)
{
	for (size_t i = 0; d->swapped && i < n; i++) {
		uint64_t v;

		memcpy(&v, (uint8_t *)words + i * sizeof(v), sizeof(v));
		v = __builtin_bswap64(v);
		memcpy((uint8_t *)words + i * sizeof(v), &v, sizeof(v));
	}
}

bool hr__dlog_module(struct darshan *d, enum hr_darshan_module module, uint32_t newest)
{
	const struct hr_darshan_region *at = &d->header.modules[module];
	uint32_t version = d->header.versions[module];

	if (!at->bytes)
		return false;
	if (version == 0 || version > newest) {
		hr_import_missing(d->f, HR_LOSS_IMPORT_NOTED, 1,
				  "version %" PRIu32 " of the module %s is unknown", version,
				  hr__dlog_module_name(module));
		return false;
	}
	hr__dlog_region(d, at->offset, at->bytes);
	return true;
}

struct darshan_traced *hr__dlog_traced(struct darshan *d, uint64_t id, int64_t rank)
{
	struct {
		uint64_t id;
		int64_t rank;
	} pair = {id, rank < 0 ? HR_DARSHAN_SHARED : rank};
	uint64_t key = hr_path_id(&pair, sizeof(pair));
	uint32_t i = hr_map64_get(&d->traced_of, key);

	if (i != HR_MAP64_NONE)
		return &d->traced[i];
	if (!hr_array_reserve(d->traced, d->n_traced, d->traced_room) ||
	    hr_map64_set(&d->traced_of, key, d->n_traced))
		return NULL;
	d->traced[d->n_traced] = (struct darshan_traced){0};
	return &d->traced[d->n_traced++];
}

void hr__dlog_done(struct darshan *d)
{
	hr_arena_free(&d->texts);
	free(d->names);
	hr_map64_done(&d->name_of);
	free(d->ranks);
	hr_map64_done(&d->rank_of);
	hr_map64_done(&d->host_of);
	free(d->traced);
	hr_map64_done(&d->traced_of);
	hr_map64_done(&d->thread_of);
	hr_input_close(d->source);
}
