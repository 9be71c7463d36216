/* SPDX-License-Identifier: Apache-2.0 */
/* Finds predicates in a parse tree. Other predicates than those known here skip no batches. */
#include "query/prune/prune.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "query/prune/prune_parse.h"
#include "query/duckdb/statement.h"
#include "common/ops.h"

#define TABLE	 "events"
#define FUNCTION "hr_events"
#define BUSY	 "hr_busy" /* a table function with the same columns for pruning */

/* ---- the columns; where a statement names events ---- */

enum target { TEXT_SET, NUMBER_SET, RANGE, OP, CLASS };

static const struct prune_column {
	const char *name;
	enum target target;
	size_t member;
} columns[] = {
    {"cluster", TEXT_SET, offsetof(struct hr_prune, cluster)},
    {"job", TEXT_SET, offsetof(struct hr_prune, job)},
    {"node", TEXT_SET, offsetof(struct hr_prune, node)},
    {"path", TEXT_SET, offsetof(struct hr_prune, path)},
    {"proc", NUMBER_SET, offsetof(struct hr_prune, proc)},
    {"pid", NUMBER_SET, offsetof(struct hr_prune, pid)},
    {"rank", NUMBER_SET, offsetof(struct hr_prune, rank)},
    {"local_rank", NUMBER_SET, offsetof(struct hr_prune, local_rank)},
    {"worker", NUMBER_SET, offsetof(struct hr_prune, worker)},
    {"start_ns", RANGE, offsetof(struct hr_prune, start_ns)},
    {"end_ns", RANGE, offsetof(struct hr_prune, end_ns)},
    {"op", OP, 0},
    {"class", CLASS, 0},
};
#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static const struct prune_column *column_by_name(const char *name)
{
	for (size_t i = 0; i < N_COLUMNS; i++) {
		if (strcasecmp(columns[i].name, name) == 0)
			return &columns[i];
	}
	return NULL;
}

struct look {
	struct hr_prune *p;
	const struct hr_query_arg *args;
	size_t n_args;
	unsigned mentions;
	int64_t mentioned; /* position in the statement */
	/* events may be read elsewhere, too, or a name may have another meaning */
	bool unsure;
	const char *alias; /* the name of events in the current SELECT */
	bool alone;	   /* FROM names only events, so names without a table are its columns */
};

/* Returns the name of the table or function if it reads events, otherwise NULL. */
static const char *events_name(const struct hr_json_tree *n)
{
	static const char *const names[] = {TABLE, FUNCTION, BUSY};
	const char *name;

	if (hr_json_tree_is(n, "type", "BASE_TABLE"))
		name = hr_json_tree_text(n, "table_name");
	else if (hr_json_tree_is(n, "type", "TABLE_FUNCTION"))
		name = hr_json_tree_text(hr_json_tree_get(n, "function"), "function_name");
	else
		return NULL;
	for (size_t i = 0; name != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcasecmp(name, names[i]) == 0)
			return names[i];
	}
	return NULL;
}

/* Whether a table function runs no SQL. (query() and query_table() do.) */
static bool harmless_function(const char *name)
{
	static const char *const known[] = {"range", "generate_series", "unnest"};

	if (name == NULL)
		return false;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcasecmp(known[i], name) == 0)
			return true;
	}
	return strncasecmp(name, "hr_", 3) == 0;
}

/*
 * Counts where the statement names events. A MATERIALIZED CTE is in the tree three times, with the
 * same position, and counts once.
 */
static void mention(struct look *l, const struct hr_json_tree *n)
{
	const struct hr_json_tree *location = hr_json_tree_get(n, "query_location");
	int64_t at = -1;
	bool known = location != NULL && hr_json_part_int(&location->value, &at);

	if (l->mentions > 0 && known && at == l->mentioned)
		return;
	l->mentioned = known ? at : -1;
	l->mentions++;
}

static void survey(struct look *l, const struct hr_json_tree *n)
{
	if (hr_json_part_is(&n->key, "cte_map")) {
		for (const struct hr_json_tree *c = hr_json_tree_first(n, "map"); c != NULL;
		     c = c->next) {
			const char *name = hr_json_tree_text(c, "key");

			l->unsure |= name == NULL || strcasecmp(name, TABLE) == 0;
		}
	}
	if (events_name(n) != NULL)
		mention(l, n);
	else if (hr_json_tree_is(n, "type", "TABLE_FUNCTION"))
		l->unsure |= !harmless_function(
		    hr_json_tree_text(hr_json_tree_get(n, "function"), "function_name"));
	for (const struct hr_json_tree *c = n->child; c != NULL; c = c->next)
		survey(l, c);
}

