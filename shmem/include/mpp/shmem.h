/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/** @file mpp/shmem.h The header under its deprecated name (OpenSHMEM 1.6, annex F). */
#include "../shmem.h"
