// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rma/device_copies.h"

#include "messaging/engine.h"

#include <string>

namespace diomp::rma {

status device_copies::wait_until_idle() {
    result<bool> idle = true;
    DIOMP_TRY(engine_.wait_for_network(
        [&] {
            idle = is_idle_();
            return !idle || idle.value();
        },
        [] { return std::string("waiting for device copies"); }));
    DIOMP_TRY(idle);
    return {};
}

} // namespace diomp::rma
