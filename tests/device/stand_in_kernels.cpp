// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/stand_in_kernels.h"

#include "device/kernels/reduction_loops.h"

namespace stand_in {
namespace {

/// Of the thread that runs.
unsigned long long g_thread = 0;
unsigned long long g_num_threads = 1;

struct threads {
    static unsigned long long first() { return g_thread; }
    static unsigned long long step() { return g_num_threads; }
};

namespace kernels = diomp::device::kernels;

#define STAND_IN_KERNEL(op, element)                                                               \
    {"diomp_reduce_" #op "_" #element, sizeof(kernels::element),                                   \
     kernels::reduce<threads, kernels::op, kernels::element>},
constexpr kernel all_kernels[] = {DIOMP_REDUCTIONS(STAND_IN_KERNEL){"diomp_update", 8, nullptr}};

} // namespace

const kernel *find_kernel(const std::string &name) {
    for (kernel const &each : all_kernels) {
        if (name == each.name) {
            return &each;
        }
    }
    return nullptr;
}

void run_threads(const kernel &which, const reduction_arguments &all,
                 unsigned long long num_threads) {
    g_num_threads = num_threads;
    for (g_thread = 0; g_thread < num_threads; ++g_thread) {
        which.run(all);
    }
}

void run_updates(const update_arguments &all) { kernels::update(all); }

} // namespace stand_in
