/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tfdata.c - waits for batches of tf.data
 *
 * When an iterator of tf.data returns a batch, TensorFlow reports the duration of the request to
 * its own metrics, by a function of another library. This file replaces that function. Compiled
 * training steps (tf.function, Keras's fit) report their waits nowhere else. They request a batch
 * in a thread of TensorFlow, while the thread of the program waits for the end of the step.
 */
#include "shim/regions/region.h"

/* tensorflow::metrics::RecordTFDataGetNextDuration(uint64), in TensorFlow 2.8 to 2.21 */
#define METRIC	      _ZN10tensorflow7metrics27RecordTFDataGetNextDurationEm
#define TEXT(name)    TEXT_OF(name)
#define TEXT_OF(name) #name

typedef void metric(uint64_t us);
__attribute__((visibility("default"))) metric METRIC;

static struct headrace_name wait_name = {
    .name = "tf.data", .domain = "tensorflow", .kind = HEADRACE_INPUT_WAIT};

void METRIC(uint64_t us)
{
	static metric *original;
	metric *real = __atomic_load_n(&original, __ATOMIC_RELAXED);

	if (hr_shim_image.on)
		hr__region_waited(&wait_name, us);
	if (real == NULL) {
		real = (metric *)hr_real_named(TEXT(METRIC));
		__atomic_store_n(&original, real, __ATOMIC_RELAXED);
	}
	if (real != NULL)
		real(us);
}
