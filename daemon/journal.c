/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HALF_MOST (UINT64_C(1) << 30)

struct hr_journal {
	pthread_mutex_t lock;
	struct hr_journal_hdr *map;
	uint64_t map_bytes;
	uint64_t half_bytes;
	struct hr_half *halves[2];
	unsigned active;
	uint64_t gen;	   /* of the active half, whether or not it counts yet */
	uint64_t head;	   /* of the active half: our copy */
	uint64_t reserved; /* size of the entry being written */
};

static uint64_t file_bytes(uint64_t half_bytes)
{
	return HR_PAGE_BYTES + 2 * half_bytes;
}

static int open_file(const char *path)
{
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)
		      : memfd_create("headrace-journal", MFD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int map_file(struct hr_journal *j, int fd)
{
	void *map;

	j->map_bytes = file_bytes(j->half_bytes);
	map = mmap(NULL, j->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	j->map = map;
	/* Looking at the headers is no reason to fill megabytes of page cache, which takes longer than all else at a job's begin. */
	madvise(map, j->map_bytes, MADV_RANDOM);
	for (unsigned i = 0; i < 2; i++)
		j->halves[i] =
		    (struct hr_half *)((uint8_t *)map + HR_PAGE_BYTES + i * j->half_bytes);
	return 0;
}

static int make(struct hr_journal *j, int fd)
{
	int r = posix_fallocate(fd, 0, (off_t)file_bytes(j->half_bytes));

	if (r)
		return -r;
	r = map_file(j, fd);
	if (r || !j->map)
		return r ? r : -ENOMEM;
	j->map->version = HR_JOURNAL_VERSION;
	j->map->half_bytes = j->half_bytes;
	/* The magic makes it a journal: last. */
	__atomic_store_n(&j->map->magic, HR_JOURNAL_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

/* 1: looks at a journal that is there; 0: the file is new, or its maker died before the magic. */
static int look(struct hr_journal *j, int fd)
{
	struct hr_journal_hdr hdr = {0};
	ssize_t n = pread(fd, &hdr, sizeof(hdr), 0);
	struct stat st;
	int r;

	if (n < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (hdr.magic == 0)
		return 0;
	if (hdr.magic != HR_JOURNAL_MAGIC || n < (ssize_t)sizeof(hdr))
		return -EBADMSG;
	if (hdr.version != HR_JOURNAL_VERSION)
		return -EPROTONOSUPPORT;
	if (hdr.half_bytes % HR_PAGE_BYTES || hdr.half_bytes < HR_PAGE_BYTES ||
	    hdr.half_bytes > HALF_MOST)
		return -EBADMSG;
	/* Cut short: what is missing reads as zeros, which no entry is made of. */
	r = file_bytes(hdr.half_bytes) > (uint64_t)st.st_size
		? posix_fallocate(fd, 0, (off_t)file_bytes(hdr.half_bytes))
		: 0;
	if (r)
		return -r;
	j->half_bytes = hdr.half_bytes;
	r = map_file(j, fd);
	return r ? r : 1;
}

int hr_journal_open(const char *path, uint64_t half_bytes, struct hr_journal **ret, bool *ret_found)
{
	struct hr_journal *j = calloc(1, sizeof(*j));
	int fd, r;

	if (!j)
		return -ENOMEM;
	fd = open_file(path);
	if (fd < 0) {
		free(j);
		return fd;
	}
	j->half_bytes = (half_bytes + HR_PAGE_BYTES - 1) & ~(uint64_t)(HR_PAGE_BYTES - 1);
	r = path ? look(j, fd) : 0;
	if (r == 0) {
		r = make(j, fd);
		if (r && path)
			unlink(path);
	}
	close(fd);
	if (r < 0) {
		hr_journal_close(j);
		return r;
	}
	pthread_mutex_init(&j->lock, NULL);
	*ret_found = j->halves[0]->gen || j->halves[1]->gen;
	madvise(j->map, j->map_bytes, MADV_NORMAL);
	*ret = j;
	return 0;
}

void hr_journal_close(struct hr_journal *j)
{
	if (!j)
		return;
	if (j->map)
		munmap(j->map, j->map_bytes);
	free(j);
}

void hr_journal_lock(struct hr_journal *j)
{
	pthread_mutex_lock(&j->lock);
}

void hr_journal_unlock(struct hr_journal *j)
{
	pthread_mutex_unlock(&j->lock);
}

uint64_t hr_journal_capacity(const struct hr_journal *j)
{
	return j->half_bytes - sizeof(struct hr_half);
}

uint64_t hr_journal_gen(const struct hr_journal *j)
{
	return j->gen;
}

uint64_t hr_journal_head(const struct hr_journal *j)
{
	return j->head;
}

void *hr_journal_reserve(struct hr_journal *j, uint64_t bytes, uint64_t slack)
{
	bytes = hr_entry_round(bytes);
	if (!j->gen || j->head + bytes + slack > hr_journal_capacity(j))
		return NULL;
	j->reserved = bytes;
	return j->halves[j->active]->entries + j->head;
}

void hr_journal_commit(struct hr_journal *j, uint32_t kind, uint64_t bytes)
{
	struct hr_half *half = j->halves[j->active];
	struct hr_entry *e = (struct hr_entry *)(half->entries + j->head);

	e->bytes = hr_entry_round(bytes < j->reserved ? bytes : j->reserved);
	e->kind = kind;
	j->head += e->bytes;
	/* Pairs with the acquire in hr_journal_next; after kill -9 the page cache has what came before. */
	__atomic_store_n(&half->head, j->head, __ATOMIC_RELEASE);
}

bool hr_journal_spare_free(const struct hr_journal *j)
{
	return __atomic_load_n(&j->halves[!j->active]->gen, __ATOMIC_ACQUIRE) == 0;
}

int hr_journal_begin(struct hr_journal *j)
{
	if (!hr_journal_spare_free(j))
		return -EBUSY;
	j->active = !j->active;
	j->gen++;
	j->head = 0;
	j->halves[j->active]->head = 0;
	return 0;
}

void hr_journal_begun(struct hr_journal *j)
{
	__atomic_store_n(&j->halves[j->active]->gen, j->gen, __ATOMIC_RELEASE);
}

void hr_journal_retire(struct hr_journal *j, uint64_t gen)
{
	for (unsigned i = 0; i < 2; i++) {
		uint64_t expected = gen;

		__atomic_compare_exchange_n(&j->halves[i]->gen, &expected, 0, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	}
}

unsigned hr_journal_replay(struct hr_journal *j, uint64_t ret_gens[2])
{
	uint64_t a = j->halves[0]->gen, b = j->halves[1]->gen;
	unsigned n = 0;

	if (a && (!b || a < b))
		ret_gens[n++] = a;
	if (b)
		ret_gens[n++] = b;
	if (a && b && a > b)
		ret_gens[n++] = a;
	if (!n)
		return 0;
	j->gen = ret_gens[n - 1];
	j->active = j->gen == a ? 0 : 1;
	j->head = j->halves[j->active]->head;
	if (j->head > hr_journal_capacity(j))
		j->head = 0;
	return n;
}

const struct hr_entry *hr_journal_next(const struct hr_journal *j, uint64_t gen, uint64_t *offset)
{
	/* Relaxed: the appender may retire the other half meanwhile, never the one that is asked for. */
	bool first = gen == j->gen ? j->active == 0
				   : __atomic_load_n(&j->halves[0]->gen, __ATOMIC_RELAXED) == gen;
	const struct hr_half *half = j->halves[first ? 0 : 1];
	uint64_t head;
	const struct hr_entry *e;

	head = __atomic_load_n(&half->head, __ATOMIC_ACQUIRE);
	if (head > hr_journal_capacity(j) || *offset + sizeof(*e) > head)
		return NULL;
	e = (const struct hr_entry *)(half->entries + *offset);
	if (e->bytes < sizeof(*e) || e->bytes % 8 || e->bytes > head - *offset)
		return NULL;
	*offset += e->bytes;
	return e;
}

uint64_t hr_journal_damaged(const struct hr_journal *j, uint64_t gen)
{
	const struct hr_half *half = j->halves[j->halves[0]->gen == gen ? 0 : 1];
	uint64_t at = 0;

	while (hr_journal_next(j, gen, &at))
		;
	return half->head > at ? half->head - at : 0;
}
