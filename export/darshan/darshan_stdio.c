/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of Darshan's STDIO module. */
#include <errno.h>
#include <stdio.h>

#include "export/darshan/darshan_internal.h"

/* Adds an operation as file records do. */
static void add_seen(struct hr__darshan_sums *s, const struct hr__darshan_op *o)
{
	uint64_t dur_ns = (uint64_t)(o->end_ns - o->start_ns);

	switch (o->info->class) {
	case HR_CLASS_READ:
		s->reads++;
		s->bytes_read += o->bytes;
		s->read_ns += dur_ns;
		return;
	case HR_CLASS_WRITE:
		s->writes++;
		s->bytes_written += o->bytes;
		s->write_ns += dur_ns;
		return;
	case HR_CLASS_OPEN:
		*(o->e->ret >= 0 ? &s->opens : &s->meta_ops) += 1;
		break;
	case HR_CLASS_SEEK:
		s->seeks++;
		break;
	case HR_CLASS_STAT:
		s->stats++;
		break;
	case HR_CLASS_SYNC:
		s->syncs++;
		break;
	default:
		s->meta_ops++;
	}
	s->meta_ns += dur_ns;
}

static bool op_is_tell(uint16_t op)
{
	return op >= HR_OP_ftell && op <= HR_OP_fgetpos64;
}

/* Whether Darshan counts the operation: reads and writes only if they moved bytes. */
static bool op_counts(const struct hr__darshan_op *o, bool known)
{
	switch (o->info->class) {
	case HR_CLASS_CLOSE:
		return known;
	case HR_CLASS_READ:
	case HR_CLASS_WRITE:
		return o->bytes > 0;
	case HR_CLASS_OPEN:
	case HR_CLASS_SYNC:
		return o->e->ret >= 0;
	case HR_CLASS_SEEK:
		return o->e->ret >= 0 && !op_is_tell(o->e->op);
	default:
		return o->e->ret >= 0 && o->e->op == HR_OP_fdopen;
	}
}

static void follow_seek(struct hr__darshan_state *st, const struct hr_event *e)
{
	if (op_is_tell(e->op))
		st->position = e->op <= HR_OP_ftello64 ? e->ret : st->position;
	else if (e->flags == SEEK_SET)
		st->position = e->offset;
	else if (e->flags != SEEK_CUR || st->position < 0 ||
		 __builtin_add_overflow(st->position, e->offset, &st->position))
		st->position = -1;
	if (st->position < 0 || st->position > INT64_MAX / 2)
		st->position = -1;
}

/* A read, a write, or a flush (bytes 0). */
static int add_access(struct hr__darshan *d, struct hr__darshan_stdio *rec,
		      struct hr__darshan_state *st, const struct hr__darshan_op *o)
{
	bool reads = o->info->class == HR_CLASS_READ, flushes = o->info->class == HR_CLASS_SYNC;
	enum hr__darshan_way way = reads ? HR__DARSHAN_READS : HR__DARSHAN_WRITES;
	int64_t at = o->e->offset != HR_OFFSET_NONE && !flushes ? o->e->offset : st->position;
	int64_t *c = rec->log.c, bytes = flushes ? 0 : (int64_t)o->bytes;
	int64_t *farthest = &c[reads ? HR_DS_MAX_BYTE_READ : HR_DS_MAX_BYTE_WRITTEN];

	c[flushes ? HR_DS_FLUSHES : reads ? HR_DS_READS : HR_DS_WRITES]++;
	c[reads ? HR_DS_BYTES_READ : HR_DS_BYTES_WRITTEN] += bytes;
	if (at >= 0 && at <= INT64_MAX - bytes) {
		if (at + bytes - 1 > *farthest)
			*farthest = at + bytes - 1;
		st->position = at + bytes;
	} else if (bytes > 0) {
		*(reads ? &rec->lost_read : &rec->lost_write) = true;
		st->position = -1;
	}
	hr__darshan_span(&rec->log.f[reads ? HR_DS_READ_START : HR_DS_WRITE_START],
			 &rec->log.f[reads ? HR_DS_READ_END : HR_DS_WRITE_END], o);
	hr__darshan_time_add(&rec->log.f[reads ? HR_DS_READ_TIME : HR_DS_WRITE_TIME], o,
			     &st->end[way]);
	return bytes > 0 ? hr__darshan_heat_add(d, o, HR__DARSHAN_STDIO, way) : 0;
}

static int add_counted(struct hr__darshan *d, struct hr__darshan_stdio *rec,
		       struct hr__darshan_state *st, const struct hr__darshan_op *o)
{
	struct hr_darshan_stdio *log = &rec->log;

	switch (o->info->class) {
	case HR_CLASS_READ:
	case HR_CLASS_WRITE:
	case HR_CLASS_SYNC:
		return add_access(d, rec, st, o);
	case HR_CLASS_CLOSE:
		hr__darshan_span(&log->f[HR_DS_CLOSE_START], &log->f[HR_DS_CLOSE_END], o);
		break;
	case HR_CLASS_SEEK:
		log->c[HR_DS_SEEKS]++;
		break;
	case HR_CLASS_OPEN:
		st->position = 0;
		/* fall through */
	default: /* fdopen continues at the same position */
		log->c[HR_DS_OPENS]++;
		log->c[HR_DS_FDOPENS] += o->e->op == HR_OP_fdopen;
		hr__darshan_span(&log->f[HR_DS_OPEN_START], &log->f[HR_DS_OPEN_END], o);
	}
	hr__darshan_time_add(&log->f[HR_DS_META_TIME], o, &st->meta_end);
	return 0;
}

int hr__darshan_stdio_add(struct hr__darshan *d, const struct hr__darshan_op *o)
{
	struct hr__darshan_state *st;
	struct hr__darshan_use *u;
	struct hr__darshan_stdio *rec;

	if (o->e->file == 0 || d->pass != HR__DARSHAN_COUNT)
		return 0;
	st = hr__darshan_state(d, o, o->e->file, HR__DARSHAN_STDIO);
	if (st == NULL)
		return -ENOMEM;
	u = &d->uses[st->use];
	if (u->seen == NULL)
		u->seen = hr_arena_alloc(&d->memory, sizeof(*u->seen));
	if (u->seen == NULL)
		return -ENOMEM;
	u->ops[HR__DARSHAN_STDIO]++;
	add_seen(u->seen, o);
	if (o->info->class == HR_CLASS_SEEK && o->e->ret >= 0)
		follow_seek(st, o->e);
	if (!op_counts(o, u->stdio != NULL))
		return 0;
	rec = hr__darshan_stdio_record(d, u);
	return rec != NULL ? add_counted(d, rec, st, o) : -ENOMEM;
}