static bool prune_parse_absent(const struct hr_json_tree *n, const char *key)
{
	const struct hr_json_tree *c = hr_json_tree_get(n, key);

	return c == NULL || hr_json_tree_is(n, key, "null") ||
	       (c->value.type == HR_JSON_ARRAY && c->child == NULL);
}

static bool find_events(struct look *l, const struct hr_json_tree *from)
{
	if (from == NULL)
		return false;
	if (events_name(from) != NULL) {
		const char *alias = hr_json_tree_text(from, "alias");

		if (!prune_parse_absent(from, "sample") ||
		    !prune_parse_absent(from, "column_name_alias"))
			return false;
		if (alias == NULL || alias[0] == '\0')
			alias = events_name(from);
		l->alias = alias;
		return true;
	}
	l->alone = false;
	if (!hr_json_tree_is(from, "type", "JOIN") ||
	    !hr_json_tree_is(from, "join_type", "INNER") ||
	    (!hr_json_tree_is(from, "ref_type", "REGULAR") &&
	     !hr_json_tree_is(from, "ref_type", "CROSS")))
		return false;
	return find_events(l, hr_json_tree_get(from, "left")) ||
	       find_events(l, hr_json_tree_get(from, "right"));
}

/* ---- expressions ---- */

static const struct prune_column *column_of(const struct look *l, const struct hr_json_tree *e)
{
	const struct hr_json_tree *first = hr_json_tree_first(e, "column_names");

	if (!hr_json_tree_is(e, "class", "COLUMN_REF") || first == NULL || first->text == NULL)
		return NULL;
	if (first->next == NULL)
		return l->alone ? column_by_name(first->text) : NULL;
	if (first->next->next != NULL || first->next->text == NULL ||
	    strcasecmp(first->text, l->alias) != 0)
		return NULL;
	return column_by_name(first->next->text);
}

struct value {
	bool is_text;
	const char *text;
	int64_t number;
};

static const struct hr_query_arg *arg_of(const struct look *l, const struct hr_json_tree *e)
{
	const char *name = hr_json_tree_text(e, "identifier");

	if (!hr_json_tree_is(e, "class", "PARAMETER") || name == NULL)
		return NULL;
	for (size_t i = 0; i < l->n_args; i++) {
		if (strcmp(l->args[i].name, name) == 0)
			return &l->args[i];
	}
	return NULL;
}

/* Returns the text or whole number of a constant or parameter. False: NULL, or another type. */
static bool prune_parse_value_of(const struct look *l, const struct hr_json_tree *e,
				 struct value *ret)
{
	const struct hr_query_arg *arg = arg_of(l, e);
	const struct hr_json_tree *value = hr_json_tree_get(e, "value");
	const char *id = hr_json_tree_text(hr_json_tree_get(value, "type"), "id");

	if (arg != NULL) {
		if (arg->text == NULL || arg->type == HR_ARG_DOUBLE)
			return false;
		ret->is_text = arg->type == HR_ARG_VARCHAR;
		ret->text = arg->text;
		ret->number = ret->is_text ? 0 : strtoll(arg->text, NULL, 10);
		return true;
	}
	if (!hr_json_tree_is(e, "class", "CONSTANT") || id == NULL)
		return false;
	value = hr_json_tree_get(value, "value");
	ret->is_text = strcmp(id, "VARCHAR") == 0;
	if (ret->is_text) {
		ret->text = value != NULL ? value->text : NULL;
		return ret->text != NULL;
	}
	return value != NULL && (strcmp(id, "INTEGER") == 0 || strcmp(id, "BIGINT") == 0) &&
	       hr_json_part_int(&value->value, &ret->number);
}

/* ---- narrowing ---- */

