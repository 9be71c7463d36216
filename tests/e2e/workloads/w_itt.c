/* SPDX-License-Identifier: Apache-2.0 */
/*
 * w_itt.c - a program that uses ITT, and what it has said on standard output (as w_nvtx.c)
 *
 * ITT's static part is a stand-in of its binary interface: it loads what INTEL_LIBITTNOTIFY64 names, and hands over a list of function
 * pointers, among them some that no tool of this kind fills.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

struct id {
	unsigned long long d1, d2, d3;
};
struct domain {
	volatile int flags;
	const char *name;
	void *wide;
	int extra1;
	void *extra2;
	struct domain *next;
};
struct string {
	const char *text;
	void *wide;
	int extra1;
	void *extra2;
	struct string *next;
};
struct function {
	const char *name;
	void **pointer;
	void *first, *nothing;
	int group;
};
struct global {
	unsigned char magic[8];
	unsigned long version[3];
	volatile long initialized[3];
	pthread_mutex_t mutex;
	void *library, *error_handler;
	const char **path;
	struct function *functions;
};

/* Nothing is there before a tool is, but for the macros that look. */
static struct domain *(*domain_create)(const char *);
static struct string *(*string_handle_create)(const char *);
static void (*task_begin)(const struct domain *, struct id, struct id, struct string *);
static void (*task_end)(const struct domain *);
static void (*task_begin_overlapped)(const struct domain *, struct id, struct id, struct string *);
static void (*task_end_overlapped)(const struct domain *, struct id);
static void (*region_begin)(const struct domain *, struct id, struct id, struct string *);
static void (*region_end)(const struct domain *, struct id);
static void (*frame_begin)(const struct domain *, struct id *);
static void (*frame_end)(const struct domain *, struct id *);
static void (*marker)(const struct domain *, struct id, struct string *, int);
static void (*thread_set_name)(const char *);
static int (*event_create)(const char *, int);
static int (*event_start)(int);
static int (*event_end)(int);
static void (*sync_create)(void);

#define F(name, variable)                                                                          \
	{                                                                                          \
		"__itt_" name, (void **)(void *)&(variable), NULL, NULL, 1 << 12                   \
	}
static struct function functions[] = {
    F("domain_create", domain_create),
    F("string_handle_create", string_handle_create),
    F("task_begin", task_begin),
    F("task_end", task_end),
    F("task_begin_overlapped", task_begin_overlapped),
    F("task_end_overlapped", task_end_overlapped),
    F("region_begin", region_begin),
    F("region_end", region_end),
    F("frame_begin_v3", frame_begin),
    F("frame_end_v3", frame_end),
    F("marker", marker),
    F("thread_set_name", thread_set_name),
    F("event_create", event_create),
    F("event_start", event_start),
    F("event_end", event_end),
    F("sync_create", sync_create),
    {NULL, NULL, NULL, NULL, 0},
};

static void load(void)
{
	static struct global global = {
	    .magic = {0xed, 0xab, 0xab, 0xec, 0x0d, 0xee, 0xda, 0x30},
	    .version = {3, 26, 3},
	    .mutex = PTHREAD_MUTEX_INITIALIZER,
	    .functions = functions,
	};
	const char *path = getenv("INTEL_LIBITTNOTIFY64");
	void (*init)(struct global *, int) = NULL;

	sync_create = load;
	global.library = path != NULL ? dlopen(path, RTLD_LAZY) : NULL;
	if (global.library != NULL)
		*(void **)(void *)&init = dlsym(global.library, "__itt_api_init");
	if (init != NULL)
		init(&global, -1);
	if (init != NULL && sync_create != NULL) /* a pointer that is not filled is emptied */
		_exit(3);
}

static void said(const char *kind, const char *domain, const char *category, const char *name,
		 const char *args)
{
	printf("%d\t%s\t%s\t%s\t%s\t1\t%s\n", getpid(), kind, domain, category, name, args);
}

static struct id span = {1, 2, 3}, other = {1, 2, 4};

static void *ends(void *domain)
{
	task_end_overlapped(domain, span);
	return NULL;
}

/* Before a tool is loaded, a static part makes handles of its own. */
static struct domain early = {.flags = 1, .name = "early"};
static struct string early_text = {.text = "task"};

int main(void)
{
	struct domain *d;
	struct string *outlives;
	char args[32];
	pthread_t t;
	int event;

	load();
	if (domain_create == NULL)
		return 0;
	d = domain_create("itt.domain");
	outlives = string_handle_create("outlives it");
	if (d->flags == 0 || domain_create("itt.domain") != d)
		return 4;
	thread_set_name("main");
	snprintf(args, sizeof(args), "{\"tid\":%ld}", syscall(SYS_gettid));
	said("mark", "", "thread_name", "main", args);
	task_begin(&early, (struct id){0}, (struct id){0}, &early_text);
	task_begin_overlapped(d, span, (struct id){0}, outlives);
	task_begin_overlapped(d, other, (struct id){0}, string_handle_create("overlaps"));
	usleep(2000);
	task_end(d); /* another domain's: nothing */
	task_end(&early);
	task_end_overlapped(d, other);
	usleep(2000);
	pthread_create(&t, NULL, ends, d);
	pthread_join(t, NULL);
	said("range", "early", "", "task", "");
	said("span", "itt.domain", "", "outlives it", "");
	said("span", "itt.domain", "", "overlaps", "");
	region_begin(d, span, (struct id){0}, string_handle_create("a region"));
	frame_begin(d, NULL);
	frame_end(d, NULL);
	frame_end(d, NULL);
	region_end(d, span);
	marker(d, (struct id){0}, string_handle_create("mark"), 1);
	said("span", "itt.domain", "", "a region", "");
	said("span", "itt.domain", "", "frame", "");
	said("mark", "itt.domain", "", "mark", "");
	event = event_create("event", 5);
	event_start(event);
	event_start(event_create("inner event", 11));
	event_end(event);
	event_end(event_create("inner event", 11));
	event_start(0); /* none */
	said("range", "", "", "event", "");
	said("range", "", "", "inner event", "");
	return 0;
}
