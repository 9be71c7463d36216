/* SPDX-License-Identifier: Apache-2.0 */
/*
 * w_nvtx.c - every form that NVTX has of saying what a program does, and what it has said on standard output
 *
 *     w_nvtx SHORTS THREADS WORKERS [alone|killed]
 *
 * A line for each thing that should be recorded: pid, kind, domain, category, name, how many, args, separated by tabs. The same
 * things in the first process, in threads, in forked workers and in an exec'ed child (`alone`). `killed`: by itself.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef NVTX_HEADERS
#include <nvtx3/nvToolsExt.h>
#else
#include "nvtx_stand_in.h"
#endif

static nvtxDomainHandle_t alpha, beta;
static nvtxStringHandle_t registered;
static long shorts;

static void said(const char *kind, const char *domain, const char *category, const char *name,
		 long n, const char *args)
{
	char line[512];
	int bytes = snprintf(line, sizeof(line), "%d\t%s\t%s\t%s\t%s\t%ld\t%s\n", getpid(), kind,
			     domain, category, name, n, args);

	if (write(STDOUT_FILENO, line, (size_t)bytes) != bytes)
		_exit(9);
}

static void pause_ms(long ms)
{
	usleep((useconds_t)ms * 1000);
}

static nvtxEventAttributes_t text(const char *message, uint32_t category)
{
	nvtxEventAttributes_t a = {0};

	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	a.category = category;
	a.messageType = NVTX_MESSAGE_TYPE_ASCII;
	a.message.ascii = message;
	return a;
}

static void ranges(void)
{
	nvtxEventAttributes_t a = text("in alpha", 7), b = text("in beta", 7);
	nvtxEventAttributes_t r = text(NULL, 0);

	nvtxRangePushA("plain");
	nvtxDomainRangePushEx(alpha, &a);
	nvtxDomainRangePushEx(beta, &b);
	pause_ms(2);
	nvtxDomainRangePop(alpha); /* beta's goes on */
	pause_ms(4);
	nvtxRangePop();
	pause_ms(4);
	nvtxDomainRangePop(beta);
	r.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	r.message.registered = registered;
	r.payloadType = NVTX_PAYLOAD_TYPE_INT64;
	r.payload.llValue = -42;
	nvtxDomainRangePushEx(alpha, &r);
	nvtxDomainRangePop(alpha);
	said("range", "", "", "plain", 1, "");
	said("range", "alpha", "file I/O", "in alpha", 1, "");
	said("range", "beta", "7", "in beta", 1, "");
	said("range", "alpha", "", "registered", 1, "{\"payload\":-42}");
}

static void spans_and_marks(void)
{
	nvtxEventAttributes_t a = text("crossing", 0), m = text("a moment", 7);
	nvtxRangeId_t wide = nvtxRangeStartW(L"gr\u00f6\u00dfer \u2192 \U0001f600");
	nvtxRangeId_t crossing = nvtxDomainRangeStartEx(beta, &a);

	pause_ms(1);
	nvtxRangeEnd(wide);
	nvtxDomainRangeEnd(beta, crossing);
	nvtxDomainRangeEnd(beta, crossing);
	nvtxMarkA("here");
	m.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
	m.payload.dValue = 0.125;
	nvtxDomainMarkEx(alpha, &m);
	said("span", "", "",
	     "gr\xc3\xb6\xc3\x9f"
	     "er \xe2\x86\x92 \xf0\x9f\x98\x80",
	     1, "");
	said("span", "beta", "", "crossing", 1, "");
	said("mark", "", "", "here", 1, "");
	said("mark", "alpha", "file I/O", "a moment", 1, "{\"payload\":1.25e-1}");
}

static void *thread(void *arg)
{
	nvtxEventAttributes_t a = text("short", 0);
	char name[32];

	snprintf(name, sizeof(name), "thread %ld", (long)arg);
	nvtxRangePushA(name);
	for (long i = 0; i < shorts; i++) {
		nvtxDomainRangePushEx(alpha, &a);
		nvtxDomainRangePop(alpha);
	}
	pause_ms(1);
	nvtxRangePop();
	said("range", "alpha", "", "short", shorts, "");
	said("range", "", "", name, 1, "");
	return NULL;
}

static void all(long threads)
{
	pthread_t t[64];

	ranges();
	spans_and_marks();
	for (long i = 0; i < threads && i < 64; i++)
		pthread_create(&t[i], NULL, thread, (void *)i);
	for (long i = 0; i < threads && i < 64; i++)
		pthread_join(t[i], NULL);
}

int main(int argc, char **argv)
{
	long threads = argc > 2 ? atol(argv[2]) : 0, workers = argc > 3 ? atol(argv[3]) : 0;
	int status, failed = 0;
	char args[32];

	shorts = argc > 1 ? atol(argv[1]) : 0;
	alpha = nvtxDomainCreateA("alpha");
	beta = nvtxDomainCreateA("beta");
	nvtxDomainNameCategoryA(alpha, 7, "file I/O");
	registered = nvtxDomainRegisterStringA(alpha, "registered");
	nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "main");
	snprintf(args, sizeof(args), "{\"tid\":%ld}", syscall(SYS_gettid));
	said("mark", "", "thread_name", "main", 1, args);
	all(threads);
	if (argc > 4 && strcmp(argv[4], "killed") == 0) {
		nvtxRangePushA("killed in it");
		said("range", "", "", "killed in it", 1, "");
		thread((void *)0);
		raise(SIGKILL);
	}
	nvtxRangePushA("over the forks");
	for (long i = 0; i < workers; i++) {
		if (fork() == 0) {
			nvtxRangePop(); /* the parent's: nothing */
			all(threads);
			nvtxRangePushA("left open");
			said("range", "", "", "left open", 1, "");
			_exit(0);
		}
	}
	if (argc <= 4 && fork() == 0) {
		execl("/proc/self/exe", argv[0], argv[1], argv[2], "0", "alone", NULL);
		_exit(127);
	}
	while (wait(&status) > 0)
		failed |= status;
	nvtxRangePop();
	said("range", "", "", "over the forks", 1, "");
	return failed != 0;
}
