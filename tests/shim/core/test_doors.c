/* SPDX-License-Identifier: Apache-2.0 */
/* What NVTX and ITT programs may hand over: NULL for anything, texts without an end, handles across fork. */
#include "tests/shim/core/harness.h"

#include <pthread.h>
#include <sys/mman.h>
#include <wchar.h>

#include "shim/regions/intern.h"

/* Regions that were told under this name, by all processes. */
static uint64_t told(struct fake_daemon *d, const char *domain, const char *category,
		     const char *name)
{
	uint64_t n = 0;

	fake_settle(d);
	for (size_t k = 0; k < fake_records(d); k++) {
		const struct fake_record *f = fake_record(d, k);
		const char *text = f->text;

		if (f->r.op != HR_CTL_REGION_KEY || strcmp(text + 2, domain) != 0)
			continue;
		text += 2 + strlen(domain) + 1;
		if (strcmp(text, category) != 0 || strcmp(text + strlen(text) + 1, name) != 0)
			continue;
		for (size_t i = 0; i < fake_records(d); i++) {
			const struct fake_record *g = fake_record(d, i);

			if (g->r.op == HR_CTL_REGION && g->session == f->session &&
			    g->r.file == f->r.file)
				n += g->r.flags & HR_REGION_HAS_ARGS ? 1 : g->r.asked;
		}
	}
	return n;
}

/* ---- NVTX ---------------------------------------------------------------------------------------------- */

typedef void function(void);
int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t));

#define SLOTS 16
enum { CORE, CORE2, MODULES };
static function *slots[MODULES][SLOTS];

static int table(int module, function ***ret_table, unsigned *ret_n)
{
	static function **addresses[MODULES][SLOTS];
	int m = module == 1 ? CORE : CORE2;

	if (module != 1 && module != 5)
		return 0;
	for (unsigned i = 1; i < SLOTS; i++)
		addresses[m][i] = &slots[m][i];
	*(function ****)(void *)ret_table = addresses[m];
	*ret_n = SLOTS;
	return 1;
}

static const void *exported(uint32_t id)
{
	static const struct {
		size_t bytes;
		int (*table)(int, function ***, unsigned *);
	} callbacks = {sizeof(callbacks), table};

	CHECK(id == 1);
	return &callbacks;
}

struct attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved0;
	uint64_t payload;
	int32_t message_type;
	const void *message;
};
enum { ASCII = 1, WIDE, REGISTERED };

#define CALL(m, slot, ret, ...) ((ret(*)(__VA_ARGS__))slots[m][slot])
#define mark_ex			CALL(CORE, 1, void, const void *)
#define mark_a			CALL(CORE, 2, void, const void *)
#define mark_w			CALL(CORE, 3, void, const void *)
#define start_ex		CALL(CORE, 4, uint64_t, const void *)
#define start_a			CALL(CORE, 5, uint64_t, const void *)
#define start_w			CALL(CORE, 6, uint64_t, const void *)
#define end			CALL(CORE, 7, void, uint64_t)
#define push_ex			CALL(CORE, 8, int, const void *)
#define push_a			CALL(CORE, 9, int, const void *)
#define push_w			CALL(CORE, 10, int, const void *)
#define pop			CALL(CORE, 11, int, void)
#define name_category_a		CALL(CORE, 12, void, uint32_t, const void *)
#define name_category_w		CALL(CORE, 13, void, uint32_t, const void *)
#define name_thread_a		CALL(CORE, 14, void, uint32_t, const void *)
#define name_thread_w		CALL(CORE, 15, void, uint32_t, const void *)
#define domain_mark_ex		CALL(CORE2, 1, void, void *, const void *)
#define domain_start_ex		CALL(CORE2, 2, uint64_t, void *, const void *)
#define domain_end		CALL(CORE2, 3, void, void *, uint64_t)
#define domain_push_ex		CALL(CORE2, 4, int, void *, const void *)
#define domain_pop		CALL(CORE2, 5, int, void *)
#define domain_name_category_a	CALL(CORE2, 8, void, void *, uint32_t, const void *)
#define domain_name_category_w	CALL(CORE2, 9, void, void *, uint32_t, const void *)
#define domain_register_a	CALL(CORE2, 10, void *, void *, const void *)
#define domain_register_w	CALL(CORE2, 11, void *, void *, const void *)
#define domain_create_a		CALL(CORE2, 12, void *, const void *)
#define domain_create_w		CALL(CORE2, 13, void *, const void *)
#define domain_destroy		CALL(CORE2, 14, void, void *)

