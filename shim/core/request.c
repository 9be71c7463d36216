/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.c - asynchronous requests in flight (libaio): from submission to the result
 *
 * A hash table of requests by the address of the control block. The kernel zeroes it in a forked
 * child, which does not inherit the queues of requests either. A key is 0 (free), 1 (a thread holds
 * the entry) or the address. One thread may submit while another gets results.
 */
#include "shim/core/clock.h"
#include "shim/core/path.h"
#include "shim/core/ring.h"

#define FREE   0u
#define HELD   1u
#define WINDOW 16u /* entries, from its hash on, in which a key can be: two cache lines of keys */

static uint64_t *place_of(uint64_t key, unsigned i)
{
	uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	return &hr_wiped.request_keys[(hash + i) % HR__REQUESTS];
}

static struct hr__request *request_at(const uint64_t *place)
{
	return &hr_wiped.requests[place - hr_wiped.request_keys];
}

static bool hold(uint64_t *place, uint64_t key)
{
	return __atomic_load_n(place, __ATOMIC_RELAXED) == key &&
	       __atomic_compare_exchange_n(place, &key, HELD, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static void request_release(uint64_t *place, struct hr__request *ret)
{
	*ret = *request_at(place);
	__atomic_store_n(place, FREE, __ATOMIC_RELEASE);
	__atomic_fetch_sub(&hr_wiped.request_count, 1, __ATOMIC_RELAXED);
}

static bool request_take(const void *address, struct hr__request *ret)
{
	uint64_t key = (uintptr_t)address;

	if (__atomic_load_n(&hr_wiped.request_count, __ATOMIC_RELAXED) == 0 || key <= HELD)
		return false;
	for (unsigned i = 0; i < WINDOW; i++) {
		uint64_t *place = place_of(key, i);

		if (hold(place, key)) {
			request_release(place, ret);
			return true;
		}
	}
	return false;
}

static bool request_put(const void *address, const struct hr__request *r)
{
	uint64_t key = (uintptr_t)address;

	for (unsigned i = 0; i < WINDOW; i++) {
		uint64_t *place = place_of(key, i);

		if (!hold(place, FREE))
			continue;
		*request_at(place) = *r;
		__atomic_fetch_add(&hr_wiped.request_count, 1, __ATOMIC_RELAXED);
		/* Release: pairs with the acquire of the next thread that takes the request. */
		__atomic_store_n(place, key, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

/* Records the event in the thread that got the result. A request never has an in-flight cell. */
static void request_record(const struct hr__request *r, int64_t ret, uint32_t bits)
{
	uint64_t end = hr_shim_ticks();
	struct hr_op op = {
	    .id = r->asked.id,
	    .fd = r->asked.fd,
	    .file = r->file,
	    .offset = r->asked.offset,
	    .asked = r->asked.bytes,
	    .start = r->start,
	};
	bool off;

	op.ring = hr__ring_for_op(HR__SEEK_NONE, &off);
	if (off)
		return;
	if (r->nonce != __atomic_load_n(&hr_wiped.nonce, __ATOMIC_RELAXED))
		op.start = end; /* submitted before the attach, perhaps with another clock */
	if (op.ring == NULL)
		op.ring = hr__ring_common();
	if (op.ring == NULL) {
		hr__counters_add(op.id, ret, op.asked, r->asked.flags,
				 end > op.start ? end - op.start : 0);
		return;
	}
	if (hr_self.slow.why[HR__SLOW_AGGREGATE] != 0)
		hr__ring_aggregate_flush();
	hr__ring_record(&op, end, ret, r->asked.flags, bits, NULL);
}

void hr_request_begin(const void *address, const struct hr_request *asked)
{
	struct hr__request r = {.asked = *asked, .file = hr_fd_get(asked->fd)}, old;
	bool off;

	/* An old request at this address has ended: the program read its result without a call. */
	if (request_take(address, &old))
		request_record(&old, HR_RET_NONE, HR_REC_CUT);
	if (!hr_file_tracked(r.file))
		return;
	hr__ring_for_op(HR__SEEK_FIRST, &off);
	if (off)
		return;
	if (hr__ring_any() != NULL)
		r.file = hr__fd_announce(asked->fd, r.file);
	r.nonce = __atomic_load_n(&hr_wiped.nonce, __ATOMIC_RELAXED);
	r.start = hr_shim_ticks();
	if (!request_put(address, &r))
		request_record(&r, HR_RET_NONE, HR_REC_CUT);
}

void hr_request_refused(const void *address)
{
	struct hr__request r;

	request_take(address, &r);
}

void hr_request_end(const void *address, int64_t ret)
{
	struct hr__request r;

	if (request_take(address, &r))
		request_record(&r, ret, 0);
}

void hr__requests_cut(void)
{
	struct hr__request r;

	if (__atomic_load_n(&hr_wiped.request_count, __ATOMIC_RELAXED) == 0)
		return;
	for (unsigned i = 0; i < HR__REQUESTS; i++) {
		uint64_t *place = &hr_wiped.request_keys[i];
		uint64_t key = __atomic_load_n(place, __ATOMIC_RELAXED);

		if (key > HELD && hold(place, key)) {
			request_release(place, &r);
			request_record(&r, HR_RET_NONE, HR_REC_CUT);
		}
	}
}
