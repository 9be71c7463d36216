/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rig.h - a spool with at most one stream that is written, its uplink, and the collectors that it knows
 *
 * Every function asserts its own success, and waits five minutes at most for the uplink.
 */
#ifndef HEADRACE_TESTS_UPLINK_RIG_H
#define HEADRACE_TESTS_UPLINK_RIG_H

#include "frames.h"

#include "daemon/uplink/uplink.h"
#include "fake_collector.h"

#define KIB	1024u
#define WAIT_MS 300000u

struct rig {
	const char *folder;
	struct hr_spool *spool;
	struct hr_writer *writer;
	struct hr_uplink *uplink;
	struct hr_address to[2];
	struct hr_uplink_config config;
};

/* Around the spool of frame_setup. rig_done ends the uplink and closes the stream; collectors are the caller's. */
void rig_init(struct rig *rig, void **state);
void rig_done(struct rig *rig);

/* A folder beside the spool, for a collector's store; good for four calls. */
const char *rig_store(const struct rig *rig, const char *name);

/* The stream that is written. */
void rig_open_stream(struct rig *rig, const char *job);
void rig_add_frames(struct rig *rig, unsigned n, size_t bytes);
void rig_end_stream(struct rig *rig);

/* A whole stream that an earlier daemon left. */
void rig_leave_stream(void **state, const char *job, unsigned n, size_t bytes);

/* Starts one, and has the uplink know it behind those before. fake_stop ends it. */
struct fake *rig_collector(struct rig *rig, struct fake_options o);
uint16_t rig_dead_port(void); /* where nobody listens */

/* The uplink, as rig->config says. */
void rig_start(struct rig *rig);
struct hr_uplink_stats rig_stats(const struct rig *rig);

void rig_pause_ms(unsigned ms);

/* Looks until the condition is true. The last arguments say what went wrong, like printf. */
#define LOOK_FOR(look, condition, ...)                                                             \
	do {                                                                                       \
		look;                                                                              \
		for (unsigned ms_ = 0; !(condition); ms_ += 5) {                                   \
			if (ms_ > WAIT_MS)                                                         \
				fail_msg(__VA_ARGS__);                                             \
			rig_pause_ms(5);                                                           \
			look;                                                                      \
		}                                                                                  \
	} while (0)

/* `condition` is about `now`, the uplink's numbers. */
#define WAIT_FOR(rig, condition)                                                                   \
	do {                                                                                       \
		struct hr_uplink_stats now;                                                        \
		LOOK_FOR(now = rig_stats(rig), condition,                                          \
			 "%s: %u streams, %llu frames, %u aside (%s), error %s", #condition,       \
			 now.streams, (unsigned long long)now.frames, now.aside, now.aside_text,   \
			 now.error);                                                               \
	} while (0)

/* `condition` is about `seen`, what the collector has seen. */
#define WAIT_UNTIL_SEEN(collector, condition)                                                      \
	LOOK_FOR(fake_look(collector, &seen), condition, "%s", #condition)

/* For WAIT_FOR. */
#define ALL_SENT (now.searches > 1 && now.streams == 0 && now.unseen == 0 && now.frames == 0)

#define CASE(name) cmocka_unit_test_setup_teardown(name, frame_setup, frame_teardown)

#endif
