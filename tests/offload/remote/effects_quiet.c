/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Takes mathematics and memcpy from outside. */
#include <math.h>
#include <string.h>

double quiet(double *to, const double *from, size_t nbytes);
double quiet(double *to, const double *from, size_t nbytes) {
    memcpy(to, from, nbytes);
    return sin(to[0]) + pow(to[0], from[0]);
}
