/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.h - thread ids of regions that run on a GPU
 *
 * Kernels and copies belong to the process that started them. Their thread id is a number above
 * those of the kernel: GPU 1, stream 7 has 100100007.
 */
#ifndef HEADRACE_COMMON_GPU_H
#define HEADRACE_COMMON_GPU_H

#include <stdbool.h>
#include <stdint.h>

#define HR_GPU_TID     100000000u
#define HR_GPU_DEVICES 1000u
#define HR_GPU_STREAMS 100000u /* of a device */

static inline uint32_t hr_gpu_tid(uint32_t device, uint32_t stream)
{
	return HR_GPU_TID + device % HR_GPU_DEVICES * HR_GPU_STREAMS + stream % HR_GPU_STREAMS;
}

static inline bool hr_gpu_tid_is(uint32_t tid)
{
	return tid >= HR_GPU_TID && tid < HR_GPU_TID + HR_GPU_DEVICES * HR_GPU_STREAMS;
}

static inline uint32_t hr_gpu_device(uint32_t tid)
{
	return (tid - HR_GPU_TID) / HR_GPU_STREAMS;
}

static inline uint32_t hr_gpu_stream(uint32_t tid)
{
	return (tid - HR_GPU_TID) % HR_GPU_STREAMS;
}

#endif
