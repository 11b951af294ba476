/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * An image with variables, something that is never written, and a function. */
double values[300000];
int count = 4;
const double fixed[2] = {1, 2};

double twice(double x);
double twice(double x) { return 2 * x + fixed[0] * count; }
