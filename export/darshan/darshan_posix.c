/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters of Darshan's POSIX module. They contain the calls that Darshan counts, and their
 * equivalents: requests of libaio and io_uring, and both sides of copies between files.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>

#include "export/darshan/darshan_internal.h"

/* Whether the operation is a stat, lstat or fstat. The class has other operations, too. */
static bool op_is_stat(uint16_t op)
{
	return op >= HR_OP_stat && op <= HR_OP___fxstatat64;
}

static bool op_is_dup(const struct hr_event *e)
{
	switch (e->op) {
	case HR_OP_dup:
	case HR_OP_dup2:
	case HR_OP_dup3:
		return true;
	case HR_OP_fcntl:
	case HR_OP_fcntl64:
		return e->flags == F_DUPFD || e->flags == F_DUPFD_CLOEXEC;
	default:
		return false;
	}
}

static bool op_is_rename(uint16_t op)
{
	return op == HR_OP_rename || op == HR_OP_renameat || op == HR_OP_renameat2;
}

/* Returns the counter of a synchronization, or -1. */
static int sync_counter(uint16_t op)
{
	switch (op) {
	case HR_OP_fsync:
	case HR_OP_io_fsync:
	case HR_OP_io_uring_fsync:
		return HR_DP_FSYNCS;
	case HR_OP_fdatasync:
	case HR_OP_io_fdsync:
		return HR_DP_FDSYNCS;
	default:
		return -1;
	}
}

/* An open, or a duplicate of a descriptor, which continues at the same position. */
static void add_open(struct hr_darshan_posix *log, struct hr__darshan_state *st,
		     const struct hr__darshan_op *o, bool dup)
{
	log->c[HR_DP_OPENS]++;
	log->c[HR_DP_DUPS] += dup;
	if (!dup) {
		st->position = 0;
		st->last[HR__DARSHAN_READS] = st->last[HR__DARSHAN_WRITES] = 0;
		if (o->e->flags & O_CREAT)
			log->c[HR_DP_MODE] = HR_DARSHAN_UNKNOWN;
	}
	hr__darshan_span(&log->f[HR_DP_OPEN_START], &log->f[HR_DP_OPEN_END], o);
	hr__darshan_time_add(&log->f[HR_DP_META_TIME], o, &st->meta_end);
}

static void add_close(struct hr_darshan_posix *log, struct hr__darshan_state *st,
		      const struct hr__darshan_op *o)
{
	st->last[HR__DARSHAN_READS] = st->last[HR__DARSHAN_WRITES] = 0;
	hr__darshan_span(&log->f[HR_DP_CLOSE_START], &log->f[HR_DP_CLOSE_END], o);
	hr__darshan_time_add(&log->f[HR_DP_META_TIME], o, &st->meta_end);
}

/* The counters of an access that depend on the accesses before it. `at`: its offset. */
static int add_place(struct hr__darshan *d, struct hr__darshan_posix *rec,
		     struct hr__darshan_state *st, enum hr__darshan_way way, int64_t at,
		     int64_t bytes)
{
	int reads = way == HR__DARSHAN_READS;
	int64_t *c = rec->log.c, last = st->last[way], stride = 0;
	int64_t *farthest = &c[reads ? HR_DP_MAX_BYTE_READ : HR_DP_MAX_BYTE_WRITTEN];

	c[reads ? HR_DP_SEQ_READS : HR_DP_SEQ_WRITES] += at > last;
	c[reads ? HR_DP_CONSEC_READS : HR_DP_CONSEC_WRITES] += at == last + 1;
	c[HR_DP_FILE_NOT_ALIGNED] += at % HR_DARSHAN_ALIGN_BYTES != 0;
	if (at > 0 && at > last && last != 0)
		stride = at - last - 1;
	if (at + bytes - 1 > *farthest)
		*farthest = at + bytes - 1;
	st->last[way] = at + bytes - 1;
	return hr__darshan_value_add(d, &rec->strides, stride);
}

