/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/session/session.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/procfs.h"

#define UNKNOWN_AGE_NS UINT64_C(3600000000000)
/*
 * A few seconds of any clock. If an operation ended later than now by more than this, its end is
 * invalid.
 */
#define FUTURE_TICKS (UINT64_C(1) << 33)

int hr_session_new(uint64_t proc, uint64_t token, pid_t pid, struct hr_session **ret)
{
	struct hr_session *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->proc = proc;
	s->token = token;
	s->pid = pid;
	s->since_ns = hr_boot_ns();
	*ret = s;
	return 0;
}

void hr_session_free(struct hr_session *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n_maps; i++)
		hr_map_close(&s->maps[i]);
	free(s);
}

int hr_map_open(int fd, struct hr_map *ret)
{
	struct hr_map map = {.slots_log2 = HR_RING_SLOTS_LOG2};
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS); /* fcntl fails unless fd is a memfd */
	void *at;

	/* Without these seals, a client could shrink the file that headraced has mapped. */
	if (seals < 0 || (seals & HR_SIZE_SEALS) != HR_SIZE_SEALS || fstat(fd, &st) < 0)
		return -EINVAL;
	while (map.slots_log2 < HR_OFFER_SLOTS_LOG2 && (uint64_t)st.st_size != hr_map_size(&map))
		map.slots_log2++;
	if ((uint64_t)st.st_size != hr_map_size(&map))
		return -EINVAL;
	at = mmap(NULL, hr_map_size(&map), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	map.hdr = at;
	map.inode = st.st_ino;
	*ret = map;
	return 0;
}

void hr_map_close(struct hr_map *map)
{
	if (map->hdr)
		munmap(map->hdr, hr_map_size(map));
	map->hdr = NULL;
}

void hr_map_name(uint64_t proc, uint32_t index, char ret[HR_MAP_NAME_BYTES])
{
	snprintf(ret, HR_MAP_NAME_BYTES, "s%llu.%u", (unsigned long long)proc, index);
}

int hr_session_add_map(struct hr_session *s, const struct hr_map *map)
{
	assert(s->n_maps <= HR_SESSION_MAPS && map->slots_log2 <= HR_OFFER_SLOTS_LOG2);
	if (s->n_maps == HR_SESSION_MAPS)
		return -ENOSPC;
	for (uint32_t i = 0; i < HR_MAP_RINGS; i++) {
		struct hr_ring_view *r = &s->rings[s->n_maps * HR_MAP_RINGS + i];
		uint8_t *at = (uint8_t *)map->hdr + hr_ring_offset(i, map->slots_log2);

		*r = (struct hr_ring_view){.hdr = (struct hr_ring_hdr *)at,
					   .n_slots = UINT64_C(1) << map->slots_log2};
		r->slots = (struct hr_record *)(at + sizeof(struct hr_ring_hdr));
	}
	s->maps[s->n_maps++] = *map;
	return 0;
}

uint64_t hr_session_slots(const struct hr_session *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->n_maps; i++)
		n += (uint64_t)HR_MAP_RINGS << s->maps[i].slots_log2;
	return n;
}

uint64_t hr_session_bytes(const struct hr_session *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->n_maps; i++)
		n += hr_map_size(&s->maps[i]);
	return n;
}

static const struct hr_record *slot_at(const struct hr_ring_view *r, uint64_t index)
{
	return &r->slots[index & (r->n_slots - 1)];
}

/* Acquire: pairs with the shim's release store of seq, which follows the stores to the slot. */
static bool committed(const struct hr_ring_view *r, uint64_t index)
{
	return __atomic_load_n(&slot_at(r, index)->seq, __ATOMIC_ACQUIRE) == (uint32_t)(index + 1);
}

/*
 * Returns how many slots from our tail on the client has reserved, as it claims. Pages of later
 * slots may not exist.
 */
static uint64_t reserved(const struct hr_ring_view *r)
{
	return __atomic_load_n(&r->hdr->head, __ATOMIC_RELAXED) - r->tail;
}

bool hr_ring_has_slots(const struct hr_ring_view *r)
{
	return reserved(r) != 0;
}

