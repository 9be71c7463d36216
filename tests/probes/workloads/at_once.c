/* SPDX-License-Identifier: Apache-2.0 */
/* at_once FILE THREADS - each thread opens and closes FILE, all at the same time: the process has done nothing before */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS_MOST 512

static pthread_barrier_t all;

static void *work(void *path)
{
	pthread_barrier_wait(&all);
	close(open(path, O_RDONLY));
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS_MOST];
	unsigned n = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;

	if (n == 0 || n > THREADS_MOST)
		return 2;
	pthread_barrier_init(&all, NULL, n);
	for (unsigned i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, work, argv[1]) != 0)
			return 1;
	for (unsigned i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