static void add_duration(struct hr_darshan_posix *log, struct hr__darshan_state *st,
			 enum hr__darshan_way way, const struct hr__darshan_op *o)
{
	bool reads = way == HR__DARSHAN_READS;
	double seconds = (double)(o->end_ns - o->start_ns) / 1e9;
	double *longest = &log->f[reads ? HR_DP_MAX_READ_TIME : HR_DP_MAX_WRITE_TIME];

	if (seconds > *longest) {
		*longest = seconds;
		log->c[reads ? HR_DP_MAX_READ_TIME_SIZE : HR_DP_MAX_WRITE_TIME_SIZE] =
		    (int64_t)o->bytes;
	}
	hr__darshan_span(&log->f[reads ? HR_DP_READ_START : HR_DP_WRITE_START],
			 &log->f[reads ? HR_DP_READ_END : HR_DP_WRITE_END], o);
	hr__darshan_time_add(&log->f[reads ? HR_DP_READ_TIME : HR_DP_WRITE_TIME], o, &st->end[way]);
}

/* `offset`: of the call, or HR_OFFSET_NONE: the position that Darshan follows. */
static int add_access(struct hr__darshan *d, struct hr__darshan_posix *rec,
		      struct hr__darshan_state *st, enum hr__darshan_way way, int64_t offset,
		      const struct hr__darshan_op *o)
{
	bool reads = way == HR__DARSHAN_READS;
	int64_t at = offset != HR_OFFSET_NONE ? offset : st->position, *c = rec->log.c;
	int64_t bytes = (int64_t)o->bytes;
	int r = 0;

	st->position = at >= 0 && at <= INT64_MAX - bytes ? at + bytes : -1;
	if (st->position >= 0)
		r = hr__darshan_segment_add(d, rec, way, at, o);
	else if (d->pass == HR__DARSHAN_COUNT)
		d->without_offset++;
	if (r < 0 || d->pass != HR__DARSHAN_COUNT)
		return r;
	c[reads ? HR_DP_READS : HR_DP_WRITES]++;
	c[reads ? HR_DP_BYTES_READ : HR_DP_BYTES_WRITTEN] += bytes;
	c[(reads ? HR_DP_SIZE_READ : HR_DP_SIZE_WRITE) + hr__darshan_bucket(o->bytes)]++;
	c[HR_DP_RW_SWITCHES] +=
	    st->last_io == (reads ? HR__DARSHAN_DID_WRITE : HR__DARSHAN_DID_READ);
	st->last_io = reads ? HR__DARSHAN_DID_READ : HR__DARSHAN_DID_WRITE;
	add_duration(&rec->log, st, way, o);
	if (st->position >= 0)
		r = add_place(d, rec, st, way, at, bytes);
	if (r == 0)
		r = hr__darshan_value_add(d, &rec->access, bytes);
	return r < 0 ? r : hr__darshan_heat_add(d, o, HR__DARSHAN_POSIX, way);
}

/* The other operations that Darshan counts. Its position follows lseek. */
static void add_other(struct hr_darshan_posix *log, struct hr__darshan_state *st,
		      const struct hr__darshan_op *o)
{
	switch (o->info->class) {
	case HR_CLASS_OPEN:
		add_open(log, st, o, false);
		break;
	case HR_CLASS_CLOSE:
		add_close(log, st, o);
		break;
	case HR_CLASS_SEEK:
		log->c[HR_DP_SEEKS]++;
		st->position = o->e->ret;
		hr__darshan_time_add(&log->f[HR_DP_META_TIME], o, &st->meta_end);
		break;
	case HR_CLASS_STAT:
		log->c[HR_DP_STATS]++;
		hr__darshan_time_add(&log->f[HR_DP_META_TIME], o, &st->meta_end);
		break;
	case HR_CLASS_SYNC:
		log->c[sync_counter(o->e->op)]++;
		hr__darshan_time_add(&log->f[HR_DP_WRITE_TIME], o, &st->end[HR__DARSHAN_WRITES]);
		break;
	case HR_CLASS_MAP:
		log->c[HR_DP_MMAPS]++;
		break;
	default:
		add_open(log, st, o, true);
	}
}

