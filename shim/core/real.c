/* SPDX-License-Identifier: Apache-2.0 */
/*
 * real.c - finds the originals in the symbol tables of later objects, without dlsym
 *
 * The dynamic section of every loaded object contains symbols, a hash table (GNU or System V) and
 * versions. If a symbol has several versions, this code takes the default version. If all versions
 * are hidden (kept for old programs), it takes the last one.
 */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/core/internal.h"
#include "shim/core/sys.h"

#define VERSION_HIDDEN 0x8000u
#define VERSION_NONE   1u

#ifndef STT_GNU_IFUNC
#define STT_GNU_IFUNC 10
#endif

extern struct r_debug _r_debug __attribute__((weak)); /* not with musl */
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

void *hr_real_table[HR_OP_MAX];
bool hr_real_foreign[HR_OP_MAX];
static bool may_be_own[HR_OP_MAX]; /* the original is in a library with `own` */
static bool initialized;

#define HR_CALL(id, ret, name, params, args, class, api, bytes_rule, ...) [id] = #name,
static const char *const names[HR_OP_MAX] = {
#include "proto/calls.def"
};
#undef HR_CALL

struct object {
	ElfW(Addr) base;
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *gnu_hash;
	const uint32_t *sysv_hash;
	const ElfW(Half) * versions;
	struct {
		const ElfW(Rela) * v;
		size_t bytes;
	} relocations[2]; /* of data, and of calls */
	bool foreign;	  /* it is no part of libc */
	bool own;	  /* its functions need not have the arguments of libc */
};

struct symbol_search {
	bool past_us;
	uint16_t first, last; /* the range of ids to find; includes both */
	unsigned missing;
};

struct named_search {
	bool past_us;
	const char *name;
	void *fn;
	bool found;
};

/*
 * Functions of libc are not used here, because the program may have its own, which may not be
 * ready: AddressSanitizer calls dlsym before its strcmp can be used.
 */
static bool equal(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static bool begins_with(const char *text, const char *start)
{
	while (*start != '\0' && *start == *text) {
		text++;
		start++;
	}
	return *start == '\0';
}

static uint32_t hash_gnu(const char *name)
{
	uint32_t h = 5381;

	for (; *name != '\0'; name++)
		h = h * 33 + (uint8_t)*name;
	return h;
}

static uint32_t hash_sysv(const char *name)
{
	uint32_t h = 0;

	for (; *name != '\0'; name++) {
		h = (h << 4) + (uint8_t)*name;
		h = (h ^ (h >> 24 & 0xf0)) & 0x0fffffff;
	}
	return h;
}

/* glibc relocates the pointers of a dynamic section in place; musl and the vDSO do not. */
static const void *pointer(const struct object *o, ElfW(Addr) value)
{
	return (const void *)(value < o->base ? o->base + value : value);
}

static const char *file_name(const char *path)
{
	const char *name = path;

	for (; *path != '\0'; path++)
		if (*path == '/')
			name = path + 1;
	return name;
}

/* Whether the name of a library begins with one of the texts, of which the last is NULL. */
static bool is_one_of(const char *path, const char *const begins[])
{
	const char *name = file_name(path);

	while (*begins != NULL && !begins_with(name, *begins))
		begins++;
	return *begins != NULL;
}

/* libc: its parts that were libraries before glibc 2.34, libaio, the loader. */
static const char *const of_libc[] = {"libc.",	 "libc-", "libpthread", "librt",
				      "libaio.", "ld-",	  NULL};

/* Libraries that define functions of libc, with their arguments, for those linked with them. */
static const char *const wrapping[] = {"libasan.",     "libtsan.",    "liblsan.",    "libhwasan.",
				       "libclang_rt.", "libtcmalloc", "libdarshan.", NULL};

static const char *preload; /* LD_PRELOAD */

static bool is_preloaded(const char *path)
{
	const char *name = file_name(path);

	for (const char *at = preload; at != NULL && *at != '\0'; at++)
		if (begins_with(at, name))
			return true;
	return false;
}

static bool dynamic_read(struct object *o, ElfW(Addr) base, const char *path, const ElfW(Dyn) * d)
{
	*o = (struct object){.base = base, .foreign = !is_one_of(path, of_libc)};
	o->own = o->foreign && !is_one_of(path, wrapping) && !is_preloaded(path);
	for (; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			o->symbols = pointer(o, d->d_un.d_ptr);
		else if (d->d_tag == DT_STRTAB)
			o->strings = pointer(o, d->d_un.d_ptr);
		else if (d->d_tag == DT_GNU_HASH)
			o->gnu_hash = pointer(o, d->d_un.d_ptr);
		else if (d->d_tag == DT_HASH)
			o->sysv_hash = pointer(o, d->d_un.d_ptr);
		else if (d->d_tag == DT_VERSYM)
			o->versions = pointer(o, d->d_un.d_ptr);
		else if (d->d_tag == DT_RELA)
			o->relocations[0].v = pointer(o, d->d_un.d_ptr);
		else if (d->d_tag == DT_RELASZ)
			o->relocations[0].bytes = d->d_un.d_val;
		else if (d->d_tag == DT_JMPREL)
			o->relocations[1].v = pointer(o, d->d_un.d_ptr);
		else if (d->d_tag == DT_PLTRELSZ)
			o->relocations[1].bytes = d->d_un.d_val;
	}
	return o->symbols != NULL && o->strings != NULL &&
	       (o->gnu_hash != NULL || o->sysv_hash != NULL);
}

static bool object_read(struct object *o, const struct dl_phdr_info *info)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			return dynamic_read(
			    o, info->dlpi_addr, info->dlpi_name,
			    (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr));
	return false;
}

