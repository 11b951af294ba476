// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The part of regions.c in C++. Names of its target regions hold the types of the parameters, which
// host and device have to spell alike.
#include <array>
#include <cstdint>
#include <numeric>

extern "C" std::int64_t sum_of_squares(const std::int64_t *values, int n);

namespace {

template <typename T>
T sum_on_device(const T *values, int n) {
    T sum = 0;
#pragma omp target teams distribute parallel for map(to : values[0 : n]) reduction(+ : sum)
    for (int i = 0; i < n; ++i) {
        std::array<T, 2> const factors{values[i], values[i]};
        sum +=
            std::accumulate(factors.begin(), factors.end(), T{1}, [](T a, T b) { return a * b; });
    }
    return sum;
}

} // namespace

std::int64_t sum_of_squares(const std::int64_t *values, int n) { return sum_on_device(values, n); }