/* Whether Darshan counts the operation, for its first file. `known`: the file has a record. */
static bool op_counts(const struct hr__darshan_op *o, bool known)
{
	switch (o->info->class) {
	case HR_CLASS_CLOSE:
		return known;
	case HR_CLASS_OPEN:
	case HR_CLASS_SEEK:
	case HR_CLASS_READ:
	case HR_CLASS_WRITE:
		return o->e->ret >= 0;
	case HR_CLASS_STAT:
		return o->e->ret >= 0 && op_is_stat(o->e->op);
	case HR_CLASS_SYNC:
		return o->e->ret >= 0 && sync_counter(o->e->op) >= 0;
	case HR_CLASS_MAP:
		return o->e->ret >= 0 && (o->e->op == HR_OP_mmap || o->e->op == HR_OP_mmap64);
	default:
		return o->e->ret >= 0 && op_is_dup(o->e);
	}
}

/* Adds an operation to its first file, or to file2 (`second`). */
static int add_side(struct hr__darshan *d, const struct hr__darshan_op *o, bool second)
{
	uint32_t file = second ? o->e->file2 : o->e->file;
	struct hr__darshan_state *st = hr__darshan_state(d, o, file, HR__DARSHAN_POSIX);
	bool copies = hr_op_copies(o->e->op);
	struct hr__darshan_op side = *o;
	struct hr__darshan_posix *rec;
	enum hr__darshan_way way;

	if (st == NULL)
		return -ENOMEM;
	if (d->pass == HR__DARSHAN_COUNT)
		d->uses[st->use].ops[HR__DARSHAN_POSIX]++;
	if ((second && !copies) || !op_counts(o, d->uses[st->use].posix != NULL))
		return 0;
	rec = hr__darshan_posix_record(d, &d->uses[st->use]);
	if (rec == NULL)
		return -ENOMEM;
	if (o->info->class != HR_CLASS_READ && o->info->class != HR_CLASS_WRITE) {
		struct hr_darshan_posix unused = {0};

		add_other(d->pass == HR__DARSHAN_COUNT ? &rec->log : &unused, st, o);
		return 0;
	}
	way = (copies ? !second : o->info->class == HR_CLASS_READ) ? HR__DARSHAN_READS
								   : HR__DARSHAN_WRITES;
	/* A copy takes the time of one file only, as in file records. */
	if (copies && o->e->file != 0 && o->e->file2 != 0 &&
	    second != (o->info->class == HR_CLASS_WRITE))
		side.end_ns = side.start_ns;
	return add_access(d, rec, st, way, second ? HR_OFFSET_NONE : o->e->offset, &side);
}

/* A rename counts if the file was used before. */
static int add_rename(struct hr__darshan *d, const struct hr__darshan_op *o)
{
	int32_t rank = hr__darshan_rank(o->process);
	struct hr__darshan_state *st = hr__darshan_state(d, o, o->e->file, HR__DARSHAN_POSIX);
	struct hr__darshan_posix *source, *target;
	struct hr__darshan_use *to;

	if (st == NULL)
		return -ENOMEM;
	source = d->uses[st->use].posix;
	if (source == NULL)
		return 0;
	to = hr__darshan_use(d, o->e->file2, rank);
	target = to != NULL ? hr__darshan_posix_record(d, to) : NULL;
	if (target == NULL)
		return -ENOMEM;
	source->log.c[HR_DP_RENAME_SOURCES]++;
	hr__darshan_time_add(&source->log.f[HR_DP_META_TIME], o, &st->meta_end);
	target->log.c[HR_DP_RENAME_TARGETS]++;
	if (target->log.c[HR_DP_RENAMED_FROM] == 0)
		target->log.c[HR_DP_RENAMED_FROM] = (int64_t)source->log.id;
	return 0;
}

int hr__darshan_posix_add(struct hr__darshan *d, const struct hr__darshan_op *o)
{
	int r = 0;

	if (o->e->file != 0)
		r = add_side(d, o, false);
	if (r == 0 && o->e->file2 != 0)
		r = add_side(d, o, true);
	if (r == 0 && d->pass == HR__DARSHAN_COUNT && op_is_rename(o->e->op) && o->e->ret == 0 &&
	    o->e->file != 0 && o->e->file2 != 0)
		r = add_rename(d, o);
	return r;
}
