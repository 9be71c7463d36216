/* SPDX-License-Identifier: Apache-2.0 */
#include "import/import.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text.h"
#include "import/internal.h"

#define THREADS_MOST 256u

/* ---- formats --------------------------------------------------------------------------------- */

static const struct hr_reader *const readers[] = {
#define HR_READER(name) &hr_reader_##name,
#include "import/readers.def"
#undef HR_READER
};

/* Returns the first reader whose probe accepts the content. NULL: none. */
static const struct hr_reader *reader_find(const uint8_t *head, long bytes)
{
	for (size_t i = 0; bytes > 0 && i < sizeof(readers) / sizeof(readers[0]); i++)
		if (readers[i]->probe(head, (size_t)bytes))
			return readers[i];
	return NULL;
}

/* ---- one file -------------------------------------------------------------------------------- */

static void file_unknown(struct hr_import_file *f)
{
	hr_import_problem(f, "unknown format: not imported");
	hr_import_lose(f, HR_LOSS_IMPORT_FILE, !f->found);
}

/*
 * Whether an empty file has the name of a trace, so that its data is missing. The user did not name
 * the files of a folder: a log of the job may be one of them.
 */
static bool name_is_trace(const char *name)
{
	static const char *const ends[] = {".pfw",  ".pfw.gz",	".darshan",
					   ".json", ".json.gz", ".sqlite"};
	size_t n = strlen(name), digits = 0;

	if (hr__name_end(name, n, ends, sizeof(ends) / sizeof(ends[0])))
		return true;
	while (digits < n && isdigit((unsigned char)name[n - 1 - digits]))
		digits++; /* strace -ff -o NAME writes NAME.PID */
	return digits > 0 && digits < n && name[n - 1 - digits] == '.';
}

/* Opens a file that can be imported, and finds its reader. NULL: none; the user gets a line. */
static const struct hr_reader *file_open(struct hr_import_file *f)
{
	const struct hr_reader *reader;
	const uint8_t *head = NULL;
	int r = hr_input_open(f->path, &f->input);
	long bytes = r ? r : hr_input_head(f->input, &head);

	if (bytes < 0) {
		hr_import_missing(f, HR_LOSS_IMPORT_FILE, 1, "cannot be read: %s",
				  strerrordesc_np((int)-bytes));
		return NULL;
	}
	if (bytes == 0) {
		if (hr_input_cut(f->input) || hr_input_bytes(f->input) > 0)
			hr_import_problem(f, "no data: the file is cut");
		else
			hr_import_problem(f, "empty: its process wrote nothing");
		if (!f->found || name_is_trace(f->name))
			hr_import_lose(f, HR_LOSS_IMPORT_EMPTY, 1);
		return NULL;
	}
	reader = reader_find(head, bytes);
	if (!reader)
		file_unknown(f);
	return reader;
}

static void file_close(struct hr_import_file *f)
{
	hr_input_close(f->input);
	f->input = NULL;
}

/* Moves a stream that was read to those that the main thread ends, or ends it. */
static int stream_hand_over(struct hr_import_stream *s)
{
	struct hr_import *i = s->import;
	bool waits = hr__istream_is_waiting(s);
	struct hr_import_stream *ends = waits ? NULL : s;
	int r = waits ? hr__istream_rest(s) : 0;

	pthread_mutex_lock(&i->lock);
	if (waits) {
		s->next = i->waiting;
		i->waiting = s;
	} else if (!i->last) {
		i->last = s;
		ends = NULL;
	}
	pthread_mutex_unlock(&i->lock);
	return ends ? hr__istream_end(ends, false) : r;
}

static int file_streams_end(struct hr_import_file *f, const char *reader, int r)
{
	while (f->streams) {
		struct hr_import_stream *s = f->streams;

		f->streams = s->next;
		s->reader = reader;
		if (!r)
			r = hr__istream_finish_reading(s);
		if (r)
			hr__istream_free(s);
		else
			r = stream_hand_over(s);
	}
	return r;
}

