/* SPDX-License-Identifier: Apache-2.0 */
#include "query/tables/each.h"

#include <pthread.h>
#include <stdatomic.h>

void hr_threads_run(unsigned threads, void *(*run)(void *data), void *data)
{
	pthread_t others[HR_EACH_THREADS_MAX];
	unsigned n = 0;

	while (n + 1 < threads && n < HR_EACH_THREADS_MAX &&
	       pthread_create(&others[n], NULL, run, data) == 0)
		n++;
	(void)run(data);
	while (n > 0)
		pthread_join(others[--n], NULL);
}

struct each_run {
	size_t n;
	int (*run)(void *data, size_t i);
	void *data;
	_Atomic size_t next;
	_Atomic int error;
};

static void *each_main(void *data)
{
	struct each_run *e = data;
	size_t i;

	while (atomic_load(&e->error) == 0 && (i = atomic_fetch_add(&e->next, 1)) < e->n) {
		int r = e->run(e->data, i), none = 0;

		if (r < 0)
			atomic_compare_exchange_strong(&e->error, &none, r);
	}
	return NULL;
}

int hr_each(unsigned threads, size_t n, int (*run)(void *data, size_t i), void *data)
{
	struct each_run e = {.n = n, .run = run, .data = data};

	hr_threads_run(n < threads ? (unsigned)n : threads, each_main, &e);
	return atomic_load(&e.error);
}
