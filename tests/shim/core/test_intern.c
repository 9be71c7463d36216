/* SPDX-License-Identifier: Apache-2.0 */
/* What NVTX and ITT programs call their regions, kept: once each, by any thread, up to a bound; numbers as JSON. */
#include "tests/shim/core/harness.h"

#include <pthread.h>
#include <wchar.h>

#include "shim/regions/intern.h"

static void start(void)
{
	const char *const env[] = {"HEADRACE_SOCKET=/nowhere", NULL};

	harness_init(env);
	CHECK(hr__interned_init() && hr__interned_init());
}

CASE(the_same)
{
	char text[] = "load";
	struct hr__domain *d, *other;
	struct headrace_name *n;

	start();
	d = hr__interned_domain("reader");
	other = hr__interned_domain("writer");
	CHECK(d == hr__interned_domain("reader") && d != other && d->stack != other->stack);
	CHECK((d->stack & UINT32_C(1) << 31) != 0 && hr__interned_domain(NULL)->name == NULL);
	n = hr__interned_name(d, 0, text);
	text[0] = 'X'; /* the caller's again */
	CHECK(strcmp(n->name, "load") == 0 && strcmp(n->domain, "reader") == 0 &&
	      n->category == NULL);
	CHECK(hr__interned_name(d, 0, "load") == n && hr__interned_name(other, 0, "load") != n);
	CHECK(hr__interned_name(d, 0, "loa") != n && hr__interned_name(d, 0, "load ") != n);
	for (int i = 0; i < 2; i++) { /* a text remembers who named it last */
		CHECK(hr__interned_name_kept(d, 0, hr__interned_text("load")) == n);
		CHECK(hr__interned_name_kept(other, 0, hr__interned_text("load")) ==
		      hr__interned_name(other, 0, "load"));
		CHECK(hr__interned_name_kept(d, 1, hr__interned_text("load")) ==
		      hr__interned_name(d, 1, "load"));
	}
	CHECK(strcmp(hr__interned_name(d, 0, NULL)->name, "") == 0);
}

static void library_domains(const char *nvtx, bool left_out)
{
	static const char *const of_libraries[] = {"dnnl::primitive::execute", "tbb.flow", "NCCL",
						   "f$omp$parallel:4@a.c:1:2"};
	const char *const env[] = {"HEADRACE_SOCKET=/nowhere", nvtx, NULL};

	harness_init(env);
	CHECK(hr__interned_init());
	for (size_t i = 0; i < sizeof(of_libraries) / sizeof(of_libraries[0]); i++) {
		const struct hr__domain *d = hr__interned_domain(of_libraries[i]);

		CHECK(d->left_out == left_out && d->itt.flags == !left_out);
	}
	CHECK(!hr__interned_domain("dnnl")->left_out && hr__interned_domain("dnnl")->itt.flags);
	CHECK(!hr__interned_domain("my NCCL")->left_out && !hr__interned_domain(NULL)->left_out);
}

CASE(libraries)
{
	library_domains(NULL, true);
}

CASE(libraries_on_request)
{
	library_domains("HEADRACE_NVTX=all", false);
}

/* A category is its number until it has a name, and each domain's own. */
CASE(categories)
{
	struct hr__domain *d, *other;
	struct headrace_name *before;

	start();
	d = hr__interned_domain("a");
	other = hr__interned_domain("b");
	before = hr__interned_name(d, 4294967295u, "x");
	CHECK(strcmp(before->category, "4294967295") == 0);
	hr__interned_category(d, 7, "io");
	CHECK(strcmp(hr__interned_name(d, 7, "x")->category, "io") == 0);
	CHECK(strcmp(hr__interned_name(other, 7, "x")->category, "7") == 0);
	hr__interned_category(d, 7, "net");
	CHECK(strcmp(hr__interned_name(d, 7, "x")->category, "net") == 0);
	hr__interned_category(d, 0, "none");
	CHECK(hr__interned_name(d, 0, "x")->category == NULL);
}