static struct fake_daemon *start(void)
{
	struct fake_daemon *d = harness_start(NULL, NULL);

	CHECK(InitializeInjectionNvtx2(exported) == 1);
	return d;
}

/* Those without a name have an empty one, and nothing is named by NULL. */
CASE(nvtx_null)
{
	struct fake_daemon *d = start();
	struct attributes a = {.size = sizeof(a), .category = 7, .message_type = REGISTERED};
	void *domain = domain_create_a("d");

	mark_a(NULL);
	mark_w(NULL);
	end(start_a(NULL));
	end(start_w(NULL));
	push_a(NULL);
	pop();
	push_w(NULL);
	pop();
	CHECK(told(d, "", "", "") == 6);
	name_category_a(7, "io");
	name_category_a(7, NULL);
	name_category_w(7, NULL);
	mark_ex(&a);
	push_ex(&a);
	pop();
	end(start_ex(&a));
	CHECK(told(d, "", "io", "") == 3);
	domain_name_category_w(domain, 7, L"net");
	domain_name_category_a(domain, 7, NULL);
	domain_name_category_w(domain, 7, NULL);
	domain_mark_ex(domain, &a);
	domain_push_ex(domain, &a);
	domain_pop(domain);
	domain_end(domain, domain_start_ex(domain, &a));
	a.message_type = ASCII;
	domain_mark_ex(domain, &a);
	a.message_type = WIDE;
	domain_mark_ex(domain, &a);
	CHECK(told(d, "d", "net", "") == 5);
	CHECK(fake_lost(d, HR_CTL_REGION).count == 0);
}

CASE(nvtx_null_handles)
{
	struct fake_daemon *d = start();
	struct attributes a = {.size = sizeof(a), .message_type = REGISTERED};

	CHECK(domain_create_a(NULL) == domain_create_w(NULL));
	CHECK(domain_register_a(NULL, NULL) == NULL && domain_register_w(NULL, NULL) == NULL);
	a.message = domain_register_w(NULL, L"text");
	CHECK(a.message == domain_register_a(NULL, "text"));
	domain_mark_ex(NULL, &a);
	domain_end(NULL, domain_start_ex(NULL, &a));
	domain_push_ex(NULL, &a);
	domain_pop(NULL);
	CHECK(told(d, "", "", "text") == 3);
	domain_name_category_a(NULL, 1, NULL);
	domain_name_category_w(NULL, 1, NULL);
	domain_destroy(NULL);
	name_thread_a(7, NULL);
	name_thread_w(7, NULL);
	CHECK(told(d, "", "thread_name", "") == 2);
	mark_ex(NULL);
	push_ex(NULL);
	pop();
	domain_mark_ex(NULL, NULL);
	CHECK(told(d, "", "", HR__INTERN_NAMELESS) == 3);
}

/* A text that is not kept has a handle, and that one another name than no handle. */
CASE(nvtx_no_room)
{
	struct fake_daemon *d = start();
	struct attributes a = {.size = sizeof(a), .message_type = REGISTERED};
	char text[32];

	for (unsigned i = 0; i == 0 || hr__interned_text(text) != NULL; i++)
		snprintf(text, sizeof(text), "text %u", i);
	a.message = domain_register_a(NULL, "one that is too many");
	CHECK(a.message != NULL);
	mark_ex(&a);
	CHECK(told(d, "", "", HR__INTERN_NAMELESS) == 1);
}

/* ---- ITT ----------------------------------------------------------------------------------------------- */

struct id {
	unsigned long long d1, d2, d3;
};
struct itt_function {
	const char *name;
	void **pointer;
	void *first, *nothing;
	int group;
};
struct itt_global {
	unsigned char magic[8];
	unsigned long version[3];
	long initialized[3];
	pthread_mutex_t mutex;
	void *library, *error_handler;
	const char **path;
	struct itt_function *functions;
};
void __itt_api_init(struct itt_global *global, int groups);

static void *(*domain_create)(const char *);
static void *(*string_handle_create)(const char *);
static void (*task_begin)(void *, struct id, struct id, void *);
static void (*task_end)(void *);
static void (*region_begin)(void *, struct id, struct id, void *);
static void (*region_end)(void *, struct id);
static void (*frame_begin)(void *, struct id *);
static void (*frame_end)(void *, struct id *);
static void (*marker)(void *, struct id, void *, int);
static void (*thread_set_name)(const char *);
static int (*event_create)(const char *, int);
static int (*event_start)(int);
static int (*event_end)(int);

