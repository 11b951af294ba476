/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Prints. */
#include <stdio.h>

int loud(const char *text);
int loud(const char *text) { return puts(text); }
