/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet --headrace HEADRACE [options] FOLDER - what the nodes of a cluster cost their collector
 *
 *      --nodes N        1,000
 *      --ranks N        10 on each node
 *      --seconds N      15
 *      --replay STORE   each node also sends all frames of this store, which has one job on one
 *                       node, at the pace at which that node sent them
 *      --sink ADDRESS   a database in ClickHouse instead of a store in FOLDER
 *      --config FILE    configuration of the collector, for example with alerts
 *
 * Starts a real collector, and connects N nodes as headraced does, ten to a job. Each sends a Now
 * once a second: its ranks, four mounts and four folders. Prints the collector's CPU time and memory,
 * how long `headrace status` takes, after which time a storm of one node is the first row, when
 * frames were acknowledged, and how many alerts the log has from before the storm.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/now.h"
#include "net/conn.h"
#include "tests/bench/fleet_replay.h"
#include "tests/collector/client.h"
#include "tests/unit.h"

#define NODES_OF_JOB 10u
#define ROUND_MS     1000u
#define TURN_MS	     10u
#define STRANGERS    500u
#define PLACES	     4u			   /* mounts, and folders */
#define PHASE_NS     UINT64_C(10000000000) /* all nodes begin their records within a window */
#define DRAIN_NS     UINT64_C(60000000000)
#define ALERT	     "alert: " /* collector/alerting.c writes it for each alert that begins or ends */
#define STORM_NS     UINT64_C(300000000000)
#define STORM	     UINT64_C(1000000)

struct node {
	struct hr_conn *conn;
	unsigned number;
	bool open;
	uint64_t reads; /* of each rank in an interval */
	uint64_t stats;
	struct fleet_player player;
};

static struct {
	uv_loop_t loop;
	uv_timer_t turn;
	struct hr_address to;
	struct node *nodes;
	unsigned n, ranks, seconds, next, open;
	uint64_t sent;
	uint64_t replay_ns; /* when the first node begins its record; 0: not yet, or no record */
	struct fleet_record record;
} b = {.n = 1000, .ranks = 10, .seconds = 15};

