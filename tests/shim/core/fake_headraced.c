/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_headraced - the fake daemon as a program, for preloaded programs and benches
 *
 *      fake_headraced SOCKET [--discard] [--paths] [--records]
 *
 * Says "ready" on stdout, serves until stdin ends, then prints what it saw: one line per op, path or record.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/ops.h"
#include "tests/shim/core/fake_daemon.h"

static void print_ops(struct fake_daemon *d)
{
	for (unsigned op = HR_OP_FIRST; op < HR_OP_MAX; op++) {
		uint64_t n = fake_count(d, (uint16_t)op);
		struct hr_lost lost = fake_lost(d, (uint16_t)op);

		if (n != 0 || lost.count != 0)
			printf("op %s %" PRIu64 " lost %" PRIu64 "\n",
			       hr_op_info((uint16_t)op)->name, n, lost.count);
	}
}

static void print_records(struct fake_daemon *d)
{
	for (size_t i = 0; i < fake_records(d); i++) {
		const struct fake_record *k = fake_record(d, i);
		const struct fake_path *p = fake_path(d, k->session, k->r.file);

		if (k->r.op < HR_OP_FIRST)
			continue;
		printf("record %u %d %s ret %" PRId64 " fd %d flags %u bits %u %s", k->session,
		       k->tid, hr_op_info(k->r.op)->name, k->r.ret, k->r.fd, k->r.flags, k->r.bits,
		       p != NULL ? p->text : "?");
		if ((k->r.bits & HR_REC_PAIR) != 0) {
			p = fake_path(d, k->session, k->pair.file);
			printf(" to fd %d %s", k->pair.fd, p != NULL ? p->text : "?");
		}
		printf("\n");
	}
}

int main(int argc, char **argv)
{
	struct fake_options o = {0};
	bool paths = false, records = false;
	struct fake_daemon *d;
	char byte;

	if (argc < 2)
		return 2;
	for (int i = 2; i < argc; i++) {
		o.discard |= strcmp(argv[i], "--discard") == 0;
		paths |= strcmp(argv[i], "--paths") == 0;
		records |= strcmp(argv[i], "--records") == 0;
	}
	d = fake_start(argv[1], &o);
	printf("ready\n");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	fake_settle(d);
	printf("sessions %zu torn %" PRIu64 " bad %" PRIu64 "\n", fake_sessions(d), fake_torn(d),
	       fake_bad(d));
	print_ops(d);
	for (size_t i = 0; paths && i < fake_paths(d); i++)
		printf("path %s\n", fake_path_at(d, i)->text);
	if (records)
		print_records(d);
	fake_stop(d);
	return 0;
}
