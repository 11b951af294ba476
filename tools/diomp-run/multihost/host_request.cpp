// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host_request.h"

namespace diomp::run {

void host_request::send() {
    for (const host &each : hosts_) {
        if (each.stage == host_stage::running) {
            pending_.insert(&each);
        }
    }
    if (pending_.empty()) {
        on_done_();
    }
    for (host &each : hosts_) {
        if (pending_.contains(&each)) {
            each.link->send(small_frame(type_));
        }
    }
}

void host_request::on_reply(const host &from) {
    if (pending_.erase(&from) > 0 && pending_.empty()) {
        on_done_();
    }
}

} // namespace diomp::run
