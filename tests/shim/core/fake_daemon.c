/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/shim/core/fake_internal.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

uint64_t fake_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void *fake_must(void *p)
{
	if (p == NULL)
		abort();
	return p;
}

/* ---- drain ------------------------------------------------------------------------------------- */

static const void *slot_at(const struct fake_ring *r, uint64_t index)
{
	uint64_t mask = (UINT64_C(1) << r->slots_log2) - 1;

	return (const char *)(r->hdr + 1) + (index & mask) * HR_SLOT_BYTES;
}

static bool committed(const struct fake_ring *r, uint64_t index)
{
	const struct hr_record *s = slot_at(r, index);

	return __atomic_load_n(&s->seq, __ATOMIC_ACQUIRE) == (uint32_t)(index + 1);
}

static void keep_path(struct fake_daemon *d, uint32_t session, const struct fake_ring *r,
		      const struct hr_record *head, uint64_t index)
{
	struct fake_path *p;

	if (head->asked == 0 || head->asked > HR_PAGE_BYTES ||
	    (uint64_t)head->fd != (head->asked + HR_TEXT_BYTES - 1) / HR_TEXT_BYTES) {
		d->bad++;
		return;
	}
	p = fake_must(calloc(1, sizeof(*p)));
	p->id = head->file;
	p->session = session;
	p->bytes = (uint32_t)head->asked;
	p->kind = head->flags;
	p->device = head->offset;
	p->mount = head->ret;
	p->bits = head->bits;
	for (uint32_t at = 0, i = 1; at < p->bytes; at += HR_TEXT_BYTES, i++) {
		const struct hr_text *t = slot_at(r, index + i);
		uint32_t n = p->bytes - at < HR_TEXT_BYTES ? p->bytes - at : HR_TEXT_BYTES;

		if (!committed(r, index + i))
			d->bad++;
		memcpy(p->text + at, t->text, n);
	}
	if (d->n_paths == d->cap_paths) {
		d->cap_paths = d->cap_paths * 2 + 64;
		d->paths = fake_must(realloc(d->paths, d->cap_paths * sizeof(*d->paths)));
	}
	d->paths[d->n_paths++] = p;
}

/* The text behind a record. */
static char *text_of(struct fake_daemon *d, const struct fake_ring *r, const struct hr_record *head,
		     uint64_t index)
{
	char *text;

	if (head->asked == 0 || head->asked > HR_REGION_TEXT) {
		d->bad++;
		return NULL;
	}
	text = fake_must(calloc(1, head->asked + 1));
	for (uint64_t at = 0, i = 1; at < head->asked; at += HR_TEXT_BYTES, i++) {
		const struct hr_text *t = slot_at(r, index + i);
		uint64_t left = head->asked - at;

		if (!committed(r, index + i))
			d->bad++;
		memcpy(text + at, t->text, left < HR_TEXT_BYTES ? left : HR_TEXT_BYTES);
	}
	return text;
}

static void keep_record(struct fake_daemon *d, uint32_t session, uint32_t ring, struct fake_ring *r,
			const struct hr_record *rec, uint64_t index)
{
	struct fake_record *k;

	if (d->n_records == d->cap_records) {
		d->cap_records = d->cap_records * 2 + 1024;
		d->records = fake_must(realloc(d->records, d->cap_records * sizeof(*d->records)));
	}
	k = &d->records[d->n_records++];
	memset(k, 0, sizeof(*k));
	k->r = *rec;
	k->session = session;
	k->ring = ring;
	k->tid = r->tid;
	if (rec->op >= HR_CTL_REGION_KEY && hr_record_has_text(rec))
		k->text = text_of(d, r, rec, index);
	if (rec->bits & HR_REC_PAIR) {
		memcpy(&k->pair, slot_at(r, index + 1), sizeof(k->pair));
		if (!committed(r, index + 1) || k->pair.op != HR_CTL_PAIR)
			d->bad++;
	}
}

