/* SPDX-License-Identifier: Apache-2.0 */
/*
 * w_tfdata - reports waits as TensorFlow does
 *
 *      w_tfdata FOLDER         loads the libraries of tfmetrics.c as Python loads its modules.
 *                              Prints: PID, and the sum of the waits that they counted
 */
#include <dlfcn.h>
#include <headrace.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WAIT_US 30000

static struct headrace_name batch = {.name = "batch", .kind = HEADRACE_INPUT_WAIT};
static void (*waited)(uint64_t us);

static void *load(const char *folder, const char *name)
{
	char path[4096];
	void *library;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) {
		fprintf(stderr, "w_tfdata: %s\n", dlerror());
		exit(1);
	}
	return library;
}

static void *wait_once(void *arg)
{
	usleep(WAIT_US);
	waited(WAIT_US);
	return arg;
}

static void in_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, wait_once, NULL) != 0 || pthread_join(thread, NULL) != 0)
		abort();
}

int main(int argc, char **argv)
{
	void *counts;

	if (argc != 2)
		return 2;
	counts = load(argv[1], "libtfmetrics_counts.so");
	*(void **)&waited = dlsym(load(argv[1], "libtfmetrics_calls.so"), "tfmetrics_waited");
	headrace_step(7);
	in_thread(); /* compiled code waits for the step of this thread */
	headrace_begin(&batch);
	waited(WAIT_US); /* inside a wait that the program reports */
	headrace_end();
	headrace_step(HEADRACE_NONE);
	in_thread(); /* not in a step */
	printf("%d %ju\n", (int)getpid(), *(uintmax_t *)dlsym(counts, "tfmetrics_sum"));
	return 0;
}