static void narrow_ops(struct hr_prune *p, enum target target, const struct value *values,
		       unsigned n)
{
	uint64_t can[HR_PRUNE_OPS / 64] = {0};

	for (unsigned op = 0; op < HR_PRUNE_OPS; op++) {
		const struct hr_op_info *info = hr_op_info((uint16_t)op);
		const char *name = target == OP ? info->name : hr_class_name(info->class);

		for (unsigned i = 0; i < n; i++) {
			if (name != NULL && strcmp(name, values[i].text) == 0)
				can[op / 64] |= UINT64_C(1) << (op % 64);
		}
	}
	for (unsigned i = 0; i < HR_PRUNE_OPS / 64; i++)
		p->ops[i] &= can[i];
	p->ops_known = true;
}

static int narrow_set(struct hr_prune *p, const struct prune_column *column,
		      const struct value *values, unsigned n)
{
	struct hr_prune_set *set = (struct hr_prune_set *)((char *)p + column->member);
	bool text = column->target != NUMBER_SET;

	for (unsigned i = 0; i < n; i++) {
		if (values[i].is_text != text)
			return 0;
	}
	if (column->target == OP || column->target == CLASS) {
		narrow_ops(p, column->target, values, n);
		return 0;
	}
	if (column->target == RANGE || set->known)
		return 0;
	for (unsigned i = 0; i < n; i++) {
		set->number[i] = values[i].number;
		if (text && (set->text[i] = strdup(values[i].text)) == NULL)
			return -ENOMEM;
		set->n++;
	}
	set->known = true;
	return 0;
}

static void narrow_range(struct hr_prune *p, const struct prune_column *column, int64_t min,
			 int64_t max)
{
	struct hr_prune_range *range = (struct hr_prune_range *)((char *)p + column->member);

	range->min = min > range->min ? min : range->min;
	range->max = max < range->max ? max : range->max;
}

/* The comparisons of a column with a constant; `mirrored`: the one with exchanged operands. */
static const struct comparison {
	const char *type, *mirrored;
	bool low, high; /* the constant limits the column from below, from above */
	int more;	/* the limit minus the constant */
} comparisons[] = {
    {"COMPARE_EQUAL", "COMPARE_EQUAL", true, true, 0},
    {"COMPARE_GREATERTHANOREQUALTO", "COMPARE_LESSTHANOREQUALTO", true, false, 0},
    {"COMPARE_GREATERTHAN", "COMPARE_LESSTHAN", true, false, 1},
    {"COMPARE_LESSTHANOREQUALTO", "COMPARE_GREATERTHANOREQUALTO", false, true, 0},
    {"COMPARE_LESSTHAN", "COMPARE_GREATERTHAN", false, true, -1},
};

static int narrow_comparison(struct hr_prune *p, const struct prune_column *column,
			     const struct comparison *c, const struct value *value)
{
	int64_t v = value->number;

	if (column->target != RANGE)
		return c->low && c->high ? narrow_set(p, column, value, 1) : 0;
	if (!value->is_text && v != INT64_MIN && v != INT64_MAX)
		narrow_range(p, column, c->low ? v + c->more : INT64_MIN,
			     c->high ? v + c->more : INT64_MAX);
	return 0;
}

static int take_comparison(struct look *l, const struct hr_json_tree *e)
{
	const struct hr_json_tree *left = hr_json_tree_get(e, "left"),
				  *right = hr_json_tree_get(e, "right");
	const struct prune_column *column = column_of(l, left);
	const char *type = hr_json_tree_text(e, "type");
	struct value value = {0};
	bool exchanged = column == NULL || !prune_parse_value_of(l, right, &value);

	if (exchanged) {
		column = column_of(l, right);
		if (column == NULL || !prune_parse_value_of(l, left, &value))
			return 0;
	}
	for (size_t i = 0; type != NULL && i < sizeof(comparisons) / sizeof(comparisons[0]); i++) {
		const struct comparison *c = &comparisons[i];

		if (strcmp(exchanged ? c->mirrored : c->type, type) == 0)
			return narrow_comparison(l->p, column, c, &value);
	}
	return 0;
}

static int take_between(struct look *l, const struct hr_json_tree *e)
{
	const struct prune_column *column = column_of(l, hr_json_tree_get(e, "input"));
	struct value low = {0}, high = {0};

	if (column == NULL || column->target != RANGE)
		return 0;
	if (prune_parse_value_of(l, hr_json_tree_get(e, "lower"), &low) && !low.is_text)
		narrow_range(l->p, column, low.number, INT64_MAX);
	if (prune_parse_value_of(l, hr_json_tree_get(e, "upper"), &high) && !high.is_text)
		narrow_range(l->p, column, INT64_MIN, high.number);
	return 0;
}

