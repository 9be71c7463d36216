/* SPDX-License-Identifier: Apache-2.0 */
/* The effect of operations on descriptors: opens, closes, copies, positions (position.h). */
#include "daemon/engine/fold.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>

static enum hr_fd_effect effect_of(const struct hr_op_info *info)
{
	switch (info->class) {
	case HR_CLASS_OPEN:
		return HR_FD_OPEN;
	case HR_CLASS_CLOSE:
		return HR_FD_CLOSE;
	case HR_CLASS_READ:
	case HR_CLASS_WRITE:
		return HR_FD_MOVE;
	case HR_CLASS_SEEK:
		return info->api == HR_API_POSIX || strncmp(info->name, "ftell", 5) == 0
			   ? HR_FD_LSEEK
			   : HR_FD_FSEEK;
	case HR_CLASS_META:
		if (strncmp(info->name, "dup", 3) == 0)
			return HR_FD_DUP;
		if (strcmp(info->name, "fdopen") == 0)
			return HR_FD_STREAM;
		return strncmp(info->name, "fcntl", 5) == 0 ? HR_FD_FCNTL : HR_FD_NONE;
	default:
		return HR_FD_NONE;
	}
}

void hr__traits_init(struct hr_engine *e)
{
	for (uint16_t op = HR_OP_FIRST; op < HR_OP_MAX; op++) {
		const struct hr_op_info *info = hr_op_info(op);

		if (!info->name || info->class == HR_CLASS_NONE || info->class == HR_CLASS_HOOK)
			continue;
		e->trait[op] = (struct hr_op_trait){info->class, info->api, info->bytes_rule,
						    (uint8_t)effect_of(info)};
	}
}

static void move_refs(struct fold *f, uint32_t file, uint32_t api, int change)
{
	struct hr_filerecs *recs = &f->e->filerecs;
	uint32_t i =
	    file ? hr_filerec_find(recs, f->p->id.proc, file, api, f->p->last_filerec) : UINT32_MAX;

	if (i != UINT32_MAX)
		hr_filerec_refs(recs, i, change);
}

static void fd_closed(struct fold *f, int32_t fd)
{
	struct hr_place last;

	if (hr_position_close(&f->p->positions, fd, &last))
		move_refs(f, last.file, last.api, -1);
}

static void fd_opened(struct fold *f, const struct operation *op)
{
	const struct hr_record *r = op->r;
	int32_t fd = r->fd >= 0 ? r->fd : (int32_t)r->ret;
	uint32_t file = op->path == UINT32_MAX ? 0 : f->e->paths.v[op->path].id;

	fd_closed(f, fd);
	if (file && hr_position_open(&f->p->positions, fd, file, op->trait.api, 0, r->flags))
		move_refs(f, file, op->trait.api, 1);
}

static void fd_duplicated(struct fold *f, int32_t from, int64_t to, bool cloexec)
{
	if (from == to || to < 0 || to > INT32_MAX)
		return;
	fd_closed(f, (int32_t)to);
	hr_position_dup(&f->p->positions, from, (int32_t)to, cloexec);
}

/*
 * Notes that an operation uses a position. Returns whether the last call, of another thread, was
 * still under way when the operation began: the kernel may have made them in the other order.
 */
static bool place_contended(const struct fold *f, struct hr_place *place,
			    const struct operation *op)
{
	bool contended = place->tid != f->ring->kept.tid && op->of.start_ns < place->end_ns;

	place->tid = f->ring->kept.tid;
	place->end_ns = op->of.start_ns + op->of.dur_ns;
	return contended;
}

/* Returns the position after a seek; negative: unknown. */
static int64_t sought_at(const struct fold *f, struct hr_place *place, const struct operation *op)
{
	const struct hr_record *r = op->r;

	if (place_contended(f, place, op) || place->shared == HR_SHARED)
		return -1;
	if (place->stream != (op->trait.api == HR_API_STDIO))
		return -1;
	if (op->trait.effect == HR_FD_LSEEK)
		return r->ret;
	if (r->flags == SEEK_SET)
		return r->offset;
	if (r->flags != SEEK_CUR || place->at < 0 || r->offset < -place->at)
		return -1;
	return place->at > INT64_MAX / 2 || r->offset > INT64_MAX / 2 ? -1 : place->at + r->offset;
}

static void fd_sought(struct fold *f, const struct operation *op)
{
	const struct hr_record *r = op->r;
	struct hr_place *place = hr_position_get(&f->p->positions, r->fd);

	if (!place && op->path != UINT32_MAX) {
		place = hr_position_open(&f->p->positions, r->fd, f->e->paths.v[op->path].id,
					 op->trait.api, -1, 0);
		if (place) { /* inherited, or opened before the attach: its flags are unknown */
			place->append = 1;
			place->shared =
			    f->p->id.kind == HR_PROC_FORK ? HR_SHARED : HR_SHARED_PERHAPS;
		}
	}
	if (!place)
		return;
	place->at = sought_at(f, place, op);
	if (place->at < 0 || place->at > INT64_MAX / 2)
		place->at = -1;
}

/* Whether a write goes to the end of the file, even if it has an offset. */
static bool appends(const struct hr_place *place, const struct operation *op)
{
	bool by_call = op->r->op == HR_OP_pwritev2 || op->r->op == HR_OP_pwritev64v2;

	return !place || place->append || (by_call && op->r->flags & RWF_APPEND);
}