/* Takes one committed record; returns its slots. */
static uint32_t take(struct fake_daemon *d, uint32_t session, uint32_t ring, struct fake_ring *r,
		     uint64_t index)
{
	struct hr_record rec;

	memcpy(&rec, slot_at(r, index), sizeof(rec));
	if (rec.op >= HR_OP_MAX) {
		d->bad++;
		return 1;
	}
	d->count[rec.op]++;
	if (rec.op == HR_CTL_THREAD)
		r->tid = rec.fd;
	if (rec.op == HR_CTL_PATH && !d->o.discard)
		keep_path(d, session, r, &rec, index);
	else if (!d->o.discard)
		keep_record(d, session, ring, r, &rec, index);
	if (hr_record_has_text(&rec))
		return 1 + (uint32_t)((rec.asked + HR_TEXT_BYTES - 1) / HR_TEXT_BYTES);
	return rec.bits & HR_REC_PAIR ? 2 : 1;
}

static size_t drain(struct fake_daemon *d, uint32_t session, uint32_t ring, struct fake_ring *r)
{
	uint64_t tail = r->hdr->tail, head = __atomic_load_n(&r->hdr->head, __ATOMIC_RELAXED);
	size_t n = 0;

	while (tail < head && committed(r, tail)) { /* at head there may be no memory */
		tail += take(d, session, ring, r, tail);
		n++;
		r->stuck_ns = 0;
	}
	if (tail < head && n == 0) {
		if (r->stuck_ns == 0)
			r->stuck_ns = fake_now_ns();
		else if (fake_now_ns() - r->stuck_ns > FAKE_TORN_NS) {
			tail++;
			n++;
			d->torn++;
			r->stuck_ns = 0;
		}
	}
	if (n == 0)
		return 0;
	__atomic_store_n(&r->hdr->tail, tail, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&r->hdr->waiting, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &r->hdr->tail, FUTEX_WAKE, 1, NULL, NULL, 0);
	return n;
}

static size_t sweep(struct fake_daemon *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_sessions; i++)
		for (uint32_t m = 0; m < d->sessions[i]->n_maps; m++)
			for (uint32_t k = 0; k < d->sessions[i]->maps[m].n_rings; k++)
				n += drain(d, (uint32_t)i, m * 256 + k,
					   &d->sessions[i]->maps[m].rings[k]);
	return n;
}

static void *run(void *arg)
{
	const struct timespec pause = {.tv_nsec = 500000};
	struct fake_daemon *d = arg;

	for (;;) {
		uint32_t bell = __atomic_load_n(&d->node->bell, __ATOMIC_RELAXED);
		bool stop, paused;

		while (fake_accept(d))
			;
		pthread_mutex_lock(&d->lock);
		stop = d->stop;
		paused = d->paused;
		if (!paused) {
			sweep(d);
			d->sweeps++;
			__atomic_fetch_add(&d->node->beat, 1, __ATOMIC_RELAXED);
		}
		pthread_mutex_unlock(&d->lock);
		if (stop)
			return NULL;
		/* Like the real one: a pause between sweeps, which a ring past its half cuts short. */
		__atomic_store_n(&d->node->sleeping, 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &d->node->bell, FUTEX_WAIT, bell, &pause, NULL, 0);
		__atomic_store_n(&d->node->sleeping, 0, __ATOMIC_SEQ_CST);
	}
}

/* ---- the test's side --------------------------------------------------------------------------- */

struct fake_daemon *fake_start(const char *path, const struct fake_options *options)
{
	struct fake_daemon *d = fake_must(calloc(1, sizeof(*d)));
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	sigset_t all, old;
	void *page;