/* Reports traces of several tools in one job, once. */
static void mixture_check(struct hr_import_file *f, const struct hr_reader *reader)
{
	struct hr_import *i = f->import;
	const struct hr_reader *other;

	pthread_mutex_lock(&i->lock);
	other = i->options->into || i->mixed ? NULL : i->reader;
	i->mixed |= other && other != reader;
	i->reader = reader;
	pthread_mutex_unlock(&i->lock);
	if (other && other != reader)
		hr_import_problem(f,
				  "this is a %s, and other files are a %s: if they are of the same "
				  "run, its operations count twice",
				  reader->what, other->what);
}

static int file_read(struct hr_import_file *f)
{
	struct hr_import_result *to = f->import->result;
	const struct hr_reader *reader = file_open(f);
	int r = reader ? reader->read(f) : 0;

	if (r == HR_READER_OTHER)
		file_unknown(f);
	if (!reader || r == HR_READER_OTHER) {
		file_close(f);
		return 0;
	}
	mixture_check(f, reader);
	hr_import_missing(f, HR_LOSS_IMPORT_CUT, !r && hr_input_cut(f->input),
			  "cut or damaged: imported up to there");
	r = file_streams_end(f, reader->name, r);
	pthread_mutex_lock(&f->import->lock);
	to->files++;
	to->input_bytes += hr_input_bytes(f->input);
	pthread_mutex_unlock(&f->import->lock);
	file_close(f);
	return r;
}

/* ---- all files ------------------------------------------------------------------------------- */

static struct hr_import_file *file_take(struct hr_import *i)
{
	struct hr_import_file *f = NULL;

	pthread_mutex_lock(&i->lock);
	if (!i->error && i->next < i->n_files)
		f = &i->files[i->next++];
	pthread_mutex_unlock(&i->lock);
	return f;
}

static void *worker_run(void *context)
{
	struct hr_import *i = context;
	struct hr_import_file *f;

	while ((f = file_take(i)) != NULL) {
		int r = hr_import_stopped(f) ? -ECANCELED : file_read(f);

		if (r)
			(void)hr_import_fail(f, r, "%s", strerrordesc_np(-r));
	}
	return NULL;
}

static void files_survey(struct hr_import *i)
{
	for (size_t k = 0; k < i->n_files; k++) {
		struct hr_import_file *f = &i->files[k];
		const struct hr_reader *reader;
		const uint8_t *head;
		long bytes;

		if (hr_input_open(f->path, &f->input))
			continue; /* file_read reports it */
		bytes = hr_input_head(f->input, &head);
		reader = reader_find(head, bytes);
		if (reader && reader->survey)
			reader->survey(f, head, (size_t)bytes);
		file_close(f);
	}
}

static unsigned threads_wanted(const struct hr_import *i)
{
	unsigned n = i->options->threads;
	cpu_set_t cpus;

	if (n == 0)
		n = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? (unsigned)CPU_COUNT(&cpus) : 1;
	n = n < THREADS_MOST ? n : THREADS_MOST;
	return n < i->n_files ? n : (unsigned)i->n_files;
}

static void files_read(struct hr_import *i)
{
	pthread_t threads[THREADS_MOST];
	unsigned n = threads_wanted(i), started = 0;

	while (started + 1 < n && pthread_create(&threads[started], NULL, worker_run, i) == 0)
		started++;
	worker_run(i);
	for (unsigned k = 0; k < started; k++)
		pthread_join(threads[k], NULL);
}

/* Ends the streams that waited for names of other files, and at last the last one. */
static int streams_end(struct hr_import *i)
{
	int r = i->error;

	if (!r && !i->last && i->waiting) {
		i->last = i->waiting;
		i->waiting = i->waiting->next;
	}
	while (i->waiting) {
		struct hr_import_stream *s = i->waiting;

		i->waiting = s->next;
		if (r)
			hr__istream_free(s);
		else
			r = hr__istream_end(s, false);
	}
	if (r)
		hr__istream_free(i->last);
	else if (i->last)
		r = hr__istream_end(i->last, true);
	i->last = NULL;
	return r;
}