static int take_in(struct look *l, const struct hr_json_tree *e)
{
	const struct hr_json_tree *item = hr_json_tree_first(e, "children");
	struct value values[HR_PRUNE_VALUES] = {{0}};
	const struct prune_column *column;
	unsigned n = 0;

	column = item != NULL ? column_of(l, item) : NULL;
	if (column == NULL)
		return 0;
	for (item = item->next; item != NULL; item = item->next) {
		if (n == HR_PRUNE_VALUES || !prune_parse_value_of(l, item, &values[n]))
			return 0;
		n++;
	}
	return n > 0 ? narrow_set(l->p, column, values, n) : 0;
}

/* Whether an expression is `$x IS NULL` and $x has a value, as for an optional argument. */
static bool is_false(const struct look *l, const struct hr_json_tree *e)
{
	const struct hr_json_tree *operand = hr_json_tree_first(e, "children");
	const struct hr_query_arg *arg = operand != NULL ? arg_of(l, operand) : NULL;

	return hr_json_tree_is(e, "type", "OPERATOR_IS_NULL") && arg != NULL && arg->text != NULL;
}

/* Returns the only operand of an OR that can be true, or NULL if several can be true. */
static const struct hr_json_tree *only_choice(const struct look *l, const struct hr_json_tree *e)
{
	const struct hr_json_tree *choice = NULL;

	for (const struct hr_json_tree *c = hr_json_tree_first(e, "children"); c != NULL;
	     c = c->next) {
		if (is_false(l, c))
			continue;
		if (choice != NULL)
			return NULL;
		choice = c;
	}
	return choice;
}

/* Adds the predicates of an expression that is true for all rows of the answer. */
static int take_condition(struct look *l, const struct hr_json_tree *e)
{
	int r = 0;

	if (hr_json_tree_is(e, "type", "CONJUNCTION_AND")) {
		for (const struct hr_json_tree *c = hr_json_tree_first(e, "children");
		     r == 0 && c != NULL; c = c->next)
			r = take_condition(l, c);
		return r;
	}
	if (hr_json_tree_is(e, "type", "CONJUNCTION_OR")) {
		e = only_choice(l, e);
		return e != NULL ? take_condition(l, e) : 0;
	}
	if (hr_json_tree_is(e, "class", "COMPARISON"))
		return take_comparison(l, e);
	if (hr_json_tree_is(e, "type", "COMPARE_BETWEEN"))
		return take_between(l, e);
	if (hr_json_tree_is(e, "type", "COMPARE_IN"))
		return take_in(l, e);
	return 0;
}

/* Whether the SELECT list uses the name of one of the columns for another expression. */
static bool shadowed(const struct hr_json_tree *select)
{
	for (const struct hr_json_tree *c = hr_json_tree_first(select, "select_list"); c != NULL;
	     c = c->next) {
		const char *alias = hr_json_tree_text(c, "alias");

		if (alias != NULL && column_by_name(alias) != NULL)
			return true;
	}
	return false;
}

static int take_select(struct look *l, const struct hr_json_tree *n)
{
	int r = 0;

	if (hr_json_tree_is(n, "type", "SELECT_NODE") && prune_parse_absent(n, "sample")) {
		const struct hr_json_tree *where = hr_json_tree_get(n, "where_clause");

		l->alone = true;
		if (find_events(l, hr_json_tree_get(n, "from_table"))) {
			l->p->distinct = l->alone && hr__prune_distinct(n);
			return where != NULL && !shadowed(n) ? take_condition(l, where) : 0;
		}
	}
	for (const struct hr_json_tree *c = n->child; r == 0 && c != NULL; c = c->next)
		r = take_select(l, c);
	return r;
}

int hr_prune_parse(struct hr_prune *p, const char *json, const struct hr_query_arg *args,
		   size_t n_args)
{
	struct look l = {.p = p, .args = args, .n_args = n_args};
	struct hr_arena arena = {0};
	const struct hr_json_tree *root;
	int r = hr_json_tree_parse(&arena, json, &root);

	if (r == 0) {
		survey(&l, root);
		if (l.mentions == 1 && !l.unsure)
			r = take_select(&l, root);
	}
	hr_arena_free(&arena);
	return r == -ENOMEM ? r : 0;
}
