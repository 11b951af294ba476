// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "launch/gasnet/launcher.h"

#include <array>
#include <cstdlib>

namespace diomp::launch::gasnet {
namespace {

/// Variables of udp's workers, of smp's fork, and of gasnetrun's ssh spawner.
constexpr std::array variables{"AMUDP_WORKER_ARGS", "GASNET_PSHM_NODES", "GASNET_SPAWN_ARGS"};

} // namespace

bool present(const environment &lookup) {
    for (const char *const variable : variables) {
        if (lookup(variable) != nullptr) {
            return true;
        }
    }
    return false;
}

void forget_environment() {
    for (const char *const variable : variables) {
        ::unsetenv(variable);
    }
}

} // namespace diomp::launch::gasnet
