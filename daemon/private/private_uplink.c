/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/private/private_uplink.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "daemon/spool/spool.h"

#define RECOVER_MS 60000u /* after this time without a daemon, the uplink recovers a stream */
#define REPORT_MS  250u

static int private_uplink_start(struct hr_private_uplink *p, const struct hr_private_config *config,
				char **ret_error)
{
	struct hr_address to[HR_ADDRESSES_MAX];
	const struct hr_tls_files tls = {config->tls_cert, config->tls_key, config->tls_ca};
	struct hr_uplink_config c = {
	    .spool = p->spool,
	    .collectors = to,
	    .tls = config->tls_cert ? &tls : NULL,
	    .software = "headraced " HEADRACE_VERSION,
	    .node = config->node.id.node,
	    .boot_id = config->node.id.boot_id,
	    .tls_later = config->tls_later,
	    .keep = true,
	    .recover_ms = RECOVER_MS,
	};
	int r = hr_address_parse_list(config->collectors, to, HR_ADDRESSES_MAX, &c.n_collectors);

	return r ? r : hr_uplink_new(&c, &p->uplink, ret_error);
}

int hr_private_uplink_open(const struct hr_private_config *config, struct hr_private_uplink **ret,
			   char **ret_error)
{
	struct hr_private_uplink *p;
	int r;

	*ret = NULL;
	*ret_error = NULL;
	if (!config->collectors)
		return 0;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->collectors = config->collectors;
	p->node = &config->node;
	r = hr_spool_new(config->node.store, config->spool_bytes, &p->spool);
	if (!r)
		r = hr_spool_aim(p->spool, config->collectors);
	if (!r)
		r = private_uplink_start(p, config, ret_error);
	if (r) {
		if (!*ret_error)
			hr_text_fail(r, ret_error, "cannot use the spool %s: %s",
				     config->node.store, strerrordesc_np(-r));
		hr_private_uplink_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void hr_private_uplink_free(struct hr_private_uplink *p)
{
	if (!p)
		return;
	hr_uplink_free(p->uplink);
	hr_spool_free(p->spool);
	hr_now_done(&p->now);
	free(p);
}

void hr_private_uplink_show(struct hr_private_uplink *p, struct hr_node *node, uint64_t now_ms)
{
	struct hr_now_message *now;
	struct hr_uplink_stats s;

	if (!p)
		return;
	hr_uplink_stats(p->uplink, &s);
	if (s.connected && hr_now_make(&p->now, node, p->node, now_ms, &now) == 0)
		hr_uplink_now(p->uplink, now);
}

/* ---- notices to runs ------------------------------------------------------------------------- */

bool hr_private_uplink_next_notice(struct hr_private_uplink *p, char *ret, size_t bytes)
{
	struct hr_uplink_stats s;

	if (!p)
		return false;
	hr_uplink_stats(p->uplink, &s);
	if (s.failed_rounds > 0 && !s.connected && !p->unreachable) {
		p->unreachable = true;
		snprintf(ret, bytes,
			 "no collector can be reached (%s): headraced keeps the recording in the "
			 "spool %s and tries again",
			 s.error, hr_spool_path(p->spool));
		return true;
	}
	if (s.connected && p->unreachable) {
		p->unreachable = false;
		snprintf(ret, bytes, "connected to the collector %s", s.collector);
		return true;
	}
	if (s.aside && strcmp(s.aside_text, p->aside) != 0) {
		snprintf(p->aside, sizeof(p->aside), "%s", s.aside_text);
		snprintf(ret, bytes, "%s", s.aside_text);
		return true;
	}
	return false;
}

/* ---- the end --------------------------------------------------------------------------------- */

void hr_private_uplink_release(struct hr_private_uplink *p)
{
	p->released = true;
	hr_uplink_release(p->uplink);
}

bool hr_private_uplink_progress(struct hr_private_uplink *p, uint64_t now_ms,
				Headrace__Sending *ret)
{
	struct hr_uplink_stats *s = &p->last;
	struct hr_spool_live live;

	hr_uplink_stats(p->uplink, s);
	/* the uplink thread may not know the last frames yet */
	if (hr_spool_live(p->spool, &live) && s->own_frames < live.mark)
		s->own_frames = live.mark;
	ret->finished = ((s->own_gone || s->own_aside) && p->released) || now_ms >= p->until_ms;
	if (!ret->finished && now_ms - p->reported_ms < REPORT_MS)
		return false;
	p->reported_ms = now_ms;
	ret->collector = *s->collector ? s->collector : hr_control_text(p->collectors);
	ret->frames = s->own_frames;
	ret->left = s->own_frames - s->own_acked;
	ret->connected = s->connected;
	if (!s->connected)
		ret->error = s->error;
	if (s->own_aside)
		ret->set_aside = s->aside_text;
	return true;
}
