/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed - a daemon whose events are known beforehand: spool and uplink of headraced, fed with generated frames
 *
 *      feed SPOOL --node=N --collector=tcp://A[,tcp://B] [--batches=N] [--events=N] [--every-ms=N] [--spool-bytes=N]
 *           [--instance=N] [--newer]
 *
 * --newer: as a later release writes: a field more in each frame, and behind each batch a frame of a kind that is not known yet.
 *
 * Each frame is a function of its number, so one that was killed goes on where its spool ends, as headraced does by its journal.
 * Event i reads one byte at offset i of /data/<node>.numbered. Ends with 0 when a collector has acknowledged all.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/spool/spool.h"
#include "daemon/uplink/uplink.h"
#include "tests/store/build.h"

#define FIRST_NS UINT64_C(1000000000000) /* of the node's boot clock */

enum { SEQ_JOB = 2, SEQ_PROCESS, SEQ_PATH, SEQ_DATA };

struct feed {
	const char *spool_path, *node, *collectors;
	uint64_t batches, events, every_ms, spool_bytes, instance;
	bool newer;
	struct hr_spool *spool;
	struct hr_uplink *uplink;
	struct hr_writer *writer;
	struct hr_encoder *encoder;
	struct hr_event *list;
	char ended[4096]; /* a file that says that the stream was written to its end */
	char error[512];  /* of the uplink, as it was said last */
};

static void die(const char *what, int r)
{
	fprintf(stderr, "feed: %s: %s\n", what, strerrordesc_np(r < 0 ? -r : r));
	exit(1);
}

/* ---- frames ------------------------------------------------------------------------------------ */

/* Events, rollups, and what only a later release writes. */
static uint64_t frames_of_batch(const struct feed *f)
{
	return f->newer ? 3 : 2;
}

static uint64_t last_seq(const struct feed *f)
{
	return SEQ_DATA + frames_of_batch(f) * f->batches + 1; /* the job's end, the stream's end */
}

/* Times that do not compress, so that batches take room. */
static uint64_t noise(uint64_t number)
{
	return (number * UINT64_C(0x9e3779b97f4a7c15)) >> 40;
}

static void fill_events(struct feed *f, uint64_t batch)
{
	for (uint64_t i = 0; i < f->events; i++) {
		uint64_t number = batch * f->events + i;

		f->list[i] =
		    (struct hr_event){.start_ns = FIRST_NS + number * 1000 + noise(number) % 1000,
				      .dur_ns = noise(number),
				      .offset = (int64_t)number,
				      .ret = 1,
				      .asked = 1,
				      .file = 1,
				      .fd = 3,
				      .op = HR_OP_pread64};
	}
}

/* A packed frame, which is freed. */
static void append(struct feed *f, uint8_t *frame, size_t bytes)
{
	static const struct timespec pause = {.tv_nsec = 20000000};
	int r;

	while ((r = hr_spool_make_room(f->spool, f->writer, bytes)) < 0 ||
	       (r = hr_writer_append(f->writer, frame, bytes)) < 0) {
		if (r != -ENOSPC)
			die("append", r);
		nanosleep(&pause, NULL);
	}
	free(frame);
	hr_spool_appended(f->spool, hr_writer_mark(f->writer));
}

static void make_frame(struct feed *f, uint64_t seq)
{
	const struct hr_task task = {.proc = 1, .tid = 1};
	uint64_t batch = (seq - SEQ_DATA) / frames_of_batch(f);
	uint64_t part = (seq - SEQ_DATA) % frames_of_batch(f);
	bool last = seq == last_seq(f), job = seq == SEQ_JOB || seq + 1 == last_seq(f);
	bool later_kind = seq >= SEQ_DATA && !last && !job && part == 2;
	char name[300], later[64];
	ProtobufCMessageUnknownField field = {.tag = 500,
					      .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
					      .data = (uint8_t *)later};
	struct build b = {.seq = seq,
			  .now_ns = FIRST_NS,
			  .real_minus_boot_ns = UINT64_C(1700000000000000000) - FIRST_NS,
			  .zstd = BUILD_ZSTD_NONE,
			  .unknown = f->newer ? &field : NULL,
			  .encoder = f->encoder};

	field.len = 1 + (size_t)snprintf(later + 1, sizeof(later) - 1, "later %s %llu.",
					 later_kind ? "kind" : "field", (unsigned long long)seq);
	later[0] = (char)(field.len - 1);
	snprintf(name, sizeof(name), "/data/%s.numbered", f->node);
	if (job)
		build_job(&b, (Headrace__JobEvent){.state = seq == SEQ_JOB ? "running" : "ended",
						   .uid = getuid(),
						   .start_ns = FIRST_NS});
	else if (seq == SEQ_PROCESS)
		build_processes(
		    &b, &(Headrace__Process){.proc = 1, .pid = 4711, .start_ns = FIRST_NS}, 1);
	else if (seq == SEQ_PATH)
		build_paths(
		    &b,
		    &(Headrace__Path){.id = 1, .hash = 8 * f->instance, .path = build_bytes(name)},
		    1, NULL, 0);
	else if (last)
		build_end(&b, "ended");
	else if (later_kind)
		build_send(&b, &(Headrace__Frame)HEADRACE__FRAME__INIT);
	else if (part == 0) {
		fill_events(f, batch);
		build_events(&b, f->list, f->events, &task, 1);
	} else
		build_rollups(&b, FIRST_NS,
			      &(Headrace__Rollup){.proc = 1,
						  .op = HR_OP_pread64,
						  .count = f->events,
						  .bytes = f->events,
						  .dur_ns = 300 * f->events + batch % 7},
			      1, NULL, 0);
	append(f, b.packed, b.packed_bytes);
}