/* Whether symbol i is the default version of `name`. *best: the last version, even if hidden. */
static bool is_default(const struct object *o, uint32_t i, const char *name,
		       const ElfW(Sym) * *best)
{
	const ElfW(Sym) *s = &o->symbols[i];
	unsigned type = ELF64_ST_TYPE(s->st_info);

	if (s->st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC) ||
	    !equal(o->strings + s->st_name, name))
		return false;
	*best = s;
	return o->versions == NULL || (o->versions[i] & VERSION_HIDDEN) == 0;
}

static const ElfW(Sym) * lookup_gnu(const struct object *o, const char *name, uint32_t h)
{
	uint32_t buckets = o->gnu_hash[0], first = o->gnu_hash[1], words = o->gnu_hash[2];
	const ElfW(Addr) *bloom = (const ElfW(Addr) *)(const void *)(o->gnu_hash + 4);
	const uint32_t *bucket = (const uint32_t *)(bloom + words);
	const uint32_t *chain = bucket + buckets;
	const unsigned bits = sizeof(ElfW(Addr)) * 8;
	ElfW(Addr) word = bloom[h / bits % words];
	const ElfW(Sym) *best = NULL;
	uint32_t i;

	if ((word >> h % bits & word >> (h >> o->gnu_hash[3]) % bits & 1) == 0)
		return NULL;
	i = bucket[h % buckets];
	if (i < first)
		return NULL;
	for (;; i++) {
		if (((chain[i - first] ^ h) >> 1) == 0 && is_default(o, i, name, &best))
			return best;
		if ((chain[i - first] & 1) != 0)
			return best;
	}
}

static const ElfW(Sym) * lookup_sysv(const struct object *o, const char *name)
{
	uint32_t buckets = o->sysv_hash[0];
	const uint32_t *chain = o->sysv_hash + 2 + buckets;
	const ElfW(Sym) *best = NULL;

	for (uint32_t i = o->sysv_hash[2 + hash_sysv(name) % buckets]; i != STN_UNDEF; i = chain[i])
		if (is_default(o, i, name, &best))
			break;
	return best;
}

/* Returns a function of an object, or NULL. */
static void *function_of(const struct object *o, const char *name)
{
	const ElfW(Sym) *sym =
	    o->gnu_hash != NULL ? lookup_gnu(o, name, hash_gnu(name)) : lookup_sysv(o, name);
	void *fn;

	if (sym == NULL)
		return NULL;
	fn = (void *)(o->base + sym->st_value);
	return ELF64_ST_TYPE(sym->st_info) == STT_GNU_IFUNC ? ((void *(*)(void))fn)() : fn;
}

static void resolve_one(const struct object *o, uint16_t id, struct symbol_search *s)
{
	void *fn = function_of(o, names[id]);

	if (fn == NULL)
		return;
	hr_real_foreign[id] = o->foreign;
	may_be_own[id] = o->own;
	__atomic_store_n(&hr_real_table[id], fn, __ATOMIC_RELAXED);
	s->missing--;
}

static bool contains(const struct dl_phdr_info *info, uintptr_t addr)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && addr - (info->dlpi_addr + p->p_vaddr) < p->p_memsz)
			return true;
	}
	return false;
}