static void bench_fail(const char *what)
{
	fprintf(stderr, "fleet: %s\n", what);
	exit(1);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void node_ready(void *self)
{
	Headrace__Hello hello = HEADRACE__HELLO__INIT;
	struct node *n = self;
	char name[32];

	snprintf(name, sizeof(name), "n%u", n->number);
	hello.min_version = hello.max_version = HR_WIRE_VERSION;
	hello.software = "fleet";
	hello.node = name;
	hr_conn_send_now(n->conn, HR_WIRE(HELLO, hello, &hello));
}

static void node_open(struct node *n)
{
	Headrace__Open open = HEADRACE__OPEN__INIT;
	uint8_t secret[HR_WIRE_SECRET_BYTES] = {1};
	char name[32], job[32];

	snprintf(name, sizeof(name), "n%u", n->number);
	snprintf(job, sizeof(job), "job%u", n->number / NODES_OF_JOB);
	open.channel = 1;
	open.job = job;
	open.node = name;
	open.boot_id = "boot";
	open.instance = n->number + 1;
	open.secret = (ProtobufCBinaryData){sizeof(secret), secret};
	open.first_seq = open.last_seq = 1;
	hr_conn_send_now(n->conn, HR_WIRE(OPEN, open, &open));
}

static int node_frame(void *self, uint8_t *frame, size_t bytes, bool control)
{
	struct node *n = self;
	Headrace__Wire *msg;

	if (!control || hr_wire_unpack(frame, bytes, &msg) < 0)
		bench_fail("the collector sent something else than a message");
	free(frame);
	if (msg->body_case == HEADRACE__WIRE__BODY_HELLO_ACK) {
		n->player.window_bytes = msg->hello_ack->window_bytes;
		node_open(n);
	} else if (msg->body_case == HEADRACE__WIRE__BODY_PING)
		hr_conn_pong(n->conn, msg->ping->id);
	else if (msg->body_case == HEADRACE__WIRE__BODY_OPENED && !n->open)
		b.open += n->open = true;
	else if (msg->body_case == HEADRACE__WIRE__BODY_ACK)
		fleet_player_acked(&n->player, &b.record, msg->ack->seq,
				   hr_now_ns(CLOCK_MONOTONIC));
	else if (msg->body_case == HEADRACE__WIRE__BODY_NACK)
		bench_fail(msg->nack->text);
	else if (msg->body_case == HEADRACE__WIRE__BODY_REFUSAL)
		bench_fail(msg->refusal->text);
	headrace__wire__free_unpacked(msg, NULL);
	return 0;
}

static void node_closed(void *self, int error, const char *why)
{
	bench_fail(why);
}

static ProtobufCBinaryData path_of(const char *text)
{
	return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

static void node_send_now(struct node *n)
{
	static const char *const paths[PLACES] = {"/scratch", "/home", "/", "/dev/shm"};
	Headrace__NowRank ranks[64], *rank_list[64];
	Headrace__NowMount mounts[PLACES], *mount_list[PLACES];
	Headrace__NowFolder folders[PLACES], *folder_list[PLACES];
	Headrace__NowSum sum = HEADRACE__NOW_SUM__INIT;
	Headrace__Now now = HEADRACE__NOW__INIT;

	sum.metadata = n->stats;
	sum.reads = n->reads;
	sum.bytes_read = n->reads * 4096;
	sum.dur_ns = 1000000;
	for (unsigned i = 0; i < b.ranks; i++) {
		headrace__now_rank__init(rank_list[i] = &ranks[i]);
		ranks[i].rank_plus1 = n->number % NODES_OF_JOB * b.ranks + i + 1;
		ranks[i].sum = &sum;
		ranks[i].loops = 1;
		ranks[i].wait_ns = 300000000;
		ranks[i].steps = 7;
	}
	for (unsigned i = 0; i < PLACES; i++) {
		headrace__now_mount__init(mount_list[i] = &mounts[i]);
		mounts[i].path = path_of(paths[i]);
		mounts[i].fs_type = "lustre";
		mounts[i].sum = &sum;
		headrace__now_folder__init(folder_list[i] = &folders[i]);
		folders[i].path = path_of(paths[i]);
		folders[i].ops = PLACES - i;
	}
	now.channel = 1;
	now.interval_ns = UINT64_C(1000000000);
	now.uid = 1000 + n->number / NODES_OF_JOB;
	now.user = "someone";
	now.name = "train";
	now.named_ops = 10;
	now.processes = b.record.n > 0 ? (uint32_t)b.record.processes : b.ranks;
	now.ranks = rank_list;
	now.n_ranks = b.ranks;
	now.mounts = mount_list;
	now.folders = folder_list;
	now.n_mounts = now.n_folders = PLACES;
	if (hr_conn_send_now(n->conn, HR_WIRE(NOW, now, &now)) < 0)
		bench_fail("cannot send");
	b.sent++;
}

/* A hundredth of the nodes in each turn. */
static void on_turn(uv_timer_t *turn)
{
	unsigned part = (b.n * TURN_MS + ROUND_MS - 1) / ROUND_MS;

	for (unsigned i = 0; i < part && b.open == b.n; i++)
		node_send_now(&b.nodes[b.next++ % b.n]);
	for (unsigned i = 0; i < b.n && b.replay_ns > 0; i++) {
		uint64_t now_ns = hr_now_ns(CLOCK_MONOTONIC);

		if (now_ns >= b.replay_ns + PHASE_NS / b.n * i)
			fleet_player_turn(&b.nodes[i].player, &b.record, b.nodes[i].conn, now_ns);
	}
}

static void nodes_connect(const char *address)
{
	static const struct hr_conn_events events = {
	    .ready = node_ready, .frame = node_frame, .closed = node_closed};

	b.nodes = calloc(b.n, sizeof(*b.nodes));
	if (!b.nodes || hr_address_parse(address, &b.to) < 0)
		bench_fail("no memory");
	for (unsigned i = 0; i < b.n; i++) {
		b.nodes[i] = (struct node){.number = i, .reads = 100 + i, .stats = 50};
		fleet_player_init(&b.nodes[i].player, &b.record);
		if (hr_conn_connect(&b.loop, &b.to, NULL, &events, &b.nodes[i], &b.nodes[i].conn) <
		    0)
			bench_fail("cannot connect");
		/* a collector accepts only some strangers of one address at once */
		while ((i + 1) % STRANGERS == 0 && b.open < i + 1)
			uv_run(&b.loop, UV_RUN_ONCE);
	}
}

static void run_for(uint64_t ms)
{
	uint64_t end = hr_now_ms(CLOCK_MONOTONIC) + ms;

	while (hr_now_ms(CLOCK_MONOTONIC) < end)
		uv_run(&b.loop, UV_RUN_ONCE);
}

/* ---- what it costs --------------------------------------------------------------------------- */

static double cpu_seconds(pid_t pid)
{
	unsigned long user = 0, system = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
			 &system) != 2)
		bench_fail("cannot read /proc/PID/stat");
	fclose(f);
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static void print_memory(pid_t pid)
{
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmHWM", 5) == 0)
			printf("collector %s", line);
	if (f)
		fclose(f);
}

/* Runs a command while the nodes send. Returns its milliseconds. */
static double run_command(const char *command)
{
	uint64_t began = hr_now_ns(CLOCK_MONOTONIC);
	FILE *p = popen(command, "r");
	char line[4096];

	while (p && fgets(line, sizeof(line), p)) {
	}
	if (!p || pclose(p) != 0)
		bench_fail(command);
	return (double)(hr_now_ns(CLOCK_MONOTONIC) - began) / 1e6;
}

static int by_number(const void *a, const void *c)
{
	return (*(const double *)a > *(const double *)c) -
	       (*(const double *)a < *(const double *)c);
}

static void measure_status(const char *headrace, const char *address)
{
	char command[4096];
	double ms[11];

	snprintf(command, sizeof(command), "%s status %s", headrace, address);
	for (unsigned i = 0; i < 11; i++) {
		run_for(300);
		ms[i] = run_command(command);
	}
	qsort(ms, 11, sizeof(*ms), by_number);
	printf("headrace status: median %.1f ms, largest %.1f ms\n", ms[5], ms[10]);
}

static void measure_storm(const char *headrace, const char *address)
{
	struct node *storm = &b.nodes[b.n / 2];
	uint64_t began = hr_now_ns(CLOCK_MONOTONIC);
	char command[4096];

	snprintf(command, sizeof(command),
		 "%s top %s --count 1 --json | grep -q '\"jobs\": .{\"cluster\": \"\", \"job\": "
		 "\"job%u\"'",
		 headrace, address, storm->number / NODES_OF_JOB);
	storm->stats = STORM;
	while (system(command) != 0) { // NOLINT(cert-env33-c): a bench
		if (hr_now_ns(CLOCK_MONOTONIC) - began > STORM_NS)
			bench_fail("the storm does not come into the first row");
		run_for(50);
	}
	printf("a storm of one node is the first row after %.2f s\n",
	       (double)(hr_now_ns(CLOCK_MONOTONIC) - began) / 1e9);
}

/* ---- the records ----------------------------------------------------------------------------- */

static size_t frames_unacked(void)
{
	size_t n = 0;

	for (unsigned i = 0; i < b.n; i++)
		n += b.record.n - b.nodes[i].player.acked;
	return n;
}

/* When all frames have been acknowledged if the collector keeps up. */
static uint64_t drained_ns(void)
{
	return b.replay_ns + PHASE_NS + b.record.last_ns + DRAIN_NS;
}

static void print_acks(void)
{
	size_t n = 0, all = b.n * b.record.n;
	double *ack_s = calloc(all, sizeof(*ack_s));

	if (!ack_s)
		bench_fail("no memory");
	for (unsigned i = 0; i < b.n; i++) {
		memcpy(&ack_s[n], b.nodes[i].player.ack_s,
		       b.nodes[i].player.acked * sizeof(*ack_s));
		n += b.nodes[i].player.acked;
	}
	qsort(ack_s, n, sizeof(*ack_s), by_number);
	printf("frames: %zu sent, %zu acknowledged, %.1f KB/s a node; acknowledged after %.2f s "
	       "(median), %.2f s (99 %%), %.2f s (last)\n",
	       all, n, (double)b.record.bytes / 1e3 / ((double)b.record.last_ns / 1e9),
	       n > 0 ? ack_s[n / 2] : 0, n > 0 ? ack_s[n * 99 / 100] : 0, n > 0 ? ack_s[n - 1] : 0);
	free(ack_s);
}

/* ---- the run --------------------------------------------------------------------------------- */

struct options {
	const char *headrace, *replay, *sink, *config, *folder;
};

static void options_take(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {
	    {"headrace", required_argument, NULL, 'h'}, {"nodes", required_argument, NULL, 'n'},
	    {"ranks", required_argument, NULL, 'r'},	{"seconds", required_argument, NULL, 's'},
	    {"replay", required_argument, NULL, 'p'},	{"sink", required_argument, NULL, 'k'},
	    {"config", required_argument, NULL, 'c'},	{NULL, 0, NULL, 0}};
	int id;

	while ((id = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (id == 'h')
			o->headrace = optarg;
		else if (id == 'n')
			b.n = (unsigned)atoi(optarg);
		else if (id == 'r')
			b.ranks = (unsigned)atoi(optarg);
		else if (id == 's')
			b.seconds = (unsigned)atoi(optarg);
		else if (id == 'p')
			o->replay = optarg;
		else if (id == 'k')
			o->sink = optarg;
		else if (id == 'c')
			o->config = optarg;
	}
	if (optind + 1 != argc || !o->headrace || b.n < 10 || b.ranks > 64)
		bench_fail("usage: fleet --headrace HEADRACE [--nodes N] [--ranks N] [--seconds N] "
			   "[--replay STORE] [--sink ADDRESS] [--config FILE] FOLDER");
	o->folder = argv[optind];
}

static void start(const struct options *o, struct collector *c)
{
	const char *more[] = {"--max-connections", "20000", NULL, NULL, NULL, NULL, NULL};
	char store[4096], log[4096];
	unsigned n = 2;

	snprintf(store, sizeof(store), "%s/store", o->folder);
	snprintf(log, sizeof(log), "%s/log", o->folder);
	if (o->sink) {
		more[n++] = "--sink";
		more[n++] = o->sink;
	}
	if (o->config) {
		more[n++] = "--config";
		more[n++] = o->config;
	}
	collector_start(c, o->sink ? NULL : store, log, more[0], more[1], more[2], more[3], more[4],
			more[5], NULL);
	printf("collector: %s, pid %d, log %s\n", c->address, (int)c->pid, log);
}

int main(int argc, char **argv)
{
	struct options o = {0};
	struct collector c;
	double cpu;

	setvbuf(stdout, NULL, _IOLBF, 0);
	options_take(argc, argv, &o);
	if (o.replay)
		fleet_record_load(&b.record, o.replay);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){65536, 65536});
	start(&o, &c);
	uv_loop_init(&b.loop);
	nodes_connect(c.address);
	uv_timer_init(&b.loop, &b.turn);
	uv_timer_start(&b.turn, on_turn, TURN_MS, TURN_MS);
	while (b.open < b.n)
		uv_run(&b.loop, UV_RUN_ONCE);
	run_for(2000);
	b.sent = 0;
	b.replay_ns = o.replay ? hr_now_ns(CLOCK_MONOTONIC) : 0;
	cpu = cpu_seconds(c.pid);
	run_for((uint64_t)b.seconds * 1000);
	cpu = cpu_seconds(c.pid) - cpu;
	printf(
	    "%u nodes, %u ranks and %u processes each: %.0f Now/s; collector: %.1f %% of a core\n",
	    b.n, b.ranks, b.record.n > 0 ? (unsigned)b.record.processes : b.ranks,
	    (double)b.sent / b.seconds, 100 * cpu / b.seconds);
	printf("alerts: %u\n", collector_printed_times(&c, ALERT));
	measure_status(o.headrace, c.address);
	measure_storm(o.headrace, c.address);
	while (o.replay && frames_unacked() > 0 && hr_now_ns(CLOCK_MONOTONIC) < drained_ns())
		run_for(100);
	if (o.replay)
		print_acks();
	print_memory(c.pid);
	collector_stop(&c);
	return frames_unacked() > 0;
}