static struct fake_daemon *start_itt(void)
{
#define F(name, variable)                                                                          \
	{                                                                                          \
		"__itt_" name, (void **)(void *)&(variable), NULL, NULL, 0                         \
	}
	static struct itt_function functions[] = {
	    F("domain_create", domain_create),
	    F("string_handle_create", string_handle_create),
	    F("task_begin", task_begin),
	    F("task_end", task_end),
	    F("region_begin", region_begin),
	    F("region_end", region_end),
	    F("frame_begin_v3", frame_begin),
	    F("frame_end_v3", frame_end),
	    F("marker", marker),
	    F("thread_set_name", thread_set_name),
	    F("event_create", event_create),
	    F("event_start", event_start),
	    F("event_end", event_end),
	    {NULL, NULL, NULL, NULL, 0},
	};
	static struct itt_global global = {
	    .magic = {0xed, 0xab, 0xab, 0xec, 0x0d, 0xee, 0xda, 0x30}, .functions = functions};
	struct fake_daemon *d = harness_start(NULL, NULL);

	__itt_api_init(&global, -1);
	CHECK(domain_create != NULL && event_end != NULL);
	return d;
}

static const struct id none;

CASE(itt_null)
{
	struct fake_daemon *d = start_itt();

	CHECK(domain_create(NULL) == NULL && string_handle_create(NULL) == NULL);
	CHECK(event_create(NULL, 0) == 0 && event_create(NULL, 5) == 0);
	for (int event = -1; event < 100000; event += 1000) {
		event_start(event);
		event_end(event);
	}
	task_begin(NULL, none, none, NULL);
	task_end(NULL);
	region_begin(NULL, none, none, NULL);
	region_end(NULL, none);
	marker(NULL, none, NULL, 0);
	CHECK(told(d, "", "", "") == 3);
	frame_begin(NULL, NULL);
	frame_end(NULL, NULL);
	CHECK(told(d, "", "", "frame") == 1);
	thread_set_name(NULL);
	CHECK(told(d, "", "thread_name", "") == 1);
}

/* The events that the table has no place for: each start is a lost region. */
CASE(itt_too_many_events)
{
	struct fake_daemon *d = start_itt();
	char name[16];
	int event = 1;

	harness_attach();
	for (int i = 0; event != 0 && i < 2000; i++) {
		snprintf(name, sizeof(name), "event %d", i);
		event = event_create(name, 100);
	}
	for (int i = 0; i < 5; i++) {
		event_start(event);
		event_end(event);
	}
	CHECK(strcmp(name, "event 1024") == 0 && fake_lost(d, HR_CTL_REGION).count == 5);
}

/* An event's name has a length, and behind it there may be no memory. */
CASE(itt_name_at_the_end)
{
	struct fake_daemon *d = start_itt();
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int event;

	CHECK(at != MAP_FAILED && munmap(at + page, page) == 0);
	at += page - 8;
	memcpy(at, "abcdefgh", 8);
	event = event_create(at, 8);
	CHECK(event > 0 && event == event_create("abcdefghijk", 8) &&
	      event == event_create("abcdefgh", 100) && event != event_create("abcdefgh", 7));
	event_start(event);
	event_end(event);
	CHECK(told(d, "", "", "abcdefgh") == 1);
}

/* What the parent has open takes no place of the child's, and the child ends none of it. */
CASE(itt_fork)
{
	struct fake_daemon *d = start_itt();
	void *domain = domain_create("d"), *text = string_handle_create("text");
	struct id id = {0, 0, 0};
	pid_t pid;

	for (; id.d1 < HR_REGION_SPANS; id.d1++)
		region_begin(domain, id, none, text);
	pid = t_fork();
	if (pid == 0) {
		for (; id.d1 < 1000; id.d1++) {
			region_begin(domain, id, none, text);
			region_end(domain, id);
			region_end(domain, (struct id){id.d1 % HR_REGION_SPANS, 0, 0});
		}
		_exit(0);
	}
	t_wait(pid);
	CHECK(told(d, "d", "", "text") == 1000 - HR_REGION_SPANS && fake_sessions(d) == 2);
	for (id.d1 = 0; id.d1 < HR_REGION_SPANS; id.d1++)
		region_end(domain, id);
	CHECK(told(d, "d", "", "text") == 1000 && fake_lost(d, HR_CTL_REGION).count == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(nvtx_null),	   cmocka_unit_test(nvtx_null_handles),
	    cmocka_unit_test(nvtx_no_room),	   cmocka_unit_test(itt_null),
	    cmocka_unit_test(itt_name_at_the_end), cmocka_unit_test(itt_fork),
	    cmocka_unit_test(itt_too_many_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
