// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// diomp::plan on host devices: recording, launching, moving, and errors as exceptions.
#include "diomp.hpp"

#include <cstdio>
#include <omp.h>
#include <stdexcept>
#include <utility>

namespace {

constexpr int num = 100;
int failures = 0;

void expect(bool holds, const char *what) {
    if (!holds) {
        std::fprintf(stderr, "not so: %s\n", what);
        ++failures;
    }
}

void add_one(int *values) {
#pragma omp target teams distribute parallel for map(tofrom : values[0 : num])
    for (int i = 0; i < num; ++i) {
        values[i] += 1;
    }
}

template <typename Call>
ompx_status code_of(Call &&call) {
    try {
        std::forward<Call>(call)();
    } catch (const diomp::error &failure) {
        return failure.status();
    }
    return OMPX_SUCCESS;
}

} // namespace

int main() {
    int values[num] = {};
    int *const array = values;
    int const device = omp_get_default_device();
#pragma omp target data map(tofrom : array[0 : num])
    {
        diomp::plan step(device, [&] { add_one(array); });
        expect(static_cast<bool>(step), "a plan is recorded");
        step.launch();
        diomp::plan moved(std::move(step));
        moved.launch();
        diomp::plan assigned;
        expect(!assigned, "a plan by default is none");
        assigned = std::move(moved);
        assigned.launch();
        diomp::event done = assigned.launch_nb();
        done.wait();

        bool is_caught = false;
        try {
            diomp::plan const none(device, [&] {
                add_one(array);
                throw std::runtime_error("from the step");
            });
        } catch (const std::runtime_error &) {
            is_caught = true;
        }
        expect(is_caught, "an exception of the step");
        int other[num] = {};
        expect(code_of([&] { diomp::plan const none(device, [&] { add_one(other); }); }) ==
                   OMPX_ERR_UNSUPPORTED,
               "data that is not mapped");
        expect(other[0] == 1, "the region was executed");
        expect(code_of([] { diomp::plan const none(-1, [] {}); }) == OMPX_ERR_ARG, "the host");
        expect(code_of([] { diomp::plan().launch(); }) == OMPX_ERR_ARG, "no plan");
    }
    expect(values[0] == 6 && values[num - 1] == 6,
           "1 recorded, 4 launched, 1 before the exception");
    if (failures == 0) {
        std::puts("plans in C++: ok");
    }
    return failures;
}