bool hr_ring_half_full(const struct hr_ring_view *r)
{
	return reserved(r) > r->n_slots / 2 && committed(r, r->tail + r->n_slots / 2);
}

/* ---- slots that will never be committed ------------------------------------------------------ */

/* Returns the index after the last reserved slot; if head is invalid, after the last slot. */
static uint64_t reserved_to(const struct hr_ring_view *r)
{
	uint64_t n = reserved(r);

	return r->tail + (n < r->n_slots ? n : r->n_slots);
}

/* Returns the index after the last committed slot from `index` on, or `index` itself. */
static uint64_t last_committed(const struct hr_ring_view *r, uint64_t index)
{
	for (uint64_t i = reserved_to(r); i-- > index;)
		if (committed(r, i))
			return i + 1;
	return index;
}

/*
 * Returns how long to wait for an uncommitted slot. The client sets `common`; a wrong value only
 * delays the client's own records.
 */
static uint64_t torn_ns(const struct hr_ring_view *r)
{
	return __atomic_load_n(&r->hdr->common, __ATOMIC_RELAXED) ? HR_TORN_COMMON_NS : HR_TORN_NS;
}

/* Returns whether the uncommitted slot at `index` is torn, so that headraced skips it. */
static bool skip(struct hr_ring_view *r, uint64_t index, bool gone, uint64_t now_ns)
{
	if (index < r->torn_to)
		return true;
	if (gone) { /* the owner is dead, so uncommitted slots are torn */
		uint64_t n = reserved(r);

		r->torn_to = n <= r->n_slots ? reserved_to(r) : last_committed(r, index);
		return index < r->torn_to;
	}
	if (__atomic_load_n(&r->hdr->head, __ATOMIC_RELAXED) == index) {
		r->stalled_ns = 0;
		return false;
	}
	if (r->stalled_ns == 0 || r->stalled_at != index) {
		r->stalled_at = index;
		r->stalled_ns = now_ns;
		return false;
	}
	if (now_ns - r->stalled_ns < torn_ns(r))
		return false;
	r->stalled_ns = now_ns;
	r->torn_to = last_committed(r, index);
	return index < r->torn_to;
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* Returns the number of slots of a record, as its first slot states at this moment. */
static uint32_t slots_of(const struct hr_record *s)
{
	if (s->op >= HR_OP_FIRST)
		return s->bits & HR_REC_PAIR ? 2 : 1;
	return hr_record_has_text(s) ? 1 + hr_text_slots(s->asked) : 1;
}

/* Returns when an operation or a region ended; 0 for other records. */
static uint64_t end_of(const struct hr_record *s)
{
	return s->op >= HR_OP_FIRST || s->op == HR_CTL_REGION ? s->start_ticks + hr_record_dur(s)
							      : 0;
}

uint32_t hr_ring_ready(struct hr_ring_view *r, uint64_t limit, uint32_t most, bool gone,
		       uint64_t now_ns, uint64_t *ret_end)
{
	uint64_t last_end = 0, all = reserved_to(r) - r->tail;
	uint32_t n = 0;

	assert(all <= r->n_slots); /* whatever head is */
	*ret_end = UINT64_MAX;
	while (n < all) {
		const struct hr_record *s = slot_at(r, r->tail + n);
		uint32_t size = 1;
		uint64_t end;

		if (!committed(r, r->tail + n)) {
			if (!skip(r, r->tail + n, gone, now_ns))
				break;
		} else {
			size = slots_of(s);
			end = end_of(s);
			if (end > limit && end - limit < FUTURE_TICKS)
				break;
			for (uint32_t i = 1; i < size && !gone; i++)
				if (n + i >= all || !committed(r, r->tail + n + i))
					return n;
			if (end > last_end && end <= limit) {
				last_end = end;
				r->last_end = end > r->last_end ? end : r->last_end;
			}
		}
		if (n && n + size > most) {
			*ret_end = last_end;
			break;
		}
		n += size;
	}
	return n < r->n_slots ? n : (uint32_t)r->n_slots;
}

bool hr_session_active_after(const struct hr_session *s, uint64_t ticks)
{
	for (uint32_t i = 0; i < hr_session_rings(s); i++)
		if (s->rings[i].last_end > ticks || hr_ring_has_slots(&s->rings[i]))
			return true;
	return false;
}

void hr_ring_copy(const struct hr_ring_view *r, uint32_t n, struct hr_record *to)
{
	assert(n <= r->n_slots);
	for (uint32_t i = 0; i < n; i++) {
		if (committed(r, r->tail + i))
			memcpy(&to[i], slot_at(r, r->tail + i), sizeof(*to));
		else
			memset(&to[i], 0, sizeof(*to));
	}
}

void hr_ring_consumed(struct hr_ring_view *r, uint32_t n)
{
	assert(n <= r->n_slots);
	r->tail += n;
	/* Release: pairs with the owner's acquire load, after which it may reuse the slots. */
	__atomic_store_n(&r->hdr->tail, r->tail, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&r->hdr->waiting, __ATOMIC_RELAXED))
		syscall(SYS_futex, &r->hdr->tail, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static uint64_t add_up(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* If *total differs from *seen, returns the non-zero elements as rows (op: `base` + index). */
static uint32_t lost_rows(const struct hr_lost *table, const uint64_t *total, uint64_t *seen,
			  uint64_t base, struct hr_lost_row *rows, uint64_t *ret_count)
{
	/* Acquire: pairs with the release add that follows each addition to the table. */
	uint64_t now = __atomic_load_n(total, __ATOMIC_ACQUIRE);
	uint32_t n = 0;

	if (now == *seen)
		return 0;
	*seen = now;
	*ret_count = 0;
	for (uint32_t op = 0; op < HR_OP_MAX; op++) {
		struct hr_lost_row row = {.op = base + op, .total = table[op]};

		if (row.total.count)
			rows[n++] = row;
		*ret_count = add_up(*ret_count, row.total.count);
	}
	return n;
}

uint32_t hr_ring_lost(struct hr_ring_view *r, struct hr_lost_row *rows)
{
	return lost_rows(r->hdr->lost, &r->hdr->lost_total, &r->lost_seen, 0, rows, &r->lost_count);
}

uint32_t hr_session_strays(struct hr_session *s, struct hr_lost_row *rows)
{
	const struct hr_map_hdr *map = s->maps[0].hdr;

	return lost_rows(map->strays, &map->stray_total, &s->strays_seen, HR_LOST_STRAYS, rows,
			 &s->strays_count);
}

/* Returns the number of processors. Calls sysconf() only once, because each call reads a file. */
static uint32_t cpus_online(void)
{
	static uint32_t known;
	uint32_t cpus = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (cpus == 0) {
		long n = sysconf(_SC_NPROCESSORS_ONLN);

		cpus = n > 0 ? (uint32_t)n : 1;
		__atomic_store_n(&known, cpus, __ATOMIC_RELAXED);
	}
	return cpus;
}

/*
 * Returns the most operations that the process can have done since its start. If the process has
 * ended, assumes a start of an hour before the session.
 */
static uint64_t count_most(struct hr_session *s, uint64_t now_ns)
{
	uint64_t started_ns = s->since_ns > UNKNOWN_AGE_NS ? s->since_ns - UNKNOWN_AGE_NS : 0;
	struct hr_procstat stat;

	if (!s->started_ns && hr_procstat_read(s->pid, &stat) == 0)
		s->started_ns = hr_procstat_ns(stat.start_time);
	if (s->started_ns && s->started_ns <= s->since_ns) /* otherwise, the pid was reused */
		started_ns = s->started_ns;
	return hr_count_most(cpus_online(), now_ns - started_ns);
}

uint32_t hr_session_check_lost(struct hr_session *s, struct hr_lost_row *rows, uint32_t n,
			       uint64_t now_ns)
{
	uint64_t sum = s->strays_count;

	if (n == 0)
		return 0;
	for (uint32_t i = 0; i < hr_session_rings(s); i++)
		sum = add_up(sum, s->rings[i].lost_count);
	if (sum <= count_most(s, now_ns))
		return n;
	rows[0].total.count = UINT64_MAX;
	return 1;
}

bool hr_session_excluded(struct hr_session *s, uint64_t ret_total[HR_EXCLUDED_KINDS])
{
	const struct hr_map_hdr *map = s->maps[0].hdr;
	uint64_t total[HR_EXCLUDED_KINDS], most;

	for (uint32_t kind = 0; kind < HR_EXCLUDED_KINDS; kind++)
		total[kind] = __atomic_load_n(&map->excluded[kind], __ATOMIC_RELAXED);
	if (memcmp(total, s->excluded_seen, sizeof(total)) == 0)
		return false;
	most = count_most(s, hr_boot_ns());
	memcpy(s->excluded_seen, total, sizeof(total));
	for (uint32_t kind = 0; kind < HR_EXCLUDED_KINDS; kind++)
		ret_total[kind] = total[kind] <= most ? total[kind] : UINT64_MAX;
	return true;
}

void hr_ring_cells(const struct hr_ring_view *r, struct hr_inflight *ret_inflight,
		   struct hr_aggregate *ret_aggregate)
{
	/* Acquire: pairs with the owner's release store of op. */
	(void)__atomic_load_n(&r->hdr->inflight.op, __ATOMIC_ACQUIRE);
	memcpy(ret_inflight, &r->hdr->inflight, sizeof(*ret_inflight));
	memcpy(ret_aggregate, &r->hdr->aggregate, sizeof(*ret_aggregate));
}

uint32_t hr_ring_regions(const struct hr_ring_view *r, struct hr_region_cell *cells)
{
	/* Acquire: pairs with the owner's release store, which follows its stores to the cells. */
	uint32_t n = __atomic_load_n(&r->hdr->region_depth, __ATOMIC_ACQUIRE);

	n = n < HR_REGION_DEPTH ? n : HR_REGION_DEPTH;
	memcpy(cells, r->hdr->regions, n * sizeof(*cells));
	return n;
}

uint32_t hr_ring_deeper(const struct hr_ring_view *r)
{
	uint32_t n = __atomic_load_n(&r->hdr->region_depth, __ATOMIC_RELAXED);

	return n > HR_REGION_DEPTH ? n - HR_REGION_DEPTH : 0;
}

uint32_t hr_session_spans(const struct hr_session *s, struct hr_region_cell *cells)
{
	const struct hr_region_cell *all = s->maps[0].hdr->spans;
	uint32_t n = 0;

	for (uint32_t i = 0; i < HR_REGION_SPANS; i++) {
		/* Acquire: pairs with the release store of key, the last store to the cell. */
		uint64_t key = __atomic_load_n(&all[i].key, __ATOMIC_ACQUIRE);

		if (key < 2) /* the cell is free, or is being written */
			continue;
		memcpy(&cells[n], &all[i], sizeof(*cells));
		cells[n++].key = key;
	}
	return n;
}

uint32_t hr_ring_shorts(const struct hr_ring_view *r, struct hr_region_short *cells)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < HR_REGION_SHORTS; i++) {
		const struct hr_region_short *s = &r->hdr->shorts[i];
		/* Acquire: pairs with the release store of count, the last store to the cell. */
		uint32_t count = __atomic_load_n(&s->count, __ATOMIC_ACQUIRE);

		if (count == 0)
			continue;
		memcpy(&cells[n], s, sizeof(*cells));
		cells[n++].count = count;
	}
	return n;
}

void hr_session_set_short(struct hr_session *s, uint64_t ticks)
{
	for (uint32_t i = 0; i < s->n_maps; i++)
		__atomic_store_n(&s->maps[i].hdr->short_ticks, (uint32_t)ticks, __ATOMIC_RELAXED);
}

void hr_session_set_level(struct hr_session *s, uint32_t level)
{
	if (s->asleep)
		level = HR_LEVEL_OFF;
	for (uint32_t i = 0; i < s->n_maps; i++)
		__atomic_store_n(&s->maps[i].hdr->level, level, __ATOMIC_RELAXED);
}