/* ---- running ----------------------------------------------------------------------------------- */

static void open_stream(struct feed *f)
{
	struct hr_stream_id id = {.cluster = "",
				  .job = "fed",
				  .node = f->node,
				  .boot_id = "b00t",
				  .instance = f->instance};
	int r = hr_spool_open_stream(f->spool, &id, &f->writer);

	if (r < 0)
		die("open the stream", r);
}

/* What keeps the uplink from sending, each thing once. */
static void tell_error(struct feed *f)
{
	struct hr_uplink_stats s;

	hr_uplink_stats(f->uplink, &s);
	if (strcmp(s.error, f->error) == 0)
		return;
	snprintf(f->error, sizeof(f->error), "%s", s.error);
	fprintf(stderr, "feed: %s\n", f->error);
}

static void write_stream(struct feed *f)
{
	struct timespec pause = {.tv_sec = (time_t)(f->every_ms / 1000),
				 .tv_nsec = (long)(f->every_ms % 1000 * 1000000)};
	int r;

	for (uint64_t seq = hr_writer_mark(f->writer) + 1; seq <= last_seq(f); seq++) {
		make_frame(f, seq);
		if (seq < SEQ_DATA || (seq - SEQ_DATA) % frames_of_batch(f) != 1)
			continue;
		tell_error(f);
		nanosleep(&pause, NULL);
	}
	r = hr_writer_close(f->writer);
	if (r < 0)
		die("close the stream", r);
	/* From here on there is nothing to make again, also for the next one. */
	r = creat(f->ended, 0600);
	if (r < 0)
		die(f->ended, errno);
	close(r);
	hr_spool_closed(f->spool);
}

/* Until a collector has all. */
static void wait_for_uplink(struct feed *f)
{
	static const struct timespec pause = {.tv_nsec = 20000000};
	struct hr_uplink_stats s;
	unsigned searches;

	hr_uplink_stats(f->uplink, &s);
	searches = s.searches;
	do {
		nanosleep(&pause, NULL);
		tell_error(f);
		hr_uplink_stats(f->uplink, &s);
		if (s.aside) {
			fprintf(stderr, "feed: set aside: %s\n", s.aside_text);
			exit(3);
		}
	} while (s.searches < searches + 2 || s.streams + s.elsewhere + s.waiting_journals > 0);
}

static int parse(struct feed *f, int argc, char **argv)
{
	static const struct option options[] = {{"node", required_argument, NULL, 'n'},
						{"collector", required_argument, NULL, 'c'},
						{"batches", required_argument, NULL, 'b'},
						{"events", required_argument, NULL, 'e'},
						{"every-ms", required_argument, NULL, 'm'},
						{"spool-bytes", required_argument, NULL, 's'},
						{"instance", required_argument, NULL, 'i'},
						{"newer", no_argument, NULL, 'w'},
						{0}};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'n':
			f->node = optarg;
			break;
		case 'c':
			f->collectors = optarg;
			break;
		case 'b':
			f->batches = strtoull(optarg, NULL, 10);
			break;
		case 'e':
			f->events = strtoull(optarg, NULL, 10);
			break;
		case 'm':
			f->every_ms = strtoull(optarg, NULL, 10);
			break;
		case 's':
			f->spool_bytes = strtoull(optarg, NULL, 10);
			break;
		case 'i':
			f->instance = strtoull(optarg, NULL, 10);
			break;
		case 'w':
			f->newer = true;
			break;
		default:
			return -EINVAL;
		}
	}
	f->spool_path = argv[optind];
	return f->spool_path && f->node && f->collectors && f->events <= HR_BATCH_EVENTS ? 0
											 : -EINVAL;
}

int main(int argc, char **argv)
{
	struct feed f = {.batches = 100, .events = 500, .every_ms = 10, .instance = 1};
	struct hr_address collectors[HR_ADDRESSES_MAX];
	struct hr_uplink_config config = {.collectors = collectors,
					  .software = "feed",
					  .boot_id = "b00t",
					  .all = true,
					  .recover_ms = HR_UPLINK_NEVER,
					  .better_ms = 2000,
					  .scan_ms = 200};
	char *error = NULL;
	int r = parse(&f, argc, argv);

	if (r < 0 || hr_address_parse_list(f.collectors, collectors, HR_ADDRESSES_MAX,
					   &config.n_collectors) < 0) {
		fputs("feed: see the head of feed.c\n", stderr);
		return 2;
	}
	snprintf(f.ended, sizeof(f.ended), "%s.ended", f.spool_path);
	f.list = calloc(f.events, sizeof(*f.list));
	r = f.list ? hr_encoder_new(&f.encoder) : -ENOMEM;
	if (r == 0)
		r = hr_spool_new(f.spool_path, f.spool_bytes, &f.spool);
	if (r < 0)
		die(f.spool_path, r);
	config.spool = f.spool;
	config.node = f.node;
	/* Before there is an uplink, which would take a stream without writer and journal for one that is over. */
	if (access(f.ended, F_OK) < 0)
		open_stream(&f);
	r = hr_uplink_new(&config, &f.uplink, &error);
	if (r < 0)
		die(error ? error : "uplink", r);
	if (f.writer)
		write_stream(&f);
	wait_for_uplink(&f);
	hr_uplink_free(f.uplink);
	hr_spool_free(f.spool);
	hr_encoder_free(f.encoder);
	free(f.list);
	return 0;
}
