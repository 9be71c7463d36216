/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tfmetrics.c - stands for TensorFlow's two libraries: one has the function that counts the waits
 * of tf.data, the other calls it
 */
#include <stdint.h>

#define METRIC _ZN10tensorflow7metrics27RecordTFDataGetNextDurationEm

void METRIC(uint64_t us);

#ifdef HR_TFMETRICS_COUNTS
uint64_t tfmetrics_sum;

void METRIC(uint64_t us)
{
	tfmetrics_sum += us;
}
#else
void tfmetrics_waited(uint64_t us);

void tfmetrics_waited(uint64_t us)
{
	METRIC(us);
}
#endif
