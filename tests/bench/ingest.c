/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest.c - how fast a real headrace-collector takes events over loopback, fsync and acknowledgement included
 *
 *      ingest [-n EVENTS] [-c CONNECTIONS] [-b EVENTS-PER-BATCH] [--daemons N --rate PER-S [--seconds S]] ADDRESS | --start FOLDER
 *
 * One process plays all daemons; with --start it starts the collector on a new store below FOLDER and removes that afterwards.
 * Frames are made beforehand by the generator of generate.h, so that no encoding is timed; all daemons send the same ones, each to a
 * stream of its own.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text.h"
#include "tests/bench/generate.h"
#include "tests/bench/ingest.h"
#include "tests/collector/client.h"

struct options {
	uint64_t events, connections, batch, rate, seconds;
	const char *start, *address;
};

/* CPU and memory of a process; 0: ourselves. */
struct usage {
	double cpu_s;
	uint64_t rss_kib, peak_kib;
};

struct bench {
	pid_t collector; /* 0: not ours */
	struct usage own, other;
	double begun_s;
};

static struct usage own_usage(void)
{
	struct usage u = {0};
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	u.cpu_s = (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
		  (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
	return u;
}

static struct usage usage_of(pid_t pid)
{
	unsigned long user = 0, system = 0;
	struct usage u = {0};
	char path[64], line[1024];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (f && fgets(line, sizeof(line), f) && strrchr(line, ')'))
		(void)sscanf(strrchr(line, ')'),
			     ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
			     &system); // NOLINT(cert-err34-c): the kernel's own numbers
	if (f)
		fclose(f);
	u.cpu_s = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "VmHWM:", 6) == 0)
			u.peak_kib = strtoull(line + 6, NULL, 10);
		if (strncmp(line, "VmRSS:", 6) == 0)
			u.rss_kib = strtoull(line + 6, NULL, 10);
	}
	if (f)
		fclose(f);
	return u;
}

static void begun(void *self)
{
	struct bench *b = self;

	b->own = own_usage();
	if (b->collector)
		b->other = usage_of(b->collector);
}

static double at(const struct bench_result *r, double part)
{
	return r->n_latency ? r->latency_s[(size_t)((double)(r->n_latency - 1) * part)] * 1e3 : 0;
}

static void print(const struct options *o, const struct bench *b, const struct bench_result *r)
{
	struct usage own = own_usage(), other = {0};

	if (b->collector)
		other = usage_of(b->collector);
	printf("connections            %10llu\n", (unsigned long long)o->connections);
	printf("events                 %10.1f M in %llu frames, %.1f MB\n", (double)r->events / 1e6,
	       (unsigned long long)r->frames, (double)r->bytes / 1e6);
	printf("time                   %10.2f s\n", r->seconds);
	printf("events/s               %10.2f M\n", (double)r->events / r->seconds / 1e6);
	printf("bytes/s                %10.1f MB\n", (double)r->bytes / r->seconds / 1e6);
	printf("CPU, this side         %10.2f s\n", own.cpu_s - b->own.cpu_s);
	if (b->collector) {
		printf("CPU, collector         %10.2f s (%.1f %% of a core)\n",
		       other.cpu_s - b->other.cpu_s,
		       100 * (other.cpu_s - b->other.cpu_s) / r->seconds);
		printf("memory, collector      %10.1f MiB before, %.1f now, %.1f at most\n",
		       (double)b->other.rss_kib / 1024, (double)other.rss_kib / 1024,
		       (double)other.peak_kib / 1024);
	}
	printf("ack latency            %10.1f ms p50, %.1f p90, %.1f p99, %.1f max\n", at(r, 0.5),
	       at(r, 0.9), at(r, 0.99), at(r, 1));
}

static int usage(void)
{
	fputs("usage: ingest [-n EVENTS] [-c CONNECTIONS] [-b EVENTS-PER-BATCH]\n"
	      "              [--daemons N --rate PER-S [--seconds S]] ADDRESS | --start FOLDER\n",
	      stderr);
	return 2;
}

static int parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
	    {"daemons", required_argument, NULL, 'c'},
	    {"rate", required_argument, NULL, 'r'},
	    {"seconds", required_argument, NULL, 't'},
	    {"start", required_argument, NULL, 's'},
	    {NULL, 0, NULL, 0},
	};
	int c;

	*o = (struct options){.events = 60000000, .connections = 4, .seconds = 30};
	while ((c = getopt_long(argc, argv, "n:c:b:", longs, NULL)) != -1) {
		uint64_t *to = c == 'n'	  ? &o->events
			       : c == 'c' ? &o->connections
			       : c == 'b' ? &o->batch
			       : c == 'r' ? &o->rate
					  : &o->seconds;

		if (c == '?')
			return -EINVAL;
		if (c == 's')
			o->start = optarg;
		else if (hr_text_parse_uint(optarg, UINT64_C(1) << 40, to) < 0 || *to == 0)
			return -EINVAL;
	}
	if (!o->start && optind < argc)
		o->address = argv[optind];
	if (o->batch == 0)
		o->batch = o->rate ? 4096 : HR_GEN_BATCH;
	return o->start || o->address ? 0 : -EINVAL;
}

static int play(const struct options *o, struct bench *b, const char *address)
{
	/* With a rate, a frame in eight or so is no batch: enough for all that time. */
	uint64_t events = o->rate ? o->rate * o->seconds * o->batch : o->events / o->connections;
	struct bench_frames frames;
	struct bench_result result;
	struct bench_play p = {.address = address,
			       .frames = &frames,
			       .connections = (unsigned)o->connections,
			       .rate = (double)o->rate,
			       .seconds = (unsigned)o->seconds};
	int r = bench_frames_make(&frames, events, (uint32_t)o->batch);

	if (r == 0)
		r = bench_play(&p, begun, b, &result);
	if (r == 0)
		print(o, b, &result);
	else
		fprintf(stderr, "ingest: %s\n", strerrordesc_np(-r));
	if (r == 0)
		free(result.latency_s);
	bench_frames_done(&frames);
	return r;
}

int main(int argc, char **argv)
{
	struct rlimit files = {0};
	struct bench b = {0};
	struct collector c = {0};
	char folder[2048], store[2100], log[2100];
	struct options o;
	int r = parse(argc, argv, &o);

	if (r < 0)
		return usage();
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (!o.start)
		return play(&o, &b, o.address) < 0;
	snprintf(folder, sizeof(folder), "%s/ingest-XXXXXX", o.start);
	if (!mkdtemp(folder)) {
		fprintf(stderr, "ingest: %s: %s\n", folder, strerrordesc_np(errno));
		return EXIT_FAILURE;
	}
	snprintf(store, sizeof(store), "%s/store", folder);
	snprintf(log, sizeof(log), "%s/log", folder);
	collector_start(&c, store, log, NULL);
	b.collector = c.pid;
	r = play(&o, &b, c.address);
	collector_stop(&c);
	build_empty(folder);
	return r < 0;
}