/*
 * Reads an object, except those up to the shim. Link order is: program, preloaded objects,
 * libraries. *past_us is false before the first object.
 */
static bool later_object_read(struct object *o, const struct dl_phdr_info *info, bool *past_us)
{
	if (*past_us)
		return object_read(o, info);
	*past_us = contains(info, (uintptr_t)hr_real_table);
	return false;
}

/* Returns whether no function is missing now. */
static bool search_object(struct symbol_search *s, const struct object *o)
{
	for (unsigned id = s->first; id <= s->last; id++)
		if (names[id] != NULL && hr_real_table[id] == NULL)
			resolve_one(o, (uint16_t)id, s);
	return s->missing == 0;
}

static int visit(struct dl_phdr_info *info, size_t bytes, void *data)
{
	struct symbol_search *s = data;
	struct object o;

	(void)bytes;
	return later_object_read(&o, info, &s->past_us) && search_object(s, &o);
}

/* Without the lock of dl_iterate_phdr. Returns false if the list of objects cannot be read. */
static bool search_list(struct symbol_search *s)
{
	const struct link_map *m = &_r_debug != NULL ? _r_debug.r_map : NULL;
	struct object o;

	while (m != NULL && m->l_ld != _DYNAMIC)
		m = m->l_next;
	if (m == NULL)
		return false;
	while ((m = m->l_next) != NULL)
		if (dynamic_read(&o, m->l_addr, m->l_name, m->l_ld) && search_object(s, &o))
			break;
	return true;
}

/*
 * Before the constructor has found all originals, does not use dl_iterate_phdr: sanitizers have one
 * of their own, which initializes them at its first call, and then takes functions by dlsym.
 */
static void search(struct symbol_search *s)
{
	if (initialized || !search_list(s))
		dl_iterate_phdr(visit, s);
}

static int visit_named(struct dl_phdr_info *info, size_t bytes, void *data)
{
	struct named_search *s = data;
	struct object o;

	(void)bytes;
	if (later_object_read(&o, info, &s->past_us))
		s->fn = function_of(&o, s->name);
	return s->fn != NULL;
}

void *hr_real_named(const char *name)
{
	struct named_search s = {.name = name};

	dl_iterate_phdr(visit_named, &s);
	return s.fn;
}

static bool has_version(const struct object *o, size_t symbol)
{
	return o->versions != NULL && (o->versions[symbol] & ~VERSION_HIDDEN) > VERSION_NONE;
}

/* Sets s->found if an object uses the symbol in any version, and not in that of libc. */
static int visit_users(struct dl_phdr_info *info, size_t bytes, void *data)
{
	struct named_search *s = data;
	struct object o;

	(void)bytes;
	if (!object_read(&o, info))
		return 0;
	for (unsigned k = 0; k < 2; k++)
		for (size_t i = 0; i < o.relocations[k].bytes / sizeof(ElfW(Rela)); i++) {
			size_t at = ELF64_R_SYM(o.relocations[k].v[i].r_info);

			if (at != 0 && !has_version(&o, at) &&
			    equal(o.strings + o.symbols[at].st_name, s->name))
				return s->found = true;
		}
	return 0;
}

static int visit_own(struct dl_phdr_info *info, size_t bytes, void *data)
{
	struct named_search *s = data;
	struct object o;

	(void)bytes;
	if (!contains(info, (uintptr_t)hr_real_table))
		return 0;
	if (object_read(&o, info))
		s->fn = function_of(&o, s->name);
	return 1;
}

/*
 * Names of libc that a library uses for functions of its own.
 *
 * A library may define `remove` or `access` for itself, with other arguments than those of libc. If
 * the program is linked with it, the loader would give all callers the library's function, but the
 * shim is in front of it. The wrapper must not look at the arguments of such a function, and not
 * lose one, so the constructor replaces the beginning of the wrapper by a jump to the function.
 *
 * A preloaded library that wraps functions of libc defines the same names, but its functions have
 * the arguments of libc, so these wrappers stay in use. The difference: who was linked with libc
 * asks for a version of the symbol, and who was linked with the other library, or is this library,
 * for none.
 */

/* A jump to the address that follows it. */
static const uint8_t jump[] = {
#if defined(__x86_64__)
    0xff, 0x25, 0, 0, 0, 0 /* jmp *0(%rip) */
#else
    0x50, 0, 0, 0x58, 0, 2, 0x1f, 0xd6 /* ldr x16, 8; br x16 */
#endif
};

