/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <shmem.h>

int main(void) { return shmem_my_pe() >= 0 ? 0 : 1; }
