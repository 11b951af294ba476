/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/**
 * @file shmem.h
 * OpenSHMEM 1.6 over DiOMP (docs/shmem.md). A PE is a rank. Link with libdiomp-shmem, or compile
 * with `diompcc --shmem`. What functions do is described in the specification; the comments of the
 * parts describe only what it leaves open.
 */
#ifndef SHMEM_H
#define SHMEM_H

#include "shmem/atomics.h"
#include "shmem/collectives.h"
#include "shmem/library.h"
#include "shmem/transfers.h"
#include "shmem/types.h"
#include "shmem/waits.h"

#if defined(__cplusplus)
#include "shmem/overloads.hpp"
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#include "shmem/generic.h"
#endif

#endif /* SHMEM_H */
