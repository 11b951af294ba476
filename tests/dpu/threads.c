// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plain OpenMP on 64-bit Arm: four threads, each once, and tasks that any of them may take.
#include <omp.h>
#include <stdio.h>

#if !defined(__aarch64__)
#error "this is compiled for another processor"
#endif

static int fibonacci(int n) {
    if (n < 2) {
        return n;
    }
    int a = 0;
    int b = 0;
#pragma omp task shared(a)
    a = fibonacci(n - 1);
    b = fibonacci(n - 2);
#pragma omp taskwait
    return a + b;
}

int main(void) {
    enum { wanted = 4 };
    int seen[wanted] = {0};
    int threads = 0;
    int result = 0;
    omp_set_dynamic(0);
#pragma omp parallel num_threads(wanted) reduction(+ : threads)
    {
        threads += 1;
        seen[omp_get_thread_num()] += 1;
#pragma omp single
        result = fibonacci(12);
    }
    for (int i = 0; i < wanted; ++i) {
        if (seen[i] != 1) {
            printf("thread %d ran %d times\n", i, seen[i]);
            return 1;
        }
    }
    printf("%d threads, fibonacci(12) is %d\n", threads, result);
    return threads == wanted && result == 144 ? 0 : 1;
}