/* ---- the store ------------------------------------------------------------------------------- */

void hr__folder_remove(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;

	while (d && (e = readdir(d)) != NULL)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			(void)unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	(void)rmdir(folder);
}

/* Removes all that the import wrote. */
static void import_undo(struct hr_import *i, bool new_store)
{
	char path[4096];

	for (size_t k = 0; k < i->n_folders; k++) {
		char *slash = strrchr(i->folders[k], '/');

		hr__folder_remove(i->folders[k]);
		if (slash) { /* the folder of the job, if this was its last stream */
			*slash = '\0';
			(void)rmdir(i->folders[k]);
		}
	}
	if (!new_store)
		return;
	snprintf(path, sizeof(path), "%s/jobs", i->options->store);
	(void)rmdir(path);
	hr__folder_remove(i->options->store);
}

static void import_free(struct hr_import *i)
{
	for (size_t k = 0; k < i->n_folders; k++)
		free(i->folders[k]);
	free(i->folders);
	for (size_t k = 0; k < HR_IMPORT_SHARED; k++)
		hr__shared_done(&i->shared[k]);
	hr__files_done(i);
	hr_catalog_free(i->catalog);
	free(i->error_text);
	pthread_mutex_destroy(&i->lock);
}

static int import_run(struct hr_import *i, char **ret_error)
{
	bool new_store = !hr_store_is(i->options->store);
	int r = hr_store_create(i->options->store);

	if (r)
		return hr_text_fail(r, ret_error, "cannot write the store %s: %s",
				    i->options->store, strerrordesc_np(-r));
	files_survey(i);
	files_read(i);
	r = streams_end(i);
	if (!r && i->n_folders == 0)
		r = hr_text_fail(-ENODATA, ret_error,
				 "no file has data that can be imported; headrace imports traces "
				 "of DFTracer (.pfw), Darshan logs, Chrome traces (JSON), "
				 "databases of Nsight Systems (SQLite) and the text of strace");
	else if (r)
		hr_text_fail(r, ret_error, "%s",
			     i->error_text ? i->error_text : strerrordesc_np(-r));
	if (r)
		import_undo(i, new_store);
	return r;
}

/* Returns the id of the job (malloc'ed). NULL: no memory. */
static char *job_choose(const struct hr_import_options *o, const char *const *files, size_t n)
{
	struct hr_store_outline outline;

	if (o->job)
		return strdup(o->job);
	if (!o->into)
		return hr__files_job(files, n);
	return strdup(hr_store_outline(o->store, false, &outline) == 0 ? outline.last_job : "");
}

int hr_import(const struct hr_import_options *o, const char *const *files, size_t n,
	      struct hr_import_result *ret, char **ret_error)
{
	struct hr_import i = {.options = o, .result = ret};
	int r;

	*ret = (struct hr_import_result){0};
	*ret_error = NULL;
	ret->job = job_choose(o, files, n);
	i.job_id = ret->job;
	pthread_mutex_init(&i.lock, NULL);
	r = ret->job ? hr__files_open(&i, files, n) : -ENOMEM;
	if (r)
		hr_text_fail(r, ret_error, "%s", strerrordesc_np(-r));
	else if (o->into)
		r = hr__into_open(&i, ret_error);
	else if (hr_store_has_job(o->store, ret->job))
		r = hr_text_fail(-EEXIST, ret_error, "the store %s already has a job %s", o->store,
				 ret->job);
	if (!r)
		r = import_run(&i, ret_error);
	import_free(&i);
	return r;
}

void hr_import_done(struct hr_import_result *r)
{
	for (size_t i = 0; i < r->n_problems; i++)
		free(r->problems[i]);
	free(r->problems);
	for (size_t i = 0; i < r->n_clocks; i++)
		free(r->clocks[i]);
	free(r->clocks);
	free(r->job);
	*r = (struct hr_import_result){0};
}
