/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvtx_stand_in.h - NVTX's side of its binary interface, where its headers are not installed
 *
 * Purpose   What w_nvtx.c uses, under the names of nvToolsExt.h. As there: the first call of this object loads what NVTX_INJECTION64_PATH
 *           names and has a table of pointers filled; a pointer that is not filled does nothing.
 */
#ifndef HEADRACE_TESTS_NVTX_STAND_IN_H
#define HEADRACE_TESTS_NVTX_STAND_IN_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <wchar.h>

#define NVTX_VERSION		      3
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE sizeof(nvtxEventAttributes_t)
#define NVTX_MESSAGE_TYPE_ASCII	      1
#define NVTX_MESSAGE_TYPE_UNICODE     2
#define NVTX_MESSAGE_TYPE_REGISTERED  3
#define NVTX_PAYLOAD_TYPE_INT64	      2
#define NVTX_PAYLOAD_TYPE_DOUBLE      3
#define STAND_IN_CORE		      1
#define STAND_IN_CORE2		      5
#define STAND_IN_SLOTS		      16

typedef void *nvtxDomainHandle_t;
typedef void *nvtxStringHandle_t;
typedef uint64_t nvtxRangeId_t;
typedef struct {
	uint16_t version, size;
	uint32_t category;
	int32_t colorType;
	uint32_t color;
	int32_t payloadType, reserved0;
	union {
		int64_t llValue;
		double dValue;
	} payload;
	int32_t messageType;
	union {
		const char *ascii;
		const wchar_t *unicode;
		nvtxStringHandle_t registered;
	} message;
} nvtxEventAttributes_t;

typedef void stand_in_fn(void);
static stand_in_fn *stand_in_slots[2][STAND_IN_SLOTS];

static int stand_in_table(int module, stand_in_fn ****ret_table, unsigned *ret_n)
{
	static stand_in_fn **tables[2][STAND_IN_SLOTS + 1];
	int which = module == STAND_IN_CORE2;

	if (module != STAND_IN_CORE && module != STAND_IN_CORE2)
		return 0;
	for (int i = 1; i < STAND_IN_SLOTS; i++)
		tables[which][i] = &stand_in_slots[which][i];
	*ret_table = tables[which];
	*ret_n = STAND_IN_SLOTS;
	return 1;
}

static const void *stand_in_export(uint32_t id)
{
	static const struct {
		size_t bytes;
		int (*table)(int, stand_in_fn ****, unsigned *);
	} callbacks = {sizeof(callbacks), stand_in_table};

	return id == 1 ? &callbacks : NULL;
}

static void stand_in_load(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *library = path != NULL ? dlopen(path, RTLD_LAZY) : NULL;
	int (*init)(const void *(*)(uint32_t)) = NULL;

	if (library != NULL)
		*(void **)(void *)&init = dlsym(library, "InitializeInjectionNvtx2");
	if (init != NULL && init(stand_in_export) == 0)
		dlclose(library);
}

static inline stand_in_fn *stand_in(int which, int slot)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, stand_in_load);
	return stand_in_slots[which][slot];
}

#define STAND_IN(type, which, slot, name, params, none, ...)                                       \
	static inline type name params                                                             \
	{                                                                                          \
		stand_in_fn *f = stand_in(which, slot);                                            \
                                                                                                   \
		return f != NULL ? ((type(*) params)f)(__VA_ARGS__) : none;                        \
	}

STAND_IN(void, 0, 2, nvtxMarkA, (const char *text), (void)0, text)
STAND_IN(void, 0, 3, nvtxMarkW, (const wchar_t *text), (void)0, text)
STAND_IN(nvtxRangeId_t, 0, 5, nvtxRangeStartA, (const char *text), 0, text)
STAND_IN(nvtxRangeId_t, 0, 6, nvtxRangeStartW, (const wchar_t *text), 0, text)
STAND_IN(void, 0, 7, nvtxRangeEnd, (nvtxRangeId_t id), (void)0, id)
STAND_IN(int, 0, 8, nvtxRangePushEx, (const nvtxEventAttributes_t *a), -2, a)
STAND_IN(int, 0, 9, nvtxRangePushA, (const char *text), -2, text)
STAND_IN(int, 0, 11, nvtxRangePop, (void), -2)
STAND_IN(void, 0, 14, nvtxNameOsThreadA, (uint32_t tid, const char *name), (void)0, tid, name)
STAND_IN(void, 1, 1, nvtxDomainMarkEx, (nvtxDomainHandle_t d, const nvtxEventAttributes_t *a),
	 (void)0, d, a)
STAND_IN(nvtxRangeId_t, 1, 2, nvtxDomainRangeStartEx,
	 (nvtxDomainHandle_t d, const nvtxEventAttributes_t *a), 0, d, a)
STAND_IN(void, 1, 3, nvtxDomainRangeEnd, (nvtxDomainHandle_t d, nvtxRangeId_t id), (void)0, d, id)
STAND_IN(int, 1, 4, nvtxDomainRangePushEx, (nvtxDomainHandle_t d, const nvtxEventAttributes_t *a),
	 -2, d, a)
STAND_IN(int, 1, 5, nvtxDomainRangePop, (nvtxDomainHandle_t d), -2, d)
STAND_IN(void, 1, 8, nvtxDomainNameCategoryA,
	 (nvtxDomainHandle_t d, uint32_t category, const char *name), (void)0, d, category, name)
STAND_IN(nvtxStringHandle_t, 1, 10, nvtxDomainRegisterStringA,
	 (nvtxDomainHandle_t d, const char *text), NULL, d, text)
STAND_IN(nvtxDomainHandle_t, 1, 12, nvtxDomainCreateA, (const char *name), NULL, name)
STAND_IN(void, 1, 14, nvtxDomainDestroy, (nvtxDomainHandle_t d), (void)0, d)

#endif
