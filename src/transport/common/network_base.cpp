// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transport/common/network_base.h"

#include "launch/launch.h"

#include <algorithm>

namespace diomp::transport {

status network_base::start_thread(int event_fd) {
    idle_waiters_.start(event_fd);
    caps_.wakes_idle_waits = event_fd >= 0;
    network_thread_work work;
    work.state = [this] { return poller_count_.state(); };
    work.serve = [this] {
        bool const moved = serve();
        if (moved) {
            idle_waiters_.note_progress();
        }
        // A thread may be in an idle wait for what has arrived.
        if (arrivals_.take_long_handled() || has_messages()) {
            ring_();
        }
        if (moved) {
            wake_idle_waiters();
        }
        return moved;
    };
    work.arm = [this] { return idle_waiters_.arm(); };
    work.check_peers = [this] {
        return max_sleep_ms(
            liveness_.check(*this, [this](network_peer &silent, const std::string &why) {
                fail_peer(silent, why);
            }));
    };
    auto started = network_thread::start(event_fd, std::move(work));
    DIOMP_TRY(started);
    thread_ = started.take();
    return {};
}

void network_base::fail_peer(network_peer &lost, const std::string &why) {
    if (std::string const sentence = fail(lost, why); !sentence.empty()) {
        failures_.report(lost.rank(), sentence);
    }
}

status network_base::close() {
    DIOMP_TRY(drain());
    if (std::ranges::any_of(known_peers(), &network_peer::is_failed)) {
        return error(OMPX_ERR_PEER, "a rank was lost before it had received all data");
    }
    // From here on peers may end before this process, which is not a failure. The network thread
    // still replies to peers that drain.
    failures_.set_handler({});
    return launcher_.fence();
}

} // namespace diomp::transport
