// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the forms with OpenMP's devices have in common: ranges of a part on its device.
#ifndef DPU_DEVICE_RANGES_H
#define DPU_DEVICE_RANGES_H

#include "dpu/kernel.h"

// Maps the ranges, or copies the results back and removes them; adds the time to the transfers.
void ranges_enter(part *own, const array_range *ranges, int count);
void ranges_leave(part *own, const array_range *ranges, int count);

#endif
