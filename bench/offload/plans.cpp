// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A time step of several short regions on the default device, for bench/compare-offload and
// scripts/gpu-check.sh: as constructs, as a chain of nowait regions, and as a plan. One line per
// figure: what, number of regions in the step, median of the step's time, "us".
#include "diomp.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <omp.h>
#include <vector>

namespace {

constexpr int rounds = 21;
constexpr int steps = 200;
constexpr int length = 64;

// The arguments of a stencil: fields, coefficients, sizes.
float *const g_now = new float[length];
float *const g_next = new float[length];
float *const g_factor = new float[length];

[[noreturn]] void fail(const char *what) {
    std::fprintf(stderr, "bench_plans: %s: %s\n", what, ompx_last_error());
    ompx_abort(1);
}

void region(float *next, const float *now, const float *factor, int n, float weight) {
#pragma omp target map(to : now[0 : length], factor[0 : length]) map(tofrom : next[0 : length])
    for (int i = 0; i < n; ++i) {
        next[i] = next[i] * weight + now[i] * factor[i];
    }
}

void constructs(int num_regions) {
    for (int i = 0; i < num_regions; ++i) {
        region(g_next, g_now, g_factor, 8, 0.5F);
    }
}

void chain(int num_regions) {
    float *const next = g_next;
    float const *const now = g_now;
    float const *const factor = g_factor;
    for (int i = 0; i < num_regions; ++i) {
#pragma omp target nowait depend(inout : next[0]) map(to : now[0 : length], factor[0 : length])    \
    map(tofrom : next[0 : length])
        for (int k = 0; k < 8; ++k) {
            next[k] = next[k] * 0.5F + now[k] * factor[k];
        }
    }
#pragma omp taskwait
}

template <typename Step>
double step_us(Step &&step) {
    auto const begin = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) {
        step();
    }
    std::chrono::duration<double, std::micro> const took = std::chrono::steady_clock::now() - begin;
    return took.count() / steps;
}

double median(std::vector<double> values) {
    std::ranges::nth_element(values, values.begin() + rounds / 2);
    return values[rounds / 2];
}

void measure(int num_regions) {
    ompx_plan_t plan = OMPX_PLAN_NONE;
    if (ompx_plan_begin(omp_get_default_device()) != 0) {
        fail("begin");
    }
    constructs(num_regions);
    if (ompx_plan_end(&plan) != 0) {
        fail("end");
    }
    std::vector<double> as_constructs;
    std::vector<double> as_chain;
    std::vector<double> as_plan;
    std::vector<double> as_event;
    for (int round = 0; round < rounds; ++round) { // in turn
        as_constructs.push_back(step_us([&] { constructs(num_regions); }));
        as_chain.push_back(step_us([&] { chain(num_regions); }));
        as_plan.push_back(step_us([&] {
            if (ompx_plan_launch(plan) != 0) {
                fail("launch");
            }
        }));
        as_event.push_back(step_us([&] {
            ompx_event_t event = nullptr;
            if (ompx_plan_launch_nb(plan, &event) != 0 || ompx_event_wait(&event) != 0) {
                fail("launch_nb");
            }
        }));
    }
    std::printf("constructs %d %.2f us\n", num_regions, median(as_constructs));
    std::printf("nowait-chain %d %.2f us\n", num_regions, median(as_chain));
    std::printf("plan %d %.2f us\n", num_regions, median(as_plan));
    std::printf("plan-nb %d %.2f us\n", num_regions, median(as_event));
    ompx_plan_free(&plan);
}

/// Ends the program if a plan does not compute what the constructs do.
void check_result() {
    std::fill_n(g_now, length, 2.0F);
    std::fill_n(g_next, length, 0.0F);
    std::fill_n(g_factor, length, 3.0F);
    float *const next = g_next;
    float const *const now = g_now;
    float const *const factor = g_factor;
#pragma omp target update to(next[0 : length], now[0 : length], factor[0 : length])
    ompx_plan_t plan = OMPX_PLAN_NONE;
    if (ompx_plan_begin(omp_get_default_device()) != 0) {
        fail("begin");
    }
    constructs(1);
    if (ompx_plan_end(&plan) != 0 || ompx_plan_launch(plan) != 0 || ompx_plan_free(&plan) != 0) {
        fail("plan");
    }
#pragma omp target update from(next[0 : length])
    if (next[0] != 9.0F) { // (0 / 2 + 6) / 2 + 6
        fail("a plan computed something else");
    }
}

} // namespace

int main() {
    int on_host = 1;
#pragma omp target map(from : on_host)
    on_host = omp_is_initial_device();
    if (on_host != 0) {
        fail("target regions run on the host");
    }
    float *const next = g_next;
    float const *const now = g_now;
    float const *const factor = g_factor;
#pragma omp target data map(to : now[0 : length], next[0 : length], factor[0 : length])
    {
        check_result();
        for (int const num_regions : {1, 4, 16}) {
            measure(num_regions);
        }
    }
    return 0;
}
