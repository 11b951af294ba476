// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls of the C++ interface whose places call_sites.py looks for in the statistics: those of the
// program, not those in DiOMP's headers.
#include <diomp.hpp>
#include <vector>

[[gnu::noinline]] static void heavy(double *a) {
    std::vector<double> y(100);
    auto const there = diomp::at(0, a);
    for (int i = 0; i < 3; ++i) {
        there.put(y); // CALLS ompx_put 3
        there.get(y); // CALLS ompx_get 3
    }
}

int main() {
    auto *const a = static_cast<double *>(
        ompx_alloc(100 * sizeof(double), 0, OMPX_MEM_SYMMETRIC)); // CALLS ompx_alloc 1
    diomp::at(0, a).put(2.0);                                     // CALLS ompx_put 1
    heavy(a);
    double const back = diomp::at(0, a).get(); // CALLS ompx_get 1
    ompx_free(a);                              // CALLS ompx_free 1
    return back != 0;
}
