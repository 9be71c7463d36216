/* SPDX-License-Identifier: Apache-2.0 */
/* fake_collector STORE [OPTION=N...]: prints its port, stores what comes, ends with SIGTERM. Options: fake_collector.h. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_collector.h"

static int set(struct fake_options *o, const char *word)
{
	const struct {
		const char *name;
		unsigned *value;
	} numbers[] = {{"seed", &o->seed},
		       {"drop", &o->drop_per_mille},
		       {"forget", &o->forget_per_mille},
		       {"gap", &o->gap_per_mille},
		       {"full", &o->full_per_mille},
		       {"late", &o->ack_late_ms}};
	const char *equals = strchr(word, '=');

	if (strcmp(word, "never_acks") == 0) {
		o->never_acks = true;
		return 0;
	}
	if (strncmp(word, "nack=", 5) == 0) {
		o->nack = word + 5;
		return 0;
	}
	if (strncmp(word, "port=", 5) == 0) {
		o->port = (uint16_t)strtoul(word + 5, NULL, 10);
		return 0;
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && equals; i++)
		if (strncmp(word, numbers[i].name, (size_t)(equals - word)) == 0) {
			*numbers[i].value = (unsigned)strtoul(equals + 1, NULL, 10);
			return 0;
		}
	return -1;
}

int main(int argc, char **argv)
{
	struct fake_options o = {.ping_ms = 200};
	struct fake_seen seen;
	struct fake *f;
	sigset_t ends;
	int number;

	if (argc < 2)
		return 2;
	o.store = argv[1];
	for (int i = 2; i < argc; i++)
		if (set(&o, argv[i]) < 0)
			return 2;
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	f = fake_start(&o);
	fake_look(f, &seen);
	printf("%u\n", seen.port);
	fflush(stdout);
	sigwait(&ends, &number);
	fake_stop(f);
	return 0;
}
