/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Calls whose places call_sites.py looks for in the statistics. */
#include <diomp.h>

static double *a;

__attribute__((noinline)) static void heavy(void) {
    double y[100] = {0};
    for (int i = 0; i < 3; ++i) {
        ompx_put(0, a, y, sizeof(y)); /* CALLS ompx_put 3 */
        ompx_get(y, 0, a, sizeof(y)); /* CALLS ompx_get 3 */
    }
    ompx_allreduce(y, y, 100, OMPX_DOUBLE, OMPX_SUM, NULL); /* CALLS ompx_allreduce 1 */
}

int main(void) {
    double x = 1;
    a = ompx_alloc(100 * sizeof(double), 0, OMPX_MEM_SYMMETRIC); /* CALLS ompx_alloc 1 */
    for (int i = 0; i < 20; ++i) {
        ompx_allreduce(&x, &x, 1, OMPX_DOUBLE, OMPX_MAX, NULL); /* CALLS ompx_allreduce 20 */
    }
    heavy();
    ompx_put(0, a, &x, sizeof(x)); /* CALLS ompx_put 1 */
    ompx_free(a);                  /* CALLS ompx_free 1 */
    return x != 1;
}
