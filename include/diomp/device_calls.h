/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file diomp/device_calls.h
 * The calls of target regions on GPUs, on an endpoint: what diomp/device.h gives the names of
 * diomp.h. Not an interface for programs; the tests call it on processors.
 */
#ifndef DIOMP_DEVICE_CALLS_H
#define DIOMP_DEVICE_CALLS_H

#include "device_atomics.h"
#include "device_barrier.h"
#include "device_transfers.h"
#include "device_waits.h"

#endif /* DIOMP_DEVICE_CALLS_H */