#define THREADS 4
#define NAMES	2000

static struct headrace_name *found[THREADS][NAMES];
static pthread_barrier_t barrier;

static void *asks(void *arg)
{
	long me = (long)arg;

	pthread_barrier_wait(&barrier);
	for (int i = 0; i < NAMES; i++) {
		char domain[16], text[32];

		snprintf(domain, sizeof(domain), "d%d", i % 7);
		snprintf(text, sizeof(text), "name %d", i);
		found[me][i] =
		    hr__interned_name(hr__interned_domain(domain), (uint32_t)i % 3, text);
	}
	return NULL;
}

CASE(many_threads)
{
	pthread_t t[THREADS];

	start();
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, asks, (void *)i);
	for (long i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < NAMES; i++) {
		char text[32];

		snprintf(text, sizeof(text), "name %d", i);
		CHECK(strcmp(found[0][i]->name, text) == 0);
		for (int k = 1; k < THREADS; k++)
			CHECK(found[k][i] == found[0][i]);
	}
}

/* There is an end, and a name for what is behind it. What was there stays. */
CASE(no_room)
{
	struct headrace_name *first, *last = NULL;
	struct hr__domain *d;
	char text[64];
	unsigned i;

	start();
	d = hr__interned_domain("d");
	first = hr__interned_name(d, 0, "iteration 0");
	for (i = 1; i < 100000 && last != &d->nameless; i++) {
		snprintf(text, sizeof(text), "iteration %u", i);
		last = hr__interned_name(d, 0, text);
	}
	CHECK(i > 8000 && i < 100000);
	CHECK(strcmp(last->name, HR__INTERN_NAMELESS) == 0 && strcmp(last->domain, "d") == 0);
	CHECK(hr__interned_name(d, 0, "iteration 0") == first);
	CHECK(hr__interned_domain("another")->name == NULL && hr__interned_text("fresh") == NULL);
	CHECK(hr__interned_name_kept(d, 0, NULL) == last);
}

/* Long texts fill the room before the table. */
CASE(no_bytes)
{
	struct hr__domain *d;
	char text[2000];
	unsigned i;

	start();
	d = hr__interned_domain("d");
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	for (i = 0; i < 100000; i++) {
		memcpy(text, &i, sizeof(i));
		for (unsigned k = 0; k < sizeof(i); k++)
			text[k] = (char)(text[k] | 0x80);
		if (hr__interned_name(d, i & 0xff, text) == &d->nameless)
			break;
	}
	CHECK(i > 10 && i < 100000);
}

CASE(wide)
{
	char out[HR__INTERN_TEXT + 1];
	wchar_t many[HR__INTERN_TEXT + 1];
	const wchar_t bad[] = {'a', 0xd800, 0x110000, 'b', 0};

	CHECK(strcmp(hr__interned_utf8(L"a\u00e9\u20ac\U0001f600", out),
		     "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80") == 0);
	CHECK(strcmp(hr__interned_utf8(bad, out), "a\xef\xbf\xbd\xef\xbf\xbd"
						  "b") == 0);
	for (unsigned i = 0; i < HR__INTERN_TEXT; i++)
		many[i] = 0x20ac;
	many[HR__INTERN_TEXT] = 0;
	CHECK(strlen(hr__interned_utf8(many, out)) == 999 && hr__interned_utf8(NULL, out) == NULL);
}

static void is(uint32_t type, uint64_t bits, const char *want)
{
	const struct hr__payload p = {type, bits};
	char text[HR__PAYLOAD_TEXT], number[HR__PAYLOAD_TEXT];

	snprintf(number, sizeof(number), "{\"payload\":%s}", want != NULL ? want : "");
	CHECK(hr__payload_text(&p, text) == (want != NULL));
	CHECK(want == NULL || strcmp(text, number) == 0);
}

static void is_double(double d, const char *want)
{
	uint64_t bits;

	memcpy(&bits, &d, sizeof(bits));
	is(3, bits, want);
}