/*
 * Replaces the beginning of a wrapper by a jump to `to`, which gets all arguments. Call it before
 * other threads exist. Changes nothing if the system forbids it. All functions begin at multiples
 * of 16 bytes, so the jump does not reach the next one.
 */
static void own_jump(void *wrapper, const void *to)
{
	uintptr_t first = (uintptr_t)wrapper & ~(uintptr_t)(HR__PAGE_ALIGN - 1);
	uint8_t *end = (uint8_t *)wrapper + sizeof(jump) + sizeof(to);
	size_t bytes = (uintptr_t)end - first;

	/* This function may be in the same page. SELinux, or a filter, may forbid such a page. */
	if (HR_SYS3(mprotect, first, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
		return;
	memcpy(wrapper, jump, sizeof(jump));
	memcpy((uint8_t *)wrapper + sizeof(jump), &to, sizeof(to));
	HR_SYS3(mprotect, first, bytes, PROT_READ | PROT_EXEC);
	__builtin___clear_cache((char *)wrapper, (char *)end);
}

/* Leaves a function to the library that defines it, if it is meant for its users. */
static void leave_to_library(uint16_t id)
{
	struct named_search s = {.name = names[id]};

	dl_iterate_phdr(visit_users, &s);
	if (s.found)
		dl_iterate_phdr(visit_own, &s);
	if (s.fn != NULL)
		own_jump(s.fn, hr_real_table[id]);
}

/* Returns the call whose original is `fn`, preferably that of this name. 0: none. */
static uint16_t id_of(const void *fn, const char *name)
{
	uint16_t found = 0;

	for (uint16_t id = HR_OP_FIRST; id < HR_OP_MAX; id++) {
		if (names[id] == NULL || hr_real_foreign[id] ||
		    __atomic_load_n(&hr_real_table[id], __ATOMIC_RELAXED) != fn)
			continue;
		if (equal(names[id], name))
			return id;
		if (found == 0)
			found = id;
	}
	return found;
}

void *hr_real_wrapper(void *fn, const char *name)
{
	struct named_search s = {0};
	uint16_t id = fn != NULL ? id_of(fn, name) : 0;

	if (id == 0)
		return fn;
	s.name = names[id];
	dl_iterate_phdr(visit_own, &s);
	return s.fn != NULL ? s.fn : fn;
}

/* Stands for a function that this libc lacks, if a program finds the wrapper by dlsym. */
static long real_absent(void)
{
	errno = ENOSYS;
	return -1;
}

bool hr_real_exists(uint16_t id)
{
	return hr_real_get(id) != (void *)real_absent;
}

static long absent_request(void)
{
	return -ENOSYS;
}

void hr__real_init(const char *preloaded)
{
	struct symbol_search s = {.first = HR_OP_FIRST, .last = HR_OP_MAX - 1};

	preload = preloaded;
	for (unsigned id = HR_OP_FIRST; id < HR_OP_MAX; id++)
		s.missing += names[id] != NULL && hr_real_table[id] == NULL;
	search(&s);
	initialized = true;
	for (uint16_t id = HR_OP_FIRST; id < HR_OP_MAX; id++)
		if (may_be_own[id])
			leave_to_library(id);
}

void *hr_real_resolve(uint16_t id)
{
	struct symbol_search s = {.first = id, .last = id, .missing = 1};
	void *fn;

	search(&s);
	fn = __atomic_load_n(&hr_real_table[id], __ATOMIC_RELAXED);
	return fn != NULL ? fn : (void *)real_absent;
}

/* Reads the number of unloads from the first object. All objects have the same number. */
static int unloads(struct dl_phdr_info *info, size_t bytes, void *data)
{
	(void)bytes;
	*(uint64_t *)data = info->dlpi_subs;
	return 1;
}

void *hr_real_unloadable(uint16_t id)
{
	static const uint16_t ids[] = {HR_OP_io_submit, HR_OP_io_getevents, HR_OP_io_pgetevents};
	static uint64_t seen;
	uint64_t now = 0;
	void *fn;

	dl_iterate_phdr(unloads, &now);
	if (__atomic_exchange_n(&seen, now, __ATOMIC_RELAXED) != now)
		for (unsigned i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
			__atomic_store_n(&hr_real_table[ids[i]], NULL, __ATOMIC_RELAXED);
	fn = hr_real_get(id);
	return fn != (void *)real_absent ? fn : (void *)absent_request;
}
