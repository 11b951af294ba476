// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Restores the order of a peer's messages, which carry sequence numbers. Needs no GASNet-EX.
#pragma once

#include "transport/types.h"

#include <map>
#include <vector>

namespace diomp::transport::gasnet {

/// Guarded by its owner's lock.
class message_order {
public:
    /// Calls `deliver` for this message and for later ones that waited for it, or stores it.
    template <typename Deliver>
    void deliver_in_order(std::uint32_t number, handler_id handler, const void *payload,
                          std::size_t nbytes, Deliver &&deliver) {
        auto const *const bytes = static_cast<const std::byte *>(payload);
        if (number != next_number_) {
            waiting_.try_emplace(number, stored_message{handler, {bytes, bytes + nbytes}});
            return;
        }
        deliver(handler, bytes, nbytes);
        ++next_number_;
        for (auto found = waiting_.find(next_number_); found != waiting_.end();
             found = waiting_.find(next_number_)) {
            deliver(found->second.handler, found->second.payload.data(),
                    found->second.payload.size());
            waiting_.erase(found);
            ++next_number_;
        }
    }

private:
    struct stored_message {
        handler_id handler;
        std::vector<std::byte> payload;
    };

    std::uint32_t next_number_ = 0;
    std::map<std::uint32_t, stored_message> waiting_;
};

} // namespace diomp::transport::gasnet
