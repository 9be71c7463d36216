/* SPDX-License-Identifier: Apache-2.0 */
/* Events: operations, regions, and sums of operations. */
#include <errno.h>

#include "common/pathid.h"
#include "import/pfw/pfw_state.h"

#define OWN_CAT	 "headrace:" /* before the kind of a region, in headrace's own files */
#define HAS(key) (UINT64_C(1) << HR_PFW_##key)

/* ---- times ----------------------------------------------------------------------------------- */

void hr__pfw_ns(const struct hr_pfw_value *v, uint64_t *first_ns, uint64_t *second_ns)
{
	uint64_t part[2] = {0};
	unsigned at = 0;

	for (uint32_t i = 1; i < v->n; i++) {
		if (v->p[i] == ',' && at == 0)
			at = 1;
		else if (v->p[i] >= '0' && v->p[i] <= '9')
			part[at] = (part[at] * 10 + (uint64_t)(v->p[i] - '0')) % 1000;
	}
	*first_ns += part[0];
	*second_ns += part[1];
}

static int times_read(const struct pfw *p, uint64_t *ret_start_ns, uint64_t *ret_dur_ns)
{
	const struct hr_pfw_line *l = &p->line;

	*ret_dur_ns = 0;
	if (!hr_pfw_has(l, HR_PFW_TS) ||
	    !hr__pfw_time(&l->v[HR_PFW_TS], p->unit_ns, ret_start_ns) ||
	    (hr_pfw_has(l, HR_PFW_DUR) && !hr__pfw_time(&l->v[HR_PFW_DUR], p->unit_ns, ret_dur_ns)))
		return -EBADMSG;
	if (hr_pfw_has(l, HR_PFW_NS))
		hr__pfw_ns(&l->v[HR_PFW_NS], ret_start_ns, ret_dur_ns);
	return 0;
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Returns the operation with the name of the event. 0: none. */
static int op_find(struct pfw *p, uint16_t *ret)
{
	const struct hr_pfw_value *v = &p->line.v[HR_PFW_NAME];
	uint64_t key = hr_path_id(v->p, v->n);
	uint32_t op = hr_map64_get(&p->op_of, key);

	if (__builtin_expect(op == HR_MAP64_NONE, 0)) {
		op = hr_import_op(v->p, v->n);
		if (p->op_of.used < 4096 && hr_map64_set(&p->op_of, key, op))
			return -ENOMEM;
	}
	*ret = (uint16_t)op;
	return 0;
}

static bool cat_is_io(const struct hr_pfw_value *v)
{
	return hr__pfw_is(v, "POSIX", 5) || hr__pfw_is(v, "STDIO", 5);
}

static int64_t result_read(const struct pfw *p, const struct hr_op_info *info)
{
	int64_t ret;

	if (!hr_pfw_has(&p->line, HR_PFW_RET)) /* dialect D has no result of open */
		return p->own ? HR_RET_NONE : 0;
	ret = hr__pfw_arg(p, HR_PFW_RET, 0);
	if (ret < 0)
		return hr_ret_of_errno(hr__pfw_arg(p, HR_PFW_ERRNO, 0));
	return info->bytes_rule == HR_BYTES_NONE ? ret : hr__pfw_arg(p, HR_PFW_ITEMS, ret);
}

static uint32_t flags_read(const struct pfw *p, const struct hr_op_info *info)
{
	uint64_t have = p->line.have;

	if (have & HAS(FLAGS))
		return (uint32_t)hr__pfw_arg(p, HR_PFW_FLAGS, 0);
	if (have & HAS(WHENCE))
		return (uint32_t)hr__pfw_arg(p, HR_PFW_WHENCE, 0);
	if (have & HAS(MODE))
		return (uint32_t)hr__pfw_arg(p, HR_PFW_MODE, 0);
	/* Other tracers store the bytes as result, not the items. */
	return info->bytes_rule == HR_BYTES_ITEMS && !p->own ? 1 : 0;
}

static void event_read(struct pfw *p, uint16_t op, struct hr_event *e)
{
	const struct hr_op_info *info = hr_op_info(op);
	uint64_t have = p->line.have;

	e->op = op;
	e->ret = result_read(p, info);
	if (have & (HAS(COUNT) | HAS(SIZE)))
		e->asked =
		    (uint64_t)hr__pfw_arg(p, have & HAS(COUNT) ? HR_PFW_COUNT : HR_PFW_SIZE, -1);
	e->offset = hr__pfw_arg(p, HR_PFW_OFFSET, e->offset);
	e->flags = flags_read(p, info);
	e->fd = (int32_t)hr__pfw_arg(p, HR_PFW_FD, e->fd);
	if (e->fd < 0 && info->class == HR_CLASS_OPEN && have & HAS(RET) && e->ret <= INT32_MAX)
		e->fd = e->ret < 0 ? -1 : (int32_t)e->ret;
	if (have & (HAS(RT) | HAS(BPF)))
		e->bits = (uint16_t)((hr__pfw_arg(p, HR_PFW_RT, 0) == 1 ? HR_EV_SCOPE_RUNTIME : 0) |
				     (hr__pfw_arg(p, HR_PFW_BPF, 0) == 1 ? HR_EV_BPF : 0));
}

static int operation_add(struct pfw *p, struct pfw_node *n, uint16_t op, struct hr_event *e)
{
	uint32_t thread = hr__pfw_thread(p, n, e->start_ns);

	e->file = hr__pfw_file(p, n);
	if (hr_pfw_has(&p->line, HR_PFW_FHASH2))
		e->file2 = hr__pfw_hashed_file(p, n, HR_PFW_FHASH2);
	else if (hr_pfw_has(&p->line, HR_PFW_NEWPATH))
		e->file2 = hr__pfw_hashed_file(p, n, HR_PFW_NEWPATH);
	event_read(p, op, e);
	return hr_import_operation(n->s, thread, e);
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* What dialect D stores of events that it has added up: of one event, the values themselves. */
struct event_sum {
	uint64_t count, bytes, dur_ns, max_ns;
};

static uint64_t sum_read(const struct pfw *p, enum hr_pfw_key sum, enum hr_pfw_key single)
{
	int64_t v = hr__pfw_arg(p, sum, hr__pfw_arg(p, single, 0));

	return v > 0 ? (uint64_t)v : 0;
}

static struct event_sum event_sum(const struct pfw *p)
{
	struct event_sum e = {
	    .count = sum_read(p, HR_PFW_DFT_CNT, HR_PFW_DFT_CNT),
	    .bytes = sum_read(p, HR_PFW_RET_SUM, HR_PFW_RET),
	    .dur_ns = sum_read(p, HR_PFW_DUR_SUM, HR_PFW_ARG_DUR) * p->unit_ns,
	    .max_ns = sum_read(p, HR_PFW_DUR_MAX, HR_PFW_ARG_DUR) * p->unit_ns,
	};

	return e;
}

static int tally_add(struct pfw *p, struct pfw_node *n, uint16_t op, uint64_t start_ns)
{
	struct event_sum sum = event_sum(p);
	uint32_t thread = hr__pfw_thread(p, n, start_ns);
	struct hr_import_tally t = {.op = op,
				    .file = hr__pfw_file(p, n),
				    .count = sum.count,
				    .bytes = sum.bytes,
				    .start_ns = start_ns,
				    .end_ns = start_ns +
					      sum.max_ns, /* the end of the last is not known */
				    .dur_ns = sum.dur_ns,
				    .max_ns = sum.max_ns};

	return hr_import_tally(n->s, thread, &t);
}

/* ---- regions --------------------------------------------------------------------------------- */

/* Names of other tools whose meaning is known. The first row that fits counts. */
static const struct {
	const char *cat, *name; /* NULL: any; the name is the whole name, or what it ends with */
	uint32_t kind;
} known_regions[] = {
    {"pipeline", "epoch", HR_REGION_EPOCH},
    {"pipeline", "epoch.block", HR_REGION_EPOCH},
    {"dataloader", "fetch.iter", HR_REGION_INPUT_WAIT},
    {"dataloader", "fetch", HR_REGION_INPUT_WAIT},
    {"checkpoint", "restart", HR_REGION_RESTORE},
    {"checkpoint", NULL, HR_REGION_CHECKPOINT},
    {NULL, "DataLoader.__next__", HR_REGION_INPUT_WAIT},
    {NULL, ".checkpoint", HR_REGION_CHECKPOINT},
};

static bool text_ends(const char *p, size_t n, const char *with)
{
	size_t bytes = strlen(with);

	return n >= bytes && memcmp(p + n - bytes, with, bytes) == 0;
}

static uint32_t region_kind(const struct hr_pfw_value *cat, const struct hr_pfw_value *name)
{
	if (cat->n > strlen(OWN_CAT) && memcmp(cat->p, OWN_CAT, strlen(OWN_CAT)) == 0) {
		uint32_t kind =
		    hr_region_kind_by_name(cat->p + strlen(OWN_CAT), cat->n - strlen(OWN_CAT));

		return kind ? kind : HR_REGION_RANGE;
	}
	for (size_t i = 0; i < sizeof(known_regions) / sizeof(known_regions[0]); i++)
		if ((!known_regions[i].cat ||
		     (cat->n == strlen(known_regions[i].cat) &&
		      strncasecmp(cat->p, known_regions[i].cat, cat->n) == 0)) &&
		    (!known_regions[i].name || text_ends(name->p, name->n, known_regions[i].name)))
			return known_regions[i].kind;
	return HR_REGION_RANGE;
}

/* Copies a string of the line, because hr__pfw_string has room for one. */
static int slice_set(struct pfw *p, enum hr_pfw_key key, struct hr_arena *a,
		     struct hr_import_slice *to)
{
	const char *text = hr__pfw_string(p, key, &to->n);

	to->p = text && to->n ? hr_arena_copy(a, text, to->n) : NULL;
	return !text || (to->n && !to->p) ? -ENOMEM : 0;
}

static int region_texts(struct pfw *p, struct hr_arena *a, struct hr_import_region *g)
{
	const uint64_t dull = HAS(HOSTNAME) | HAS(HHASH) | HAS(STEP) | HAS(EPOCH) |
			      ((UINT64_C(1) << (HR_PFW_ARGS + 1)) - 1);
	const struct hr_pfw_value *args = &p->line.v[HR_PFW_ARGS];
	int r = slice_set(p, HR_PFW_NAME, a, &g->name);

	if (p->own) {
		if (!r)
			r = slice_set(p, HR_PFW_DOMAIN, a, &g->domain);
		if (!r)
			r = slice_set(p, HR_PFW_CATEGORY, a, &g->category);
		return r ? r : slice_set(p, HR_PFW_TEXT, a, &g->args);
	}
	if (!r)
		r = slice_set(p, HR_PFW_CAT, a, &g->category);
	if (hr_pfw_has(&p->line, HR_PFW_ARGS) && (p->line.more || p->line.have & ~dull))
		g->args = (struct hr_import_slice){args->p, args->n};
	return r;
}

static int region_add(struct pfw *p, struct pfw_node *n, bool is_sum, uint64_t start_ns,
		      uint64_t dur_ns)
{
	int64_t step = hr__pfw_arg(p, HR_PFW_STEP, -1), epoch = hr__pfw_arg(p, HR_PFW_EPOCH, -1);
	int64_t count = p->own ? hr__pfw_arg(p, HR_PFW_REGION_COUNT, 1) : 1;
	uint32_t thread = hr__pfw_thread(p, n, start_ns);
	struct hr_import_region g =
	    hr_import_region_none(region_kind(&p->line.v[HR_PFW_CAT], &p->line.v[HR_PFW_NAME]));
	struct event_sum sum = event_sum(p);
	struct hr_arena a = {0};
	int r = region_texts(p, &a, &g);

	g.region.start_ns = start_ns;
	g.region.dur_ns = dur_ns;
	if (count > 0)
		g.region.count = (uint64_t)count;
	if (step >= 0)
		g.region.step = (uint64_t)step;
	if (epoch >= 0)
		g.region.epoch = (uint64_t)epoch;
	if (is_sum) {
		g.region.count = sum.count ? sum.count : 1;
		g.region.dur_ns = sum.dur_ns;
		g.args.n = 0;
	}
	if (p->own) {
		g.region.open = hr__pfw_arg(p, HR_PFW_OPEN, 0) == 1;
		g.region.depth = (uint32_t)hr__pfw_arg(p, HR_PFW_DEPTH, 0);
	}
	if (!r)
		r = hr_import_region(n->s, thread, &g);
	hr_arena_free(&a);
	return r;
}

/* ---- one line -------------------------------------------------------------------------------- */

enum event_phase { PHASE_COMPLETE, PHASE_METADATA, PHASE_SUM, PHASE_OTHER };

static enum event_phase event_phase(const struct hr_pfw_line *l)
{
	const struct hr_pfw_value *v = &l->v[HR_PFW_PH];

	if (!hr_pfw_has(l, HR_PFW_PH))
		return hr_pfw_has(l, HR_PFW_DUR) ? PHASE_COMPLETE : PHASE_OTHER;
	if (v->n != 1)
		return PHASE_OTHER;
	switch (*v->p) {
	case 'X':
	case '1':
		return PHASE_COMPLETE;
	case 'M':
	case '4':
		return PHASE_METADATA;
	case '3':
		return PHASE_SUM;
	default:
		return PHASE_OTHER;
	}
}

int hr__pfw_event(struct pfw *p)
{
	const struct hr_pfw_value *name = &p->line.v[HR_PFW_NAME], *cat = &p->line.v[HR_PFW_CAT];
	enum event_phase phase = event_phase(&p->line);
	struct hr_event e = hr_event_none();
	struct pfw_node *n;
	uint64_t dur_ns;
	uint16_t op = 0;
	int r;

	if (!hr_pfw_has(&p->line, HR_PFW_NAME))
		return -EBADMSG;
	if (phase == PHASE_METADATA)
		return hr__pfw_metadata(p);
	if (!hr_pfw_has(&p->line, HR_PFW_CAT)) {
		cat = memset(&p->line.v[HR_PFW_CAT], 0, sizeof(*cat));
	} else if (hr__pfw_is(cat, "dftracer", 8) && phase == PHASE_COMPLETE) {
		if (hr__pfw_is(name, "start", 5) || hr__pfw_is(name, "end", 3))
			return hr__pfw_life(p, *name->p == 's');
	}
	if (phase == PHASE_OTHER) {
		p->n_kinds++;
		return 0;
	}
	r = times_read(p, &e.start_ns, &dur_ns);
	if (!r)
		r = hr__pfw_node(p, &n);
	if (!r && cat_is_io(cat))
		r = op_find(p, &op);
	if (r)
		return r;
	p->n_events++;
	e.dur_ns = dur_ns;
	if (op)
		return phase == PHASE_SUM ? tally_add(p, n, op, e.start_ns)
					  : operation_add(p, n, op, &e);
	return region_add(p, n, phase == PHASE_SUM, e.start_ns, dur_ns);
}