/*
 * Returns the offset of a read or write. A call without an offset uses and moves the position of
 * its descriptor. The position is unknown if the descriptor refers to another file than at its last
 * recorded open: an unrecorded call (close_range, a received descriptor) has then replaced the
 * file.
 */
static int64_t fd_moved(struct fold *f, int32_t fd, uint32_t path, int64_t offset,
			const struct operation *op, bool writes)
{
	struct hr_place *place = hr_position_get(&f->p->positions, fd);
	int64_t at;

	if (place && path != UINT32_MAX && place->file != f->e->paths.v[path].id) {
		fd_closed(f, fd);
		place = NULL;
	}
	if (writes && appends(place, op)) {
		if (place && offset == HR_OFFSET_NONE)
			place->at = -1;
		return HR_OFFSET_NONE;
	}
	if (offset != HR_OFFSET_NONE || !place)
		return offset;
	if (place_contended(f, place, op) || place->stream != (op->trait.api == HR_API_STDIO))
		place->at = -1;
	at = place->at;
	if (at < 0)
		return HR_OFFSET_NONE;
	place->at = at <= INT64_MAX / 2 && !place->shared ? at + (int64_t)op->of.bytes : -1;
	return at;
}

/*
 * Records of probes always have an offset. A plain read or write moved the position past its bytes.
 * Other calls than pread and pwrite may have used either the position or an explicit offset: if
 * their offset equals the position, the position becomes unknown.
 */
static void kernel_moved(struct fold *f, const struct operation *op)
{
	struct hr_place *place = hr_position_get(&f->p->positions, op->r->fd);

	if (!place || place->append || op->of.failed || op->path == UINT32_MAX ||
	    place->file != f->e->paths.v[op->path].id)
		return;
	switch (op->r->op) {
	case HR_OP_read:
	case HR_OP_readv:
	case HR_OP_write:
	case HR_OP_writev:
		place->at =
		    op->of.offset < 0 || place->shared ? -1 : op->of.offset + (int64_t)op->of.bytes;
		break;
	case HR_OP_pread64:
	case HR_OP_preadv:
	case HR_OP_pwrite64:
	case HR_OP_pwritev:
		break;
	default:
		if (place->at == op->of.offset)
			place->at = -1;
	}
}

void hr__fd_move(struct fold *f, struct operation *op)
{
	bool writes = !op->pair && op->trait.class == HR_CLASS_WRITE;

	if (f->ring->source) {
		kernel_moved(f, op);
		return;
	}
	op->of.offset = fd_moved(f, op->r->fd, op->path, op->of.offset, op, writes);
	if (op->pair)
		op->offset2 = fd_moved(f, op->pair->fd, op->path2, op->pair->offset, op, true);
}

/* Returns whether a record of a probe came so late that its descriptor has a newer file. */
static bool is_reopened(const struct fold *f, const struct operation *op)
{
	const struct hr_place *place = hr_position_get(&f->p->positions, op->r->fd);

	return f->ring->source && place && op->path != UINT32_MAX &&
	       place->file != f->e->paths.v[op->path].id;
}

/* The record lacks the new flags: O_APPEND may be one of them, and FD_CLOEXEC none. */
static void flags_set(struct fold *f, int32_t fd, bool of_file)
{
	struct hr_place *place = hr_position_get(&f->p->positions, fd);

	if (place && of_file)
		place->append = 1;
	else if (place)
		place->cloexec = 0;
}

/* From now on, the position is that of a stream, which reads ahead. glibc sets O_APPEND itself. */
static void stream_made(struct fold *f, const struct hr_record *r)
{
	struct hr_place *place = hr_position_get(&f->p->positions, r->fd);

	if (!place)
		return;
	place->stream = 1;
	place->append |= (r->flags & O_APPEND) != 0;
	if (place->append)
		place->at = -1;
}

static bool fcntl_dups(const struct hr_record *r)
{
	return r->flags == F_DUPFD || r->flags == F_DUPFD_CLOEXEC;
}

/* A vfork child makes descriptors for the program that it will run, with positions of its parent. */
static void child_duplicated(struct fold *f, const struct operation *op)
{
	struct hr_place *place = hr_position_get(&f->p->positions, op->r->fd);

	if (place && (op->trait.effect == HR_FD_DUP ||
		      (op->trait.effect == HR_FD_FCNTL && fcntl_dups(op->r))))
		hr_position_share(place);
}

void hr__fd_effects(struct fold *f, const struct operation *op)
{
	const struct hr_record *r = op->r;

	/* After vfork, the descriptors of the child are not those of this process. */
	if (r->ret < 0)
		return;
	if (r->bits & HR_REC_VFORK) {
		child_duplicated(f, op);
		return;
	}
	switch (op->trait.effect) {
	case HR_FD_OPEN:
		fd_opened(f, op);
		break;
	case HR_FD_CLOSE:
		if (!is_reopened(f, op))
			fd_closed(f, r->fd);
		break;
	case HR_FD_DUP:
		fd_duplicated(f, r->fd, r->ret, r->flags & O_CLOEXEC); /* of dup3 */
		break;
	case HR_FD_FCNTL:
		if (fcntl_dups(r))
			fd_duplicated(f, r->fd, r->ret, r->flags == F_DUPFD_CLOEXEC);
		else if (r->flags == F_SETFL || r->flags == F_SETFD)
			flags_set(f, r->fd, r->flags == F_SETFL);
		break;
	case HR_FD_STREAM:
		stream_made(f, r);
		break;
	case HR_FD_LSEEK:
	case HR_FD_FSEEK:
		fd_sought(f, op);
		break;
	default:
		break;
	}
}