	if (options != NULL)
		d->o = *options;
	d->o.rings = d->o.rings ? d->o.rings : HR_MAP_RINGS;
	d->o.slots_log2 = d->o.slots_log2 ? d->o.slots_log2 : HR_RING_SLOTS_LOG2;
	d->o.most_maps = d->o.most_maps ? d->o.most_maps : HR_SESSION_MAPS;
	d->o.level = d->o.off ? HR_LEVEL_OFF : d->o.level ? d->o.level : HR_LEVEL_TRACE;
	pthread_mutex_init(&d->lock, NULL);
	d->node_fd =
	    fake_memfd(HR_PAGE_BYTES, HR_PAGE_BYTES,
		       F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL, &page);
	d->node = page;
	d->node->magic = HR_ABI_MAGIC;
	d->node->abi = HR_ABI_VERSION;
	unlink(path);
	strncpy(addr.sun_path, path, sizeof(addr.sun_path) - 1);
	d->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (bind(d->listener, (void *)&addr, sizeof(addr)) != 0 || listen(d->listener, 128) != 0)
		abort();
	/* The test's signals are for the test's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&d->thread, NULL, run, d) != 0)
		abort();
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return d;
}

void fake_stop(struct fake_daemon *d)
{
	pthread_mutex_lock(&d->lock);
	d->stop = true;
	pthread_mutex_unlock(&d->lock);
	pthread_join(d->thread, NULL);
	close(d->listener);
	for (size_t i = 0; i < d->n_waiting; i++)
		close(d->waiting[i]);
	for (size_t i = 0; i < d->n_sessions; i++) {
		for (uint32_t m = 0; m < d->sessions[i]->n_maps; m++) {
			munmap(d->sessions[i]->maps[m].hdr,
			       hr_map_bytes(d->sessions[i]->maps[m].n_rings,
					    d->sessions[i]->maps[m].rings[0].slots_log2));
			free(d->sessions[i]->maps[m].rings);
		}
		free(d->sessions[i]->seen.items);
		free(d->sessions[i]);
	}
	for (size_t i = 0; i < d->n_paths; i++)
		free(d->paths[i]);
	free(d->paths);
	for (size_t i = 0; i < d->n_records; i++)
		free(d->records[i].text);
	free(d->records);
	munmap(d->node, HR_PAGE_BYTES);
	close(d->node_fd);
	free(d);
}

void fake_pause(struct fake_daemon *d, bool pause)
{
	pthread_mutex_lock(&d->lock);
	d->paused = pause;
	pthread_mutex_unlock(&d->lock);
}

void fake_level(struct fake_daemon *d, enum hr_level level)
{
	pthread_mutex_lock(&d->lock);
	d->o.level = level;
	for (size_t i = 0; i < d->n_sessions; i++)
		for (uint32_t m = 0; m < d->sessions[i]->n_maps; m++)
			__atomic_store_n(&d->sessions[i]->maps[m].hdr->level, level,
					 __ATOMIC_RELAXED);
	pthread_mutex_unlock(&d->lock);
}

void fake_settle(struct fake_daemon *d)
{
	pthread_mutex_lock(&d->lock);
	while (sweep(d) > 0)
		;
	pthread_mutex_unlock(&d->lock);
}

size_t fake_waiting(struct fake_daemon *d)
{
	size_t n;

	pthread_mutex_lock(&d->lock);
	n = d->n_waiting;
	pthread_mutex_unlock(&d->lock);
	return n;
}

size_t fake_sessions(struct fake_daemon *d)
{
	size_t n;

	pthread_mutex_lock(&d->lock);
	n = d->n_sessions;
	pthread_mutex_unlock(&d->lock);
	return n;
}

const struct fake_session *fake_session(struct fake_daemon *d, size_t i)
{
	return &d->sessions[i]->seen;
}

uint64_t fake_token(struct fake_daemon *d, size_t i)
{
	return d->sessions[i]->token;
}

size_t fake_maps(struct fake_daemon *d, size_t session)
{
	return d->sessions[session]->n_maps;
}

long fake_item(const struct fake_session *s, enum hr_item_kind kind, size_t nth, char *buf,
	       size_t cap)
{
	size_t end = s->hello.bytes - sizeof(s->hello);

	for (size_t at = 0; at + sizeof(struct hr_item_hdr) <= end;) {
		struct hr_item_hdr h;

		memcpy(&h, s->items + at, sizeof(h));
		at += sizeof(h);
		if (h.kind == kind && nth-- == 0) {
			size_t n = h.bytes < cap - 1 ? h.bytes : cap - 1;

			memcpy(buf, s->items + at, n);
			buf[n] = '\0';
			return h.bytes;
		}
		at += h.bytes;
	}
	return -1;
}

size_t fake_records(struct fake_daemon *d)
{
	size_t n;

	pthread_mutex_lock(&d->lock);
	n = d->n_records;
	pthread_mutex_unlock(&d->lock);
	return n;
}

const struct fake_record *fake_record(struct fake_daemon *d, size_t i)
{
	return &d->records[i];
}

uint64_t fake_count(struct fake_daemon *d, uint16_t op)
{
	uint64_t n;

	pthread_mutex_lock(&d->lock);
	n = d->count[op];
	pthread_mutex_unlock(&d->lock);
	return n;
}

uint64_t fake_with_bits(struct fake_daemon *d, uint16_t op, uint32_t bits)
{
	uint64_t n = 0;

	for (size_t i = 0; i < d->n_records; i++)
		n += d->records[i].r.op == op && (d->records[i].r.bits & bits) == bits;
	return n;
}

uint64_t fake_total(struct fake_daemon *d)
{
	uint64_t n = 0;

	for (unsigned op = HR_OP_FIRST; op < HR_OP_MAX; op++)
		n += fake_count(d, (uint16_t)op);
	return n;
}

uint64_t fake_torn(struct fake_daemon *d)
{
	return d->torn;
}

uint64_t fake_bad(struct fake_daemon *d)
{
	return d->bad;
}

const struct fake_path *fake_path(struct fake_daemon *d, uint32_t session, uint64_t id)
{
	for (size_t i = d->n_paths; i-- > 0;)
		if (d->paths[i]->session == session && d->paths[i]->id == id)
			return d->paths[i];
	return NULL;
}

size_t fake_paths(struct fake_daemon *d)
{
	return d->n_paths;
}

const struct fake_path *fake_path_at(struct fake_daemon *d, size_t i)
{
	return d->paths[i];
}

static void sum_up(struct hr_lost *sum, const struct hr_lost *l)
{
	sum->count += __atomic_load_n(&l->count, __ATOMIC_RELAXED);
	sum->bytes += __atomic_load_n(&l->bytes, __ATOMIC_RELAXED);
	sum->ticks += __atomic_load_n(&l->ticks, __ATOMIC_RELAXED);
}

struct hr_lost fake_lost(struct fake_daemon *d, uint16_t op)
{
	struct hr_lost sum = {0};

	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->n_sessions; i++)
		for (uint32_t m = 0; m < d->sessions[i]->n_maps; m++)
			for (uint32_t k = 0; k < d->sessions[i]->maps[m].n_rings; k++)
				sum_up(&sum, &d->sessions[i]->maps[m].rings[k].hdr->lost[op]);
	pthread_mutex_unlock(&d->lock);
	return sum;
}

struct hr_lost fake_strays(struct fake_daemon *d, uint16_t op)
{
	struct hr_lost sum = {0};

	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->n_sessions; i++)
		sum_up(&sum, &d->sessions[i]->maps[0].hdr->strays[op]);
	pthread_mutex_unlock(&d->lock);
	return sum;
}

uint64_t fake_excluded(struct fake_daemon *d, uint32_t kind)
{
	uint64_t sum = 0;

	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->n_sessions; i++)
		sum +=
		    __atomic_load_n(&d->sessions[i]->maps[0].hdr->excluded[kind], __ATOMIC_RELAXED);
	pthread_mutex_unlock(&d->lock);
	return sum;
}

struct hr_inflight fake_inflight(struct fake_daemon *d, size_t session, uint32_t map, uint32_t ring)
{
	const struct hr_inflight *cell;
	struct hr_inflight copy = {0};

	pthread_mutex_lock(&d->lock);
	cell = &d->sessions[session]->maps[map].rings[ring].hdr->inflight;
	copy.op = __atomic_load_n(&cell->op, __ATOMIC_ACQUIRE);
	copy.file = __atomic_load_n(&cell->file, __ATOMIC_RELAXED);
	copy.start_ticks = __atomic_load_n(&cell->start_ticks, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&d->lock);
	return copy;
}

const struct hr_ring_hdr *fake_ring(struct fake_daemon *d, size_t session, uint32_t map,
				    uint32_t ring)
{
	const struct hr_ring_hdr *hdr;

	pthread_mutex_lock(&d->lock);
	hdr = d->sessions[session]->maps[map].rings[ring].hdr;
	pthread_mutex_unlock(&d->lock);
	return hdr;
}

const struct hr_map_hdr *fake_map(struct fake_daemon *d, size_t session, uint32_t map)
{
	const struct hr_map_hdr *hdr;

	pthread_mutex_lock(&d->lock);
	hdr = d->sessions[session]->maps[map].hdr;
	pthread_mutex_unlock(&d->lock);
	return hdr;
}
