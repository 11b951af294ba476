// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "local_exchange.h"

#include <fmt/format.h>

namespace diomp::run {

status local_exchange::on_fence(int rank) {
    auto complete = values_.enter_fence(rank);
    DIOMP_TRY(complete);
    if (complete.value()) {
        node_.send_to_all(release_packets(values_.take_entries(), false));
    }
    return {};
}

status local_exchange::on_get(int /*rank*/, int owner, std::string key) {
    // The fence has delivered all values, so the runtime never sends `get`.
    return error(OMPX_ERR_SYSTEM,
                 fmt::format("a request for the value '{}' of rank {}", key, owner));
}

} // namespace diomp::run