/* Against libc's own reading of what was written. */
static void is_close(double d)
{
	struct hr__payload p = {.type = 3};
	char text[HR__PAYLOAD_TEXT];
	double back;

	memcpy(&p.bits, &d, sizeof(d));
	CHECK(hr__payload_text(&p, text));
	back = strtod(text + 11, NULL);
	CHECK(back >= d - 1e-13 * (d < 0 ? -d : d) && back <= d + 1e-13 * (d < 0 ? -d : d));
}

CASE(numbers)
{
	float f = 0.1F;
	uint32_t bits;
	double d;

	is(1, UINT64_MAX, "18446744073709551615");
	is(2, (uint64_t)INT64_MIN, "-9223372036854775808");
	is(4, UINT64_MAX, "4294967295");
	is(5, UINT64_MAX, "-1");
	is(0, 1, NULL);
	is(77, 1, NULL);
	memcpy(&bits, &f, sizeof(bits));
	is(6, bits, "1e-1");
	is_double(0, "0");
	is_double(-12, "-12");
	is_double(0.125, "1.25e-1");
	is_double(2.5, "2.5");
	is_double(9.9999999999999999, "10");
	is_double(1e300, "1e300");
	is_double(1.0 / 0.0, NULL);
	is_double(0.0 / 0.0, NULL);
	d = 1.2345678901234e-300;
	for (int i = 0; i < 600; i++, d *= -9.7)
		is_close(d);
}

/* ---- NVTX's door: each library of a program comes with a table of its own ------------------------------ */

typedef void function(void);
int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t));

#define SLOTS 16
static __thread function *slots[SLOTS];
static __thread unsigned slots_told;

static int table(int module, function ***ret_table, unsigned *ret_n)
{
	static __thread function **addresses[SLOTS];

	if (module != 1)
		return 0;
	for (unsigned i = 1; i < SLOTS; i++)
		addresses[i] = &slots[i];
	*(function ****)(void *)ret_table = addresses;
	*ret_n = slots_told;
	return 1;
}

static struct {
	size_t bytes;
	int (*table)(int, function ***, unsigned *);
} callbacks = {.table = table};

static const void *exported(uint32_t id)
{
	CHECK(id == 1);
	return &callbacks;
}

static void *initializes(void *unused)
{
	slots_told = SLOTS;
	pthread_barrier_wait(&barrier);
	CHECK(InitializeInjectionNvtx2(exported) == 1);
	for (unsigned i = 1; i < SLOTS; i++)
		CHECK(slots[i] != NULL);
	return NULL;
}

CASE(nvtx_comes_to_each)
{
	const char *const env[] = {"HEADRACE_SOCKET=/nowhere", NULL};
	pthread_t t[THREADS];

	harness_init(env);
	callbacks.bytes = sizeof(callbacks);
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, initializes, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	/* One of an older version has fewer. */
	slots_told = 3;
	CHECK(InitializeInjectionNvtx2(exported) == 1 && slots[2] != NULL && slots[3] == NULL);
	callbacks.bytes = 8;
	CHECK(InitializeInjectionNvtx2(exported) == 0);
}

CASE(nvtx_is_off)
{
	const char *const env[] = {"HEADRACE_SOCKET=/nowhere", "HEADRACE_NVTX=off", NULL};

	CHECK(InitializeInjectionNvtx2(exported) == 0); /* the shim is not ready */
	harness_init(env);
	slots_told = SLOTS;
	callbacks.bytes = sizeof(callbacks);
	CHECK(InitializeInjectionNvtx2(exported) == 0 && slots[1] == NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_same),
	    cmocka_unit_test(categories),
	    cmocka_unit_test(many_threads),
	    cmocka_unit_test(no_room),
	    cmocka_unit_test(no_bytes),
	    cmocka_unit_test(wide),
	    cmocka_unit_test(numbers),
	    cmocka_unit_test(nvtx_comes_to_each),
	    cmocka_unit_test(nvtx_is_off),
	    cmocka_unit_test(libraries),
	    cmocka_unit_test(libraries_on_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
